"""What a trial chose ``modes=None`` to stand for."""

from __future__ import annotations

from dataclasses import dataclass, field

from tuckergp.showing import Shown

__all__ = ["Choice"]


@dataclass(frozen=True, repr=False)
class Choice(Shown):
    """The outcome of the trial behind ``modes=None``.

    Attributes
    ----------
    modes : str
        The name of the chosen model: ``"lines"``, ``"rough lines"``, one of them ``"with seasons"``, ``"surface"`` or
        ``"field"``.
    scores : dict of str to float
        The mean log density that each model gave to held-out targets; that of the best with Student's t, too, where it
        was tried. Where seasons were found and the best model has none, those of the
        trial without them, which takes place from 250 rows on.
    rows, held_out : int
        How many rows each model learned from in the trial, and by how many it was judged.
    lengthscales : list of float
        Of a field: those of its columns that the trial found, in their standard deviations, from which the fit starts.
    heavy_tails : bool
        Whether noise is Student's t in place of normal, because that gave held-out targets a higher density.
    seasons : dict of str to list of float
        The periods that columns were found to have, in their units; models "with seasons" have them.

    Examples
    --------
    >>> Choice("field", {"lines": -0.55, "field": -0.2}, 1000, 300)
    field, by the mean log density of 300 held-out rows after 1000: field -0.200, lines -0.550
    """

    modes: str
    scores: dict[str, float]
    rows: int
    held_out: int
    lengthscales: list[float] = field(default_factory=list)
    heavy_tails: bool = False
    seasons: dict[str, list[float]] = field(default_factory=dict)

    def __str__(self) -> str:
        ranked = sorted(self.scores.items(), key=lambda pair: -pair[1])
        shown = ", ".join(f"{name} {score:.3f}" for name, score in ranked)
        noise = " with heavy tails" if self.heavy_tails else ""
        return (
            f"{self.modes}{noise}, by the mean log density of {self.held_out} held-out rows after {self.rows}: {shown}"
        )
