"""`ExactGP`: Gaussian-process regression by Cholesky factorisation, with learned hyperparameters.

Memory is bounded: learning keeps one N x N array of float64 at a time (1.2 GB for N = 12,000), which is in turn the
Gram matrix, its Cholesky factor and its inverse. Everything else, gradients included, is computed in blocks of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from tuckergp.data.tables import Table
from tuckergp.errors import NotPositiveDefinite
from tuckergp.gp.base import LearningGP, check_asked
from tuckergp.gp.dense import Posterior, blocks, solve
from tuckergp.gp.hyper import Values
from tuckergp.gp.modes import Modes, ModesKernel, as_modes, blame, learned_modes, with_values
from tuckergp.linalg import inverse_in_place
from tuckergp.random import seed_of, stream

__all__ = ["ExactGP", "evidence"]

Floats: TypeAlias = npt.NDArray[np.float64]


class ExactGP(LearningGP):
    """GP regression with a product kernel over modes, exact in O(N^3).

    The kernel is ``scale`` times the product of the modes' kernels, which may be sums and products themselves. All
    their numbers and the noise variance are learned by type-II maximum likelihood, with analytic gradients, unless
    they are fixed.

    Parameters
    ----------
    modes : Kernel, list of Mode, or None
        A kernel stands for one mode of all columns. None: one mode a column, SE on whitened numbers, Identity on
        anything else. A mode's feature map is not used. Where a mode adds a Constant, its kernel gets a variance of
        its own.
    scale : float
        Variance in front of the kernel.
    noise : float
        Variance of the noise; with ``normalize_y``, as a share of the variance of y.
    learn : bool
        False keeps all numbers as they are.
    fixed : sequence of str
        Names in ``hyperparameters_`` that are not learned: whole (``day__period``), or the last part for all of that
        name (``period``).
    restarts : int
        Further searches, from random points.
    max_iter : int
        Steps of each search.
    learn_rows : int or None
        Learn hyperparameters from this many random rows alone; predictions use all. One step takes O(learn_rows^3).
    normalize_y : bool
        Standardise the targets inside.
    random_state : int, Generator or None
        For restarts and rows.

    Attributes
    ----------
    hyperparameters_ : dict of str to ndarray
        ``scale``, ``noise`` and the numbers of every kernel, in the model's units.
    kernel_ : ModesKernel
    modes_ : list of Mode
        The modes with the learned numbers in their kernels, for `FullRank` or `TuckerGPRegressor`; the variance in
        front is ``hyperparameters_["scale"]``.
    log_marginal_likelihood_ : float
        Of the standardised targets.
    learned_ : Optimum or None
        How the search went.
    n_iter_ : int
        Steps of the best search.
    n_features_in_ : int

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(60, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    >>> gp = ExactGP(SE(1.0)).fit(X, y)
    >>> mean, std = gp.predict([[0.5]], return_std=True, include_noise=False)
    >>> bool(abs(mean[0] - np.sin(0.5)) < 3 * std[0])
    True
    """

    def __init__(
        self,
        modes: Modes = None,
        scale: float = 1.0,
        noise: float = 0.1,
        learn: bool = True,
        fixed: Sequence[str] = (),
        restarts: int = 0,
        max_iter: int = 100,
        learn_rows: int | None = None,
        normalize_y: bool = True,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.modes = modes
        self.scale = scale
        self.noise = noise
        self.learn = learn
        self.fixed = fixed
        self.restarts = restarts
        self.max_iter = max_iter
        self.learn_rows = learn_rows
        self.normalize_y = normalize_y
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the hyperparameters and the posterior.

        Parameters
        ----------
        X : array of shape (N, p), data frame, or path to a CSV or Parquet file
        y : array of shape (N,)
        """
        table, target = self._read_data(X, y)
        modes = as_modes(self.modes, table)
        kernel = ModesKernel.of(modes, table, float(self.scale))
        some, some_target = table, target
        if self.learn_rows is not None and self.learn_rows < len(table):
            chosen = np.sort(stream(seed_of(self.random_state), 1).choice(len(table), self.learn_rows, replace=False))
            some, some_target = table.take(chosen), target[chosen]
        values = self._learn(lambda at: evidence(kernel, at, some, some_target), kernel)
        self.kernel_ = with_values(kernel, values)
        self.modes_ = learned_modes(modes, self.kernel_)
        self._X, self._y = table, target
        self._posterior = _solve(self.kernel_, values, table, target)
        self.log_marginal_likelihood_ = self._posterior.log_marginal_likelihood
        return self

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, include_noise: bool = True
    ) -> Floats | tuple[Floats, Floats]:
        """Predict the targets at inputs X.

        Parameters
        ----------
        X : as in `fit`
        return_std, return_cov : bool
            Also return standard deviations, shape (n,), or the covariance matrix, shape (n, n).
        include_noise : bool
            Those of new observations; False for those of f.
        """
        check_is_fitted(self)
        check_asked(return_std, return_cov, include_noise)
        table = self._read(X, reset=False)
        moments = self._posterior.predict(
            lambda columns: self.kernel_(self._X, _some(table, columns)),
            len(table),
            self.kernel_.diag(table) if return_std else None,
            self.kernel_(table) if return_cov else None,
        )
        return self._answer(moments, self._noise if include_noise else 0.0)

    def log_marginal_likelihood(
        self, hyperparameters: Values | None = None, gradient: bool = False
    ) -> float | tuple[float, Values]:
        """The log marginal likelihood of the (standardised) training targets.

        Parameters
        ----------
        hyperparameters : dict of str to ndarray, or None
            Some or all of those in ``hyperparameters_``; the others are as learned.
        gradient : bool
            Also return the derivatives in the logarithms of all of them.
        """
        check_is_fitted(self)
        values = self.hyperparameters_ | (hyperparameters or {})
        if gradient:
            return evidence(self.kernel_, values, self._X, self._y)
        return _solve(with_values(self.kernel_, values), values, self._X, self._y).log_marginal_likelihood


