"""`GridGP`: GP regression on a grid, some of whose cells may be missing, by the Kronecker structure of its kernel.

Stations and days, say: memory is sum_d M_d^2 + M numbers for M cells, never N x N. With missing cells predictions are
exact up to the tolerance of conjugate gradients, and the determinant in the marginal likelihood is approximated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from tuckergp.data.tables import Table, distinct_rows
from tuckergp.errors import InputError, NotPositiveDefinite
from tuckergp.gp.base import LearningGP, check_asked
from tuckergp.gp.dense import Moments, blocks
from tuckergp.gp.hyper import Values
from tuckergp.gp.kronecker import WORKSPACE, Cells, KroneckerSystem, along, contract, outer
from tuckergp.gp.modes import ModesKernel, as_modes, blame, learned_modes, with_values
from tuckergp.model.mode import Mode

__all__ = ["GridGP"]

Floats: TypeAlias = npt.NDArray[np.float64]

LARGEST_GRID = 100_000_000
"""The most cells of a grid; with more the inputs are taken to be scattered."""


@dataclass(frozen=True)
class Grid:
    """The distinct inputs of every mode, and which cell every observation is.

    Attributes
    ----------
    axes : list of Table
    codes : list of ndarray of int, each of shape (N,)
        The place of every observation on each axis.
    """

    axes: list[Table]
    codes: list[Cells]

    @classmethod
    def of(cls, modes: Sequence[Mode], table: Table) -> Grid:
        """The grid whose axes are the distinct inputs in the rows of a table."""
        axes, codes = [], []
        for mode in modes:
            inputs = table.select(mode.columns)
            first, code = distinct_rows(inputs, mode.columns)
            axes.append(inputs.take(first))
            codes.append(code)
        return cls(axes, codes)

    def cells(self) -> Cells:
        """The flat number of every observation's cell, each once."""
        shape = tuple(map(len, self.axes))
        if np.prod(shape, dtype=np.float64) > LARGEST_GRID:
            raise InputError(
                f"The grid would have {' x '.join(map(str, shape))} cells for {len(self.codes[0])} observations: these "
                "inputs lie on no grid. Use ExactGP, or put columns into modes that repeat their values."
            )
        cells: Cells = np.ravel_multi_index(self.codes, shape)
        numbers, counts = np.unique(cells, return_counts=True)
        if (counts > 1).any():
            again = np.flatnonzero(cells == numbers[np.argmax(counts > 1)])[:2]
            raise InputError(
                f"GridGP takes one observation for each cell, but rows {again[0]} and {again[1]} have the same inputs; "
                "average them, or use ExactGP."
            )
        return cells


