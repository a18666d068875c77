"""Results of all experiments in a folder, and pictures drawn from them or kept beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from tuckergp.paper.report.blocks import Picture
from tuckergp.paper.report.svg import inline, look
from tuckergp.paper.tables import Results

__all__ = ["EXPERIMENTS", "Drawer", "Stored", "draw", "kept", "read"]

Stored: TypeAlias = Mapping[str, Results]
"""What the results files hold, by their names."""

EXPERIMENTS = (
    "movielens_map",
    "movielens_bpmf",
    "movielens_gibbs",
    "movielens_calibration",
    "california",
    "wind",
    "theory",
    "ratings",
    "variational",
    "columns",
)


class Drawer(Protocol):
    """Makes a picture of a figure; the documentation, which shows none, has one that makes empty ones."""

    def __call__(self, name: str, caption: str, alt: str, make: Callable[[], Any]) -> Picture:
        """The picture; ``make`` draws the figure."""


def read(folder: Path) -> dict[str, Results]:
    """The results files of a folder; experiments that were not run are left out."""
    paths = {name: folder / f"{name}.json" for name in EXPERIMENTS}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.is_file()}


def draw(name: str, caption: str, alt: str, make: Callable[[], Any]) -> Picture:
    """A picture of a figure."""
    with look():
        made = make()
    return Picture(name, caption, alt, inline(made, name))


def kept(folder: Path, name: str, caption: str, alt: str) -> list[Picture]:
    """A picture that was drawn before, in a list; an empty one if it was not."""
    path = folder / "figures" / f"{name}.svg"
    return [Picture(name, caption, alt, path.read_text())] if path.is_file() else []