def _some(table: Table, rows: slice) -> Table:
    return table.take(np.arange(rows.start, rows.stop))


def _solve(kernel: ModesKernel, values: Values, X: Table, y: Floats, weight: Floats | None = None) -> Posterior:
    noise = float(values["noise"][0])
    noises = noise if weight is None else noise / weight
    try:
        return solve(lambda rows, columns: kernel(_some(X, rows), _some(X, columns)), noises, y)
    except NotPositiveDefinite as error:
        raise blame(kernel.parts, [X] * len(kernel.parts), error) from error


def evidence(
    kernel: ModesKernel, values: Values, X: Table, y: Floats, weight: Floats | None = None
) -> tuple[float, Values]:
    """The log marginal likelihood and its derivatives in the logarithms of the hyperparameters.

    Rasmussen and Williams (2006), equation 5.9: tr((alpha alpha' - K^-1) dK) / 2. An observation of weight w counts as
    w equal ones: as one with 1 / w of the noise, times a factor for the density of the other w - 1 numbers.
    """
    kernel = with_values(kernel, values)
    inverse, alpha, value = _solve(kernel, values, X, y, weight)
    inverse_in_place(inverse)
    slopes = {name: np.zeros(len(v)) for name, v in values.items()}
    share = 1.0 if weight is None else 1 / weight
    slopes["noise"] += 0.5 * values["noise"] * np.sum(share * (alpha**2 - np.diag(inverse)))
    if weight is not None:
        slopes["noise"] += 0.5 * np.sum(1 - weight)
        value += 0.5 * float(np.sum((1 - weight) * np.log(2 * np.pi * values["noise"]) - np.log(weight)))
    for columns in blocks(len(X)):
        # entries on and below the diagonal; those below it count twice
        weights = np.tril(np.outer(alpha[columns.start :], alpha[columns]) - inverse[columns.start :, columns])
        weights[np.diag_indices(weights.shape[1])] *= 0.5
        below = _some(X, slice(columns.start, len(X)))
        for name, slope in kernel.gradient(weights, below, _some(X, columns)).items():
            slopes[name] += slope
    return value, slopes
