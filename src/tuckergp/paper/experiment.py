"""What an experiment is: data, settings, cells that compute figures, and blocks that show them, each defined once.

How cells are run and kept is in `tuckergp.paper.run`, how blocks are written in `tuckergp.paper.writer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from tuckergp.paper.run import Run

__all__ = ["Block", "Cells", "Experiment", "Figures", "Picture", "Rows", "Table", "Text", "Work"]

Figures: TypeAlias = dict[str, Any]
"""What a cell found: numbers, words and lists of them, as JSON has them."""
Cells: TypeAlias = Mapping[str, Figures]
"""Finished cells by name."""
Work: TypeAlias = Mapping[str, Callable[[], Figures]]
"""Cells to compute, by name, in the order in which they are computed."""
Rows: TypeAlias = list[list[str]]
"""A table; the first row is its head. Words may have `code` between backticks and **bold** ones."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str


@dataclass(frozen=True)
class Table:
    """A table of figures.

    Attributes
    ----------
    name : str
        By which pages of the documentation ask for it.
    caption : str
    rows : callable
        Makes the table from the finished cells; some of them may be missing.
    """

    name: str
    caption: str
    rows: Callable[[Cells], Rows]


@dataclass(frozen=True)
class Picture:
    """A drawing.

    Attributes
    ----------
    name : str
        Of its files.
    caption : str
    alt : str
        What is to be seen, for those who cannot see it.
    draw : callable, or None
        Makes a figure of matplotlib from the finished cells, or None where there is nothing to see; None where a cell
        draws it, because it needs a fitted model (`Run.keep`).
    """

    name: str
    caption: str
    alt: str
    draw: Callable[[Cells], Any] | None = None


Block: TypeAlias = Text | Table | Picture


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Attributes
    ----------
    name : str
        Also of its results file.
    title : str
    group : str
        Under which it is shown and can be asked for together with others; one of `tuckergp.paper.experiments.GROUPS`.
    protocol : str
        How figures come about, in a sentence. Results of another protocol are not mixed with these.
    cells : callable
        The work of a run, by name.
    blocks : tuple of Block
        What is shown, in this order.
    data : tuple of str
        The data sets that it reads, some of `tuckergp.paper.sources.SOURCES`.
    settings : mapping
        Seeds, sizes, lengths of chains: what `cells` reads from `Run.settings`. They are kept with the results.
    quick : mapping
        Those that a quick run changes.
    beside : tuple of str
        Other experiments whose cells the blocks also see, with the experiment's name and a slash before theirs.
    """

    name: str
    title: str
    group: str
    protocol: str
    cells: Callable[[Run], Work]
    blocks: tuple[Block, ...]
    data: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    beside: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        """Those among its blocks."""
        return tuple(block for block in self.blocks if isinstance(block, Table))

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Those among its blocks."""
        return tuple(block for block in self.blocks if isinstance(block, Picture))
