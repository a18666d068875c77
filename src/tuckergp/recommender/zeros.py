"""The zeros of clicks in a fold-in: what all pairs that were not chosen say about the rows to be drawn.

They enter as a prior of a row: in each draw, a precision alpha w0 a_u sum_j c_j z_j z_j' for a user, alpha w0 c_j
sum_u a_u z_u z_u' for an item, over the rows of the other mode, with target 0.
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
    """The weights of a model's zeros by item, and those of all pairs by user, in the order in which draws keep them.

    Attributes
    ----------
    likelihood : AllPairs
    weight : ndarray, shape (items,)
    of_users : ndarray, shape (users,)
    """

    likelihood: AllPairs
    weight: Floats
    of_users: Floats

    @classmethod
    def of(cls, likelihood: AllPairs, draws: Draws, history: History) -> Zeros:
        """Those of a fitted model; items that came after the fit count as chosen once.

        Users that came after it, and all whose choices were left out of a file, weigh 1; where
        activity counts, those who were forgotten weigh nothing.
        """
        chosen = np.ones(len(draws.modes[1].rows["psi"]))
        if likelihood.popularity:  # only then is it worth to count
            chosen[: len(history.base.ids[1])] = history.base.ratings_per_item
        of_users = np.ones(len(draws.modes[0].rows["psi"]))
        if likelihood.activity and not history.is_withheld:
            made = history.base.ratings_per_user.astype(np.float64)
            of_users[: len(made)] = np.where(made > 0, likelihood.weights_of_users(made), 0.0)
        return cls(likelihood, likelihood.weights_of_zeros(chosen), of_users)

    def at(self, items: Ints) -> Floats:
        """The weights at some kept rows of items; a row of -1 is an item that came after the fit."""
        return np.where(items >= 0, self.weight[items], float(self.likelihood.zeros))

    def beside(
        self, draws: Draws, d: int, prior: Prior, circumstances: list[Floats], share: Floats | None = None
    ) -> Prior:
        """The prior of rows of mode d together with their zeros.

        ``share`` (n,) are weights of all pairs of the rows, where they are users.
        ``circumstances`` has for each row the products of the factors of drift and context at its observations,
        (n, S, r): the zeros share them equally. None of it without such modes.
        """
        alpha = float(self.likelihood.temper) * draws.unknowns["alpha"]
        weight = self.weight if d == 0 else self.of_users * float(self.likelihood.zeros)
        gram = alpha[:, None, None] * self._contracted(draws, d, draws.modes[1 - d].gram(weight))
        mean, precision = prior
        means, precisions = mean.copy(), []
        for m, P in enumerate(precision):
            of_row = gram if share is None else share[m] * gram
            if circumstances:
                x = circumstances[m]
                of_row = of_row * np.einsum("isj,isk->sjk", x, x) / len(x)
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
