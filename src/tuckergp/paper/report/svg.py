"""Figures of matplotlib as SVG to stand inside a page, in the page's own colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from typing import Any

from tuckergp.errors import InputError

__all__ = ["INK", "inline", "look"]

INK = "#010203"
"""A colour that stands for that of the page's text, light or dark."""
MANY = 1_500
"""Points from which on a drawing is stored as dots of a raster, which is smaller."""
DPI = 110


@contextmanager
def look() -> Iterator[None]:
    """Draw on no ground, with lines and words in the colour of the page's text."""
    try:
        matplotlib: Any = import_module("matplotlib")
    except ImportError:
        raise InputError("The report's figures need matplotlib: pip install 'tuckergp[plot]'.") from None
    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color")
    settings: dict[str, Any] = dict.fromkeys(inks, INK)
    settings |= dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor", "legend.facecolor"), "none")
    settings |= {"legend.edgecolor": "none", "svg.fonttype": "none", "svg.hashsalt": "tuckergp", "font.size": 10}
    with matplotlib.rc_context(settings):
        yield


def inline(figure: Any, name: str) -> str:
    """The figure as one SVG element; its names begin with ``name``, so that several can stand in a page."""
    for ax in figure.axes:
        for artist in (*ax.lines, *ax.collections, *ax.images):
            artist.set_rasterized(_points(artist) > MANY)
    whole = BytesIO()
    with look():
        figure.savefig(whole, format="svg", dpi=DPI, metadata={"Date": None, "Creator": None})
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
