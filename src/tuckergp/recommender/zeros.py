"""The zeros of clicks in a fold-in: what all pairs that were not chosen say about the rows to be drawn.

They enter as a prior of a row: in each draw, a precision alpha w0 sum_j c_j z_j z_j' over the rows of the other mode,
with target 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuckergp.data.history import History
from tuckergp.likelihoods.all_pairs import AllPairs
from tuckergp.posterior.draws import Draws

__all__ = ["Zeros"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]
# A row's prior: its mean (S, r) for each row, and its precision (S, r, r) for each row.
Prior = tuple[Floats, list[Floats]]


@dataclass(frozen=True)
class Zeros:
    """The weights of the zeros of the items of a model, (items,), in the order in which draws keep them."""

    likelihood: AllPairs
    weight: Floats

    @classmethod
    def of(cls, likelihood: AllPairs, draws: Draws, history: History) -> Zeros:
        """Those of a fitted model; items that came after the fit count as chosen once."""
        chosen = np.ones(len(draws.modes[1].rows["psi"]))
        if likelihood.popularity:  # only then is it worth to count
            chosen[: len(history.base.ids[1])] = history.base.ratings_per_item
        return cls(likelihood, likelihood.weights_of_zeros(chosen))

    def at(self, items: Ints) -> Floats:
        """The weights at some kept rows of items; a row of -1 is an item that came after the fit."""
        return np.where(items >= 0, self.weight[items], float(self.likelihood.zeros))

    def beside(self, draws: Draws, d: int, prior: Prior, circumstances: list[Floats]) -> Prior:
        """The prior of rows of mode d together with their zeros.

        ``circumstances`` has for each row the products of the factors of drift and context at its observations,
        (n, S, r): the zeros share them equally. None of it without such modes.
        """
        alpha = float(self.likelihood.temper) * draws.unknowns["alpha"]
        weight = self.weight if d == 0 else np.full(len(draws.modes[0].rows["psi"]), float(self.likelihood.zeros))
        gram = alpha[:, None, None] * self._contracted(draws, d, draws.modes[1 - d].gram(weight))
        mean, precision = prior
        means, precisions = mean.copy(), []
        for m, P in enumerate(precision):
            of_row = gram
            if circumstances:
                x = circumstances[m]
                of_row = gram * np.einsum("isj,isk->sjk", x, x) / len(x)
            both = np.ascontiguousarray(P + of_row)
            # N(mean, P^-1) times N(0; psi, G^-1) has the mean (P + G)^-1 P mean
            means[m] = np.linalg.solve(both, P @ mean[m][:, :, None])[:, :, 0]
            precisions.append(both)
        return means, precisions

    @staticmethod
    def _contracted(draws: Draws, d: int, gram: Floats) -> Floats:
        """The sum of z z' in each draw, from that of psi psi' of the other mode."""
        core = draws.model.core
        if not core.learned:
            return gram
        W = np.stack([core.dense(w) for w in draws.W])
        W = W if d == 0 else W.transpose(0, 2, 1)
        return np.asarray(W @ gram @ W.transpose(0, 2, 1))
