"""Contestants of the benchmark of Gibbs sweeps that differ from plain ratings: weights, noise, feedback, modes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from contestants import SEED, Data, Ours

__all__ = ["VARIANTS"]

OCCASIONS = 50  # rows of a third mode


class OursWeighted(Ours):
    """Each rating with a weight of its own."""

    def weights(self, y: np.ndarray) -> np.ndarray | None:
        """Around 1."""
        return np.random.default_rng(SEED).gamma(4.0, 0.25, len(y))


class OursFewWeights(Ours):
    """Ratings with weights of which few are distinct."""

    def weights(self, y: np.ndarray) -> np.ndarray | None:
        """From 1 to 5."""
        return np.random.default_rng(SEED).integers(1, 6, len(y)).astype(float)


class OursRowNoise(Ours):
    """A noise factor for each user and each item."""

    noise = "rows"


class OursWeightedRowNoise(OursWeighted):
    """Both."""

    noise = "rows"


class OursOccasions(Ours):
    """A third mode of few rows, and an identity core."""

    def index(self, data: Data) -> tuple[np.ndarray, list[int]]:
        """The pairs, each on one of the occasions."""
        index, sizes = super().index(data)
        occasion = np.random.default_rng(SEED).integers(OCCASIONS, size=len(index)).astype(np.int32)
        return np.column_stack([index, occasion]), [*sizes, OCCASIONS]


class OursPlays(Ours):
    """Clicks with counts; zeros of popular items weigh more."""

    counting, popularity = "log", 0.5

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Counts with a long tail."""
        return np.random.default_rng(SEED).geometric(0.05, len(y)).astype(float)

    def likelihood(self) -> Any:
        """With these weights of ones and of zeros."""
        from tuckergp.likelihoods import Clicks

        given = Clicks(counting=self.counting, popularity=self.popularity)
        return given.settled()


class OursPopular(OursPlays):
    """Clicks without counts; zeros of popular items weigh more."""

    counting = "none"


class OursAllAlike(OursPopular):
    """Clicks without counts; all zeros weigh the same."""

    popularity = 0.0


class OursCoRating(Ours):
    """Who rated what as features of both modes, each row of length one."""

    def features(self, index: np.ndarray, d: int, sizes: list[int]) -> tuple[Any, tuple[slice, ...]]:
        """A constant and the set of the other mode's rows."""
        from scipy import sparse

        shape = sizes[d], sizes[1 - d]
        sets = sparse.csr_array((np.ones(len(index)), (index[:, d], index[:, 1 - d])), shape=shape)
        length = np.sqrt(np.maximum(np.asarray(sets.sum(axis=1)).ravel(), 1.0))
        block = sparse.diags_array(1 / length) @ sets
        columns = sparse.csr_array(sparse.hstack([np.ones((shape[0], 1)), block], format="csr"))
        return columns, tuple(slice(a, b) for a, b in pairwise((0, 1, 1 + shape[1])))


VARIANTS: dict[str, Any] = {
    "weights": OursWeighted, "few weights": OursFewWeights, "row noise": OursRowNoise,
    "weights and row noise": OursWeightedRowNoise, "clicks": OursAllAlike, "clicks, popularity": OursPopular,
    "plays, popularity": OursPlays, "three modes": OursOccasions,
    "co-rating": OursCoRating, "co-rating, earlier": OursCoRating,
}  # fmt: skip
