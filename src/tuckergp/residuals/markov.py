"""A process on a line as a Markov process: draws, densities, states given data, values between and beyond.

A Matern-1/2, -3/2 or -5/2 process with its 0, 1 or 2 derivatives is Markov, so everything here is exact and linear in
the number of rows M. The states of a draw hold f, f'/lambda, f''/lambda^2, lambda = sqrt(2 nu) / lengthscale. The
filters are those of Hartikainen and Sarkka (2010). Sums of such processes are in `tuckergp.residuals.markov_sum`; what
a sampler does with them is in `tuckergp.residuals.line_draws`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.compute import line as compute
from tuckergp.compute import line_data, line_steps
from tuckergp.errors import InputError
from tuckergp.linalg import solve_lower

__all__ = ["LineProcess", "MaternProcess", "Stacked", "independent_ranks", "log_likelihood"]

Floats = npt.NDArray[np.float64]

Stacked: TypeAlias = tuple[npt.NDArray[np.int64], Floats, Floats]
"""Of each process whose states are stacked: its order, 1 over its unit of time, its standard deviation."""


# How many lengthscales stand for all that a line can have.
LENGTHSCALES = 16


@dataclass(frozen=True, eq=False)
class LineProcess(ABC):
    """A Markov process of unit variance on the distinct values of one column.

    Its numbers are those that a sampler may move, on scales without bounds.

    Parameters
    ----------
    t : ndarray, shape (M,)
        Increasing, all different; spaced at will.
    """

    t: Floats

    def __post_init__(self) -> None:
        if self.t.ndim != 1 or not self.t.size or not np.isfinite(self.t).all() or (np.diff(self.t) <= 0).any():
            raise InputError(f"{type(self).__name__}: t must hold at least one finite value, sorted, each once.")

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers the state of one rank is, p."""

    @property
    @abstractmethod
    def stacked(self) -> Stacked:
        """The processes whose states are stacked, see `tuckergp.compute.line_steps.stack`."""

    @property
    @abstractmethod
    def numbers(self) -> tuple[float, ...]:
        """Logarithms of lengthscales, then whatever else a sampler may move."""

    @abstractmethod
    def with_numbers(self, numbers: Sequence[float]) -> Self:
        """Return the same rows with other numbers; cheap, because the rows are not checked again."""

    @property
    @abstractmethod
    def n_lengthscales(self) -> int:
        """How many of the numbers are logarithms of lengthscales."""

    def _changed(self, **fields: object) -> Self:
        """The same rows with other values of fields, which are not checked."""
        other = object.__new__(type(self))
        vars(other).update({name: vars(self)[name] for name in self.__dataclass_fields__}, _gaps=self._gaps, **fields)
        return other

    def candidates(self, j: int, rng: np.random.Generator) -> list[tuple[float, ...]]:
        """Numbers to look at for a start, among which lengthscale j takes all values that matter."""
        numbers = self.numbers
        return [(*numbers[:j], x, *numbers[j + 1 :]) for x in self.log_range.tolist()]

    @property
    def log_range(self) -> Floats:
        """Logarithms of lengthscales, from those that make rows independent to those that make them a polynomial."""
        gaps = np.diff(self.t)
        if not len(gaps):
            return np.zeros(0)
        return np.linspace(np.log(np.median(gaps) / 2), np.log(4 * (self.t[-1] - self.t[0])), LENGTHSCALES)

    @property
    def noise_shape(self) -> tuple[int, int]:
        """Standard normal numbers that a draw of states takes for each rank: (M, 2 p)."""
        return len(self.t), 2 * self.size

    @cached_property
    def _gaps(self) -> Floats:
        return np.concatenate([[np.inf], np.diff(self.t)])

    @cached_property
    def _steps(self) -> tuple[Floats, Floats]:
        T, L = line_steps.transitions(self._gaps, *self.stacked)
        return T, L

    @cached_property
    def _innovations(self) -> tuple[Floats, Floats]:
        roots, deviations = compute.innovations(*self._steps)
        return roots, deviations

    # Prior: whitening, its inverse, the density

    def whiten(self, X: Floats) -> Floats:
        """C^-1 X for X (M, c), where K = C C' (Cholesky), so that its inner products are X'K^-1 X."""
        return self._filter(X, colour=False)[0]

    def colour(self, Z: Floats) -> Floats:
        """C Z, the inverse of `whiten`: standard normal columns become draws with covariance K."""
        return self._filter(Z, colour=True)[0]

    def _filter(self, X: Floats, *, colour: bool, keep: bool = False) -> tuple[Floats, Floats]:
        X = np.ascontiguousarray(X, dtype=np.float64)
        states = np.empty((len(X) if keep else 0, self.size, X.shape[1]))
        return compute.filter_values(self._steps[0], *self._innovations, X, colour, states, keep), states

    @property
    def log_determinant(self) -> float:
        """The logarithm of |K|."""
        return float(2 * np.log(self._innovations[1]).sum())

    def log_density(self, E: Floats, precision: Floats) -> float:
        """Logarithm of N(E; 0, K kron Lambda^-1) of E (M, r), Lambda = ``precision`` (r, r), normalised."""
        rows, r = E.shape
        root = np.asarray(np.linalg.cholesky(precision))
        # -1/2 (M r log 2 pi + r log |K| - M log |Lambda| + tr E'K^-1 E Lambda); Lambda = L L', K = C C', so that the
        # trace is |C^-1 E L|^2
        scale = rows * (2 * np.log(np.diag(root)).sum() - r * np.log(2 * np.pi)) - r * self.log_determinant
        return float(scale - (self.whiten(E @ root) ** 2).sum()) / 2

    # Posterior: states given data, states given values

    def states_given_data(
        self, A: Floats, b: Floats, mean: Floats, precision: Floats, noise: Floats | None = None
    ) -> Floats:
        """Mean of p(states of E | data, B), (M, p, r); with standard normal ``noise`` (M, 2 p, r), a draw.

        E is ``[:, 0]`` of it, and psi = mean + E. Filters forward, then draws backward, in O(M (p r)^3), with square
        roots of covariances: the precision of the states has entries of order gap^(1 - 2p), next to which the data
        would vanish where rows are close.

        Parameters
        ----------
        A, b : ndarray, shapes (M, r, r) and (M, r)
            Statistics of the rows, noise precision included.
        mean : ndarray, shape (M, r)
            Phi B.
        precision : ndarray, shape (r, r)
            Lambda.
        """
        rows, r = mean.shape
        inverse, A_scaled, b_scaled = independent_ranks(A, b, mean, precision)
        if noise is None:
            noise = np.zeros((*self.noise_shape, r))
        noise = np.ascontiguousarray(noise.reshape(rows, 2, self.size * r))
        roots, inner, means, evidence = line_data.forward(*self._steps, A_scaled, b_scaled)
        if np.isnan(evidence):
            raise FloatingPointError("the statistics A of the rows of a line are not positive semi-definite")
        states = line_data.backward(*self._steps, roots, inner, means, noise)
        # from E L, whose ranks are independent, back to E
        return np.asarray(states.reshape(rows, self.size, r) @ inverse)

    def log_evidence(self, A: Floats, b: Floats, mean: Floats, precision: Floats) -> float:
        """Logarithm of p(data | B, lengthscale), E integrated out, up to a constant; costs one forward filter.

        That is the log of the integral of exp(sum_m b_m'psi_m - psi_m'A_m psi_m / 2) over p(psi | B).
        """
        _, A_scaled, b_scaled = independent_ranks(A, b, mean, precision)
        # log p(data | E) = log p(data | E = 0) + sum_m e_m'(b_m - A_m mean_m) - e_m'A_m e_m / 2
        return self.evidence_of(A_scaled, b_scaled) + log_likelihood(np.zeros_like(mean), A, b, mean)

    def evidence_of(self, A: Floats, b: Floats) -> float:
        """`log_evidence` of statistics from `independent_ranks`, without the terms that do not depend on E."""
        return float(line_data.forward(*self._steps, A, b)[3])

    def states_given_values(self, E: Floats, precision: Floats, noise: Floats | None = None) -> Floats:
        """Mean of the states given the values E (M, r), (M, p, r); with ``noise`` (M, 2 p, r), a draw, in O(M r).

        Derivatives, and parts of a sum, are needed for answers alone, so a sampler may move E and the lengthscale as
        it likes and draw the states of the draws that it keeps.
        """
        if self.size == 1:
            return E[:, None].copy()
        # E L has independent ranks: filter forward for E(state_m | values up to m), smooth backward, then times L^-1
        root = np.asarray(np.linalg.cholesky(precision))
        _, states = self._filter(E @ root, colour=False, keep=True)
        noise = np.zeros((*self.noise_shape, E.shape[1])) if noise is None else np.ascontiguousarray(noise)
        compute.smooth_values(*self._steps, *self._innovations, states, noise)
        states = np.asarray(states @ _inverse(root))
        states[:, 0] = E
        return states

    # Prediction

    def predict(self, states: Floats, t: Floats) -> tuple[Floats, Floats]:
        """Mean of the states at new values t (M*,) given those at the rows (M, p, r), (M*, p, r).

        Exact between two rows and beyond the ends, because the states next to a value separate it from the rest. Also
        returns the variance of E, (M*,), times Lambda^-1.
        """
        t = np.asarray(t, dtype=np.float64)
        place = np.searchsorted(self.t, t, side="right")
        before, after = self._neighbours(t, place)
        # without noise: E(e* | states of the neighbours) = T1 x_left + G S^-1 (x_right - T2 T1 x_left)
        noise = np.zeros((len(t), *states.shape[1:]))
        means, variance = compute.interpolate(
            before, after, *self.stacked, place, np.ascontiguousarray(states), noise, False
        )
        return means, variance

    def draw_at(self, states: Floats, t: Floats, precision: Floats, noise: Floats) -> Floats:
        """Draw the states at new values t (M*,) jointly, in any order and repeated or not, (M*, p, r).

        ``noise`` (M*, p, r) is standard normal.
        """
        t = np.asarray(t, dtype=np.float64)
        order = np.argsort(t, kind="stable")
        new = t[order]
        place = np.searchsorted(self.t, new, side="right")
        before, after = self._neighbours(new, place)
        # between the same two rows, each new value follows the new value before it: p(e_1) p(e_2 | e_1) ...
        chained = np.flatnonzero(np.diff(place) == 0) + 1
        before[chained] = new[chained] - new[chained - 1]
        # w L^-1 has covariance (L L')^-1 = Lambda^-1
        coloured = np.ascontiguousarray(noise @ _inverse(np.asarray(np.linalg.cholesky(precision))))
        drawn, _ = compute.interpolate(
            before, after, *self.stacked, place, np.ascontiguousarray(states), coloured, True
        )
        out = np.empty_like(drawn)
        out[order] = drawn
        return out

    def _neighbours(self, t: Floats, place: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
        ends = np.concatenate([[-np.inf], self.t, [np.inf]])
        return t - ends[place], ends[place + 1] - t


@dataclass(frozen=True, eq=False)
class MaternProcess(LineProcess):
    """A Matern process on the distinct values of one column.

    Parameters
    ----------
    t : ndarray, shape (M,)
        Increasing, all different; spaced at will.
    order : {1, 2, 3}
        p = nu + 1/2: Matern-1/2, -3/2, -5/2. A state is the value and p - 1 derivatives.
    lengthscale : float
        As in `tuckergp.kernels`.

    Examples
    --------
    >>> process = MaternProcess(np.array([0.0, 1.0, 3.0]), order=1, lengthscale=2.0)
    >>> K = process.colour(np.eye(3)) @ process.colour(np.eye(3)).T
    >>> np.allclose(K[0], np.exp([0.0, -0.5, -1.5]))
    True
    """

    order: int
    lengthscale: float

    def __post_init__(self) -> None:
        if self.order not in (1, 2, 3):
            raise InputError(f"MaternProcess: order must be 1, 2 or 3 (Matern-1/2, -3/2, -5/2), not {self.order!r}.")
        if not (np.isfinite(self.lengthscale) and self.lengthscale > 0):
            raise InputError(f"MaternProcess: lengthscale must be positive and finite, not {self.lengthscale!r}.")
        super().__post_init__()

    def at(self, lengthscale: float) -> Self:
        """Return the same rows with another lengthscale; cheap, because the rows are not checked again."""
        if not 0 < lengthscale < np.inf:
            raise InputError(f"MaternProcess: lengthscale must be positive and finite, not {lengthscale!r}.")
        return self._changed(lengthscale=lengthscale)

    @property
    def size(self) -> int:
        """The order."""
        return self.order

    @cached_property
    def stacked(self) -> Stacked:
        """The process itself."""
        rate = np.sqrt(2 * self.order - 1) / self.lengthscale
        return np.array([self.order]), np.array([rate]), np.ones(1)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The logarithm of the lengthscale."""
        return (float(np.log(self.lengthscale)),)

    def with_numbers(self, numbers: Sequence[float]) -> Self:
        """Return the same rows with another logarithm of the lengthscale."""
        return self.at(float(np.exp(numbers[0])))

    @property
    def n_lengthscales(self) -> int:
        """One."""
        return 1


def _inverse(root: Floats) -> Floats:
    """Inverse of a lower triangular matrix."""
    return np.ascontiguousarray(solve_lower(root, np.eye(len(root))))


MOST_KNOWN = 1e10
"""The precision of data about a row is at most this many times that of its prior."""


def independent_ranks(A: Floats, b: Floats, mean: Floats, precision: Floats) -> tuple[Floats, Floats, Floats]:
    """L^-1 for Lambda = L L', and the statistics of E L, whose ranks are independent a priori."""
    inverse = _inverse(np.asarray(np.linalg.cholesky(precision)))
    # psi_m = mean_m + L^-T e_m, so A_m becomes L^-1 A_m L^-T and b_m becomes L^-1 (b_m - A_m mean_m)
    A_scaled = np.ascontiguousarray(inverse @ A @ inverse.T)
    b_scaled = (b - np.einsum("mkl,ml->mk", A, mean)) @ inverse.T
    # weights as large as 1e12 ask for more digits than there are
    known = np.trace(A_scaled, axis1=1, axis2=2)
    most = np.minimum(1.0, MOST_KNOWN / np.maximum(known, MOST_KNOWN))
    return inverse, A_scaled * most[:, None, None], np.ascontiguousarray(b_scaled * most[:, None])


def log_likelihood(E: Floats, A: Floats, b: Floats, mean: Floats) -> float:
    """Logarithm of p(data | E), up to a constant: sum_m b_m'psi_m - psi_m'A_m psi_m / 2, psi = mean + E (M, r)."""
    psi = mean + E
    return float(np.sum(psi * (b - np.matmul(A, psi[:, :, None])[:, :, 0] / 2)))
