"""The definition of an experiment: data, settings, cells that compute figures, and blocks that show them.

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
"""The result of a cell: numbers, text and lists of them, as in JSON."""
Cells: TypeAlias = Mapping[str, Figures]
"""Finished cells by name."""
Work: TypeAlias = Mapping[str, Callable[[], Figures]]
"""Cells to compute, by name, in the order in which they are computed."""
Rows: TypeAlias = list[list[str]]
"""A table; the first row is its header. Cells may contain `code` between backticks and **bold** text."""


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
        The name by which pages of the documentation include it.
    caption : str
    rows : callable
        Makes the table from the finished cells; some of them may be missing.
    """

    name: str
    caption: str
    rows: Callable[[Cells], Rows]


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes
    ----------
    name : str
        The name of its files.
    caption : str
    alt : str
        A description for readers who cannot see it.
    draw : callable, or None
        Makes a matplotlib figure from the finished cells, or None if there is nothing to show; None if a cell draws it
        because it needs a fitted model (`Run.keep`).
    """

    name: str
    caption: str
    alt: str
    draw: Callable[[Cells], Any] | None = None


Block: TypeAlias = Text | Table | Picture


@dataclass(frozen=True)
class Experiment:
    """One experiment: its cells, settings and data, and the tables and figures that show its results.

    Attributes
    ----------
    name : str
        Also the name of its results file.
    title : str
    group : str
        The group in which it is shown and run; one of `tuckergp.paper.experiments.GROUPS`.
    protocol : str
        How the figures are computed, in one sentence. Results of different protocols are not mixed.
    cells : callable
        Gives the cells of a run, by name.
    blocks : tuple of Block
        Texts, tables and figures, in the order of the report.
    data : tuple of str
        The data sets that it reads, some of `tuckergp.paper.sources.SOURCES`.
    settings : mapping
        Seeds, sizes, lengths of chains: what `cells` reads from `Run.settings`. They are kept with the results.
    quick : mapping
        The settings that a quick run changes.
    beside : tuple of str
        Other experiments whose cells the blocks also get, under names with the experiment's name and a slash in front.
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