class GridGP(LearningGP):
    """GP regression with a product kernel over the modes of a grid, some cells missing.

    The model is that of `ExactGP`. A full grid takes O(sum_d M_d^3 + M sum_d M_d) and everything is exact. With
    missing cells, every solve takes some steps of conjugate gradients of O(M sum_d M_d) each, and learning replaces
    the eigenvalues of the Gram matrix of the N observed cells by N / M times the N largest of the whole grid
    (Wilson et al., 2014).

    Parameters
    ----------
    modes : list of Mode or None
        The axes. None: one mode for each column, SE on whitened numbers, Identity on anything else. Where a mode adds a
        Constant, its kernel gets a variance of its own.
    scale, noise, learn, fixed, restarts, max_iter, normalize_y, random_state
        As in `ExactGP`.
    tolerance : float
        Length of the residual relative to the right-hand side where conjugate gradients stop.
    max_cg : int
        Most steps of conjugate gradients.

    Attributes
    ----------
    hyperparameters_ : dict of str to ndarray
        ``scale``, ``noise`` and the numbers of every kernel, in the model's units.
    kernel_ : ModesKernel
    modes_ : list of Mode
        The modes with the learned numbers in their kernels, for `FullRank` or `TuckerGPRegressor`; the variance in
        front is ``hyperparameters_["scale"]``.
    shape_ : tuple of int
        (M_1, ..., M_D).
    log_marginal_likelihood_ : float
        Of the standardised targets; approximate with missing cells.
    learned_ : Optimum or None
        How the search went.
    n_iter_ : int
        Steps of the best search.
    n_features_in_ : int

    Examples
    --------
    >>> from tuckergp.kernels import SE, Identity
    >>> station, day = (axis.ravel() for axis in np.meshgrid([0, 1, 2], np.arange(30.0), indexing="ij"))
    >>> X = {"station": station, "day": day}
    >>> gp = GridGP([Mode("station", Identity()), Mode("day", SE(3.0))]).fit(X, station + np.sin(day / 5))
    >>> gp.predict({"station": [1], "day": [7.5]}).round(2) == np.round(1 + np.sin(1.5), 2)
    array([ True])
    """

    def __init__(
        self,
        modes: Sequence[Mode] | None = None,
        scale: float = 1.0,
        noise: float = 0.1,
        learn: bool = True,
        fixed: Sequence[str] = (),
        restarts: int = 0,
        max_iter: int = 100,
        tolerance: float = 1e-8,
        max_cg: int = 1000,
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
        self.tolerance = tolerance
        self.max_cg = max_cg
        self.normalize_y = normalize_y
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the hyperparameters and the posterior.

        Parameters
        ----------
        X : array of shape (N, p), data frame, or path to a CSV or Parquet file
            The observed cells, in any order, each once.
        y : array of shape (N,)
        """
        table, target = self._read_data(X, y)
        modes = as_modes(self.modes, table)
        kernel = ModesKernel.of(modes, table, float(self.scale))
        self._grid = Grid.of(modes, table)
        self._cells = self._grid.cells()
        self.shape_ = tuple(map(len, self._grid.axes))
        values = self._learn(lambda at: self._evidence(kernel, at, target), kernel)
        self.kernel_, self._y = with_values(kernel, values), target
        self.modes_ = learned_modes(modes, self.kernel_)
        self._system = self._system_of(self.kernel_, values)
        self._alpha = self._system.solve(target[:, None])
        self.log_marginal_likelihood_ = _log_marginal_likelihood(self._system, target, self._alpha[:, 0])
        return self

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, include_noise: bool = True
    ) -> Floats | tuple[Floats, Floats]:
        """Predict the targets at inputs X, on the grid or not.

        Parameters
        ----------
        X : as in `fit`
        return_std, return_cov : bool
            Also return standard deviations, shape (n,), or the covariance matrix, shape (n, n). With missing cells
            they take one solve for each input.
        include_noise : bool
            Those of new observations; False for those of f.
        """
        check_is_fitted(self)
        check_asked(return_std, return_cov, include_noise)
        table = self._read(X, reset=False)
        asked = Grid.of(self.modes_, table)
        pairs = zip(self.kernel_.parts, asked.axes, self._grid.axes, strict=True)
        cross = [mode(new, axis) for mode, new, axis in pairs]
        system = self._system
        mean = system.scale * contract(cross, asked.codes, system.scatter(self._alpha)[..., 0])
        variance = covariance = None
        if return_cov:
            K = self._cross(cross, asked.codes, slice(0, len(table)))
            covariance = self.kernel_(table) - K.T @ system.solve(K)
        elif return_std and system.full:
            rotated = [(C @ U) ** 2 for C, (_, U) in zip(cross, system.eigen, strict=True)]
            explained = contract(rotated, asked.codes, 1 / (system.spectrum + system.noise))
            variance = self.kernel_.diag(table) - system.scale**2 * explained
        elif return_std:
            variance = self.kernel_.diag(table)
            at_a_time = max(1, WORKSPACE // system.n_cells)
            for start in range(0, len(table), at_a_time):
                rows = slice(start, min(start + at_a_time, len(table)))
                K = self._cross(cross, asked.codes, rows)
                variance[rows] -= np.einsum("ij,ij->j", K, system.solve(K))
        return self._answer(Moments(mean, variance, covariance), self._noise if include_noise else 0.0)

    def log_marginal_likelihood(
        self, hyperparameters: Values | None = None, gradient: bool = False
    ) -> float | tuple[float, Values]:
        """The log marginal likelihood of the (standardised) training targets, approximate with missing cells.

        Parameters
        ----------
        hyperparameters : dict of str to ndarray, or None
            Some or all of those in ``hyperparameters_``; the others are as learned.
        gradient : bool
            Also return the derivatives in the logarithms of all of them.
        """
        check_is_fitted(self)
        values = self.hyperparameters_ | (hyperparameters or {})
        evidence, slopes = self._evidence(self.kernel_, values, self._y)
        return (evidence, slopes) if gradient else evidence

    def _cross(self, cross: Sequence[Floats], codes: Sequence[Cells], rows: slice) -> Floats:
        """Covariances of f between the training cells and some new inputs, shape (N, n)."""
        K = np.full((len(self._cells), rows.stop - rows.start), self._system.scale)
        for C, training, new in zip(cross, self._grid.codes, codes, strict=True):
            K *= C.T[np.ix_(training, new[rows])]
        return K

    def _system_of(self, kernel: ModesKernel, values: Values) -> KroneckerSystem:
        grams = [mode(axis) for mode, axis in zip(kernel.parts, self._grid.axes, strict=True)]
        noise = float(values["noise"][0])
        system = KroneckerSystem(grams, float(kernel.scale), noise, self._cells, self.tolerance, self.max_cg)
        try:
            system.eigen  # noqa: B018  # raises if a Gram matrix has negative eigenvalues
        except NotPositiveDefinite as error:
            raise blame(kernel.parts, self._grid.axes, error) from error
        return system

    def _evidence(self, kernel: ModesKernel, values: Values, y: Floats) -> tuple[float, Values]:
        """The log marginal likelihood and its derivatives, mode by mode: sum(weight_d * dK_d)."""
        kernel = with_values(kernel, values)
        system = self._system_of(kernel, values)
        alpha = system.solve(y[:, None])
        tensor = system.scatter(alpha)[..., 0]
        count, spectrum = system.leading, system.spectrum
        # d log |K + s I| = sum_i d lambda_i / (lambda_i + s) over the counted eigenvalues; the others are zero
        inverse = np.where(count > 0, 1 / (count * spectrum + system.noise), 0.0)
        of_zeros = (len(y) - np.count_nonzero(count)) / system.noise
        squared = float(np.sum(alpha**2))
        explained = float(y @ alpha[:, 0]) - system.noise * squared  # alpha' K alpha
        slopes = {
            "scale": np.array([0.5 * (explained - np.sum(inverse * count * spectrum))]),
            "noise": np.array([0.5 * system.noise * (squared - inverse.sum() - of_zeros)]),
        }
        for d, axis in enumerate(self._grid.axes):
            weight = _weight(system, tensor, inverse * count, d)
            total: Values = {}
            for columns in blocks(len(axis)):
                some = axis.take(np.arange(columns.start, columns.stop))
                for name, slope in kernel.parts[d].gradient(weight[:, columns], axis, some).items():
                    total[name] = total.get(name, 0.0) + slope
            slopes |= kernel.named(d, total)
        return _log_marginal_likelihood(system, y, alpha[:, 0]), slopes


def _log_marginal_likelihood(system: KroneckerSystem, y: Floats, alpha: Floats) -> float:
    return float(-0.5 * (y @ alpha + system.log_determinant() + len(y) * np.log(2 * np.pi)))


def _weight(system: KroneckerSystem, tensor: Floats, inverse: Floats, d: int) -> Floats:
    """What the derivative of K_d is multiplied by, entry by entry, shape (M_d, M_d).

    Half of (the data term) alpha' (K_1 kron .. dK_d .. kron K_D) alpha minus (the determinant's) sum of the
    derivatives of eigenvalues, v' dK_d v times those of the other modes.
    """
    spread = tensor
    others = [np.ones_like(values) if e == d else values for e, (values, _) in enumerate(system.eigen)]
    for e, K in enumerate(system.grams):
        spread = spread if e == d else along(K, spread, e)
    rest = tuple(e for e in range(tensor.ndim) if e != d)
    data = np.tensordot(tensor, spread, axes=(rest, rest))
    _, vectors = system.eigen[d]
    each = (inverse * outer(others)).sum(axis=rest)
    weight: Floats = 0.5 * system.scale * (data - (vectors * each) @ vectors.T)
    return weight
