"""Matplotlib figures as files: SVG for the report, in the colours of the page, and PNG for documentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from tuckergp.errors import InputError
from tuckergp.files import write_bytes, write_text

__all__ = ["COLOURS", "INK", "figure", "figure_style", "save", "svg_of"]

INK = "#010203"
"""A placeholder for the colour of the page's text, light or dark."""
COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple")
MANY = 1_500
"""The number of points from which on a drawing is stored as a raster, which is smaller."""
SVG_DPI, PNG_DPI, PNG_COLOURS = 110, 90, 200


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw on a transparent background, with lines and text in the colour of the page's text."""
    try:
        matplotlib: Any = import_module("matplotlib")
    except ImportError:
        raise InputError("Figures need matplotlib: pip install 'tuckergp[plot]'.") from None
    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color")
    settings: dict[str, Any] = dict.fromkeys(inks, INK)
    settings |= dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor", "legend.facecolor"), "none")
    settings |= {"legend.edgecolor": "none", "svg.fonttype": "none", "svg.hashsalt": "tuckergp", "font.size": 10}
    with matplotlib.rc_context(settings):
        yield


def figure(rows: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    """A figure without a window, and its axes, shape (rows, columns)."""
    made = import_module("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    return made, np.asarray(made.subplots(rows, columns, squeeze=False))


def save(draw: Callable[[], Any], name: str, folder: Path, png: bool = True) -> None:
    """Draw a figure and write it to ``figures/NAME.svg`` and ``figures/NAME.png``; nothing if it is None."""
    figures, whole, small = folder / "figures", BytesIO(), BytesIO()
    figures.mkdir(parents=True, exist_ok=True)
    with figure_style():
        made = draw()
        if made is None:
            return
        made.get_layout_engine().execute(made)  # once for both files: it takes longer than drawing
        made.set_layout_engine("none")
        write_text(figures / f"{name}.svg", svg_of(made, name))
        if png:
            from PIL import Image  # comes with matplotlib

            made.savefig(whole, format="png", dpi=PNG_DPI, facecolor="white")
            # few colours make a small file
            Image.open(whole).convert("RGB").quantize(PNG_COLOURS).save(small, format="PNG", optimize=True)
            write_bytes(figures / f"{name}.png", small.getvalue())


def svg_of(made: Any, name: str) -> str:
    """The figure as one SVG element, whose ids begin with ``name`` so that several can be in one page."""
    for ax in made.axes:
        for artist in (*ax.lines, *ax.collections, *ax.images):
            artist.set_rasterized(_points(artist) > MANY)
    whole = BytesIO()
    made.savefig(whole, format="svg", dpi=SVG_DPI, metadata={"Date": None, "Creator": None})
    text = whole.getvalue().decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = text.replace(INK, "currentColor")
    for marker in ('id="', 'href="#', "url(#"):
        text = text.replace(marker, f"{marker}{name}-")
    width, height = re.findall(r'(?:width|height)="([\d.]+)pt"', text)[:2]
    text = re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2)
    return text.replace("<svg", f'<svg aria-hidden="true" style="aspect-ratio:{width}/{height}"', 1).strip()


def _points(artist: Any) -> int:
    if hasattr(artist, "get_xdata"):
        return len(artist.get_xdata())
    if type(artist).__name__ == "QuadMesh":  # a colour bar, whose steps would show as stripes
        return MANY + 1
    if hasattr(artist, "get_offsets"):
        paths = sum(len(path) for path in artist.get_paths()) if len(artist.get_paths()) < MANY else MANY + 1
        return max(len(artist.get_offsets()), paths)
    return 0
