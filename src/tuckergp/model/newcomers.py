"""Newcomers whose set is not known, such as items that nobody rated: their factors in each draw.

The features of a set, who rated an item, have length one and carry much of the factors of training rows. Where the set
is not known, factors have the distribution that those of training rows have given all other features: a regression of
psi on these in each draw, and the covariance of what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.compute.keyed import keyed_normals
from tuckergp.linalg import Matrix
from tuckergp.priors.regression import Regression
from tuckergp.random import Keys

__all__ = ["NewcomerRegression", "Newcomers"]

Floats = npt.NDArray[np.float64]

# Precision of weights relative to what the mean row counts: of the intercept, of the features.
INTERCEPT, RIDGE = 1e-3, 10.0
# What is added to the diagonal of the Gram matrix of observations, relative to its mean.
SHRINKAGE = 1e-3
# The least variance of a factor around the regression, relative to the mean over the ranks.
FLOOR = 1e-6
# The names under which draws keep the two arrays.
NAMES = ("newcomer_weights", "newcomer_root")


class Newcomers(NamedTuple):
    """The factors of rows whose set is not known: normal around a regression on their other features.

    Attributes
    ----------
    weights : ndarray, shape (S, 1 + k, r); in a single draw (1 + k, r)
        Of an intercept and of the k other features.
    root : ndarray, shape (S, r, r); in a single draw (r, r)
        The covariance is root' root.
    """

    weights: Floats
    root: Floats

    @classmethod
    def of(cls, values: Mapping[str, Floats]) -> Newcomers | None:
        """Those that draws keep of a mode; None where they keep none."""
        return cls(*(values[name] for name in NAMES)) if NAMES[0] in values else None

    def named(self) -> dict[str, Floats]:
        """The arrays by their names in draws."""
        return dict(zip(NAMES, self, strict=True))

    @staticmethod
    def shapes(k: int, r: int) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays in one draw, by name."""
        return dict(zip(NAMES, ((1 + k, r), (r, r)), strict=True))

    def factors(self, features: Matrix, keys: Keys, draws: Keys | None) -> Floats:
        """psi of rows with these other features (m, k) in all draws, (m, S, r).

        The mean, or with the keys of the draws a draw, by the random numbers that the keys of the rows name.
        """
        S, width, r = self.weights.shape
        weights = self.weights.transpose(1, 0, 2).reshape(width, S * r)
        psi: Floats = (weights[0] + np.asarray(features @ weights[1:])).reshape(-1, S, r)
        if draws is not None:
            psi += np.einsum("msk,skj->msj", keyed_normals(keys, draws, r), self.root)
        return psi

    @property
    def covariance(self) -> Floats:
        """The covariance of the factors of a row around their mean, (S, r, r)."""
        return np.asarray(np.einsum("ski,skj->sij", self.root, self.root))


class NewcomerRegression:
    """The regression of the factors of training rows of one mode on their features besides the set.

    Rows count by the root of how often they are observed: newcomers are met in proportion to that, and rows that are
    often observed differ from others. The intercept is the one that predicts the observations best, not the mean of
    the rows: people rate what they like, so that the factors of the rows of an observation fit together better than
    those of any rows.

    Parameters
    ----------
    features : ndarray or csr_array, shape (M, k)
    observed : ndarray of int, shape (n,)
        The row of each observation.
    """

    def __init__(self, features: Matrix, observed: npt.NDArray[np.integer]) -> None:
        count = np.sqrt(np.bincount(observed, minlength=features.shape[0]))
        share = count / count.mean()
        self.root = np.sqrt(share)[:, None]
        self.inputs = sparse.hstack([sparse.csr_array(part) for part in (np.ones((len(share), 1)), features)], "csr")
        # as the divisor n - 1 of a variance, for rows that count differently
        self.freedom = max(len(share) - (share**2).mean(), 1.0)
        weighted = sparse.csr_array(sparse.diags_array(self.root[:, 0]) @ self.inputs)
        self.regression = Regression(weighted, [slice(0, 1), slice(1, int(self.inputs.shape[1]))])

    def given(self, psi: Floats, rows: npt.NDArray[np.integer], z: Floats) -> Newcomers:
        """Newcomers in one draw, given the factors of the training rows (M, r).

        ``rows`` (n,) are those of some observations, ``z`` (n, r) is what multiplies their factors there.
        """
        r = psi.shape[1]
        none = np.zeros((int(self.inputs.shape[1]), r))
        weights = self.regression.solve(self.root * psi, none, np.array([INTERCEPT, RIDGE]), none)
        left = psi - np.asarray(self.inputs @ weights)
        # least squares of what is left of f on z
        gram, f = z.T @ z, (z * left[rows]).sum(axis=1)
        gram[np.diag_indices(r)] += SHRINKAGE * np.trace(gram) / r + np.finfo(float).tiny
        weights[0] += np.linalg.solve(gram, z.T @ f)
        # the covariance of what is left is R'R; the floor is for fewer rows than ranks
        scaled = self.root * left / self.freedom**0.5
        floor = np.sqrt(FLOOR * (scaled**2).sum() / r + np.finfo(np.float64).tiny) * np.eye(r)
        return Newcomers(weights, np.asarray(np.linalg.qr(np.vstack([scaled, floor]), mode="r")))
