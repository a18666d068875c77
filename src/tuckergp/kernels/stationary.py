"""Stationary kernels, which depend on x - x' alone: squared exponential, Matern, periodic.

They know the derivatives in their numbers, and their spectrum, from which `tuckergp.features.Fourier` draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ive

from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.kernels.algebra import Kernel, Pullback

__all__ = ["SE", "Matern12", "Matern32", "Matern52", "Periodic", "Radial", "Stationary"]

Floats: TypeAlias = npt.NDArray[np.float64]
PerColumn: TypeAlias = float | Sequence[float] | npt.NDArray[np.float64]

FAR = 1e4
"""Up to so many lengthscales from the mean, differences of squares of coordinates are as good as squares of gaps."""


class Stationary(Kernel):
    """A kernel of x - x' alone, one at zero, from whose spectrum frequencies can be drawn (Bochner)."""

    @property
    def stationary(self) -> bool:
        """Whether the kernel depends on x - x' alone: always."""
        return True

    def spectral_sample(self, n: int, p: int, rng: np.random.Generator) -> Floats:
        """Draw n angular frequencies from the spectrum in p dimensions, shape (n, p)."""
        raise NotImplementedError

    def frequencies(self, n: int, names: Sequence[str], rng: np.random.Generator) -> Floats:
        """Draw from the spectrum over all columns of a table, zero on those not read, shape (n, p)."""
        mine = self.reads(names)
        omega = np.zeros((n, len(names)))
        omega[:, [list(names).index(name) for name in mine]] = self.spectral_sample(n, len(mine), rng)
        return omega


class Radial(Stationary):
    """A function of the distance |(x - x') / lengthscale|, which knows its spectral density."""

    learned = ("lengthscale",)

    def __init__(self, lengthscale: PerColumn = 1.0, columns: str | Sequence[str] | None = None) -> None:
        self.lengthscale = lengthscale
        self.columns = columns

    def lengthscales(self, p: int) -> Floats:
        """The lengthscale of each of p columns, checked, shape (p,)."""
        return _per_column(self, "lengthscale", p)

    def _gram(self, X: Table, Y: Table) -> Floats:
        x, y = self._numbers(X), self._numbers(Y)
        scale = self.lengthscales(x.shape[1])
        return self._profile(_distances(x / scale, y / scale))

    def _pullback(self, X: Table, Y: Table) -> tuple[Floats, Pullback]:
        x, y = self._numbers(X), self._numbers(Y)
        scale = self.lengthscales(x.shape[1])
        x, y = x / scale, y / scale
        distance = _distances(x, y)
        K = self._profile(distance)

        def pull(weight: Floats) -> dict[str, Floats]:
            slope = self._slope(distance, K)
            slope *= weight
            if np.size(self.lengthscale) == 1:
                return {"lengthscale": np.array([np.einsum("ij,ij,ij->", slope, distance, distance)])}
            return {"lengthscale": _weighted_squares(slope, x, y)}

        return K, pull

    def spectral_density(self, omega: npt.ArrayLike) -> Floats:
        """p(v) at the angular frequencies omega, shape (n, p): integrates to one, and k is its Fourier transform."""
        v = np.atleast_2d(np.asarray(omega, dtype=np.float64))
        scale = self.lengthscales(v.shape[1])
        density: Floats = self._unit_density(((v * scale) ** 2).sum(axis=1), v.shape[1]) * np.prod(scale)
        return density

    def spectral_sample(self, n: int, p: int, rng: np.random.Generator) -> Floats:
        """Draw n angular frequencies from the spectral density in p dimensions, shape (n, p)."""
        sample: Floats = self._unit_sample(n, p, rng) / self.lengthscales(p)
        return sample

    def _profile(self, distance: Floats) -> Floats:
        raise NotImplementedError

    def _slope(self, distance: Floats, k: Floats) -> Floats:
        """-profile'(d) / d, a new array: what d^2 is multiplied by in the derivative in the log lengthscale."""
        raise NotImplementedError

    def _unit_density(self, squared_norm: Floats, p: int) -> Floats:
        raise NotImplementedError

    def _unit_sample(self, n: int, p: int, rng: np.random.Generator) -> Floats:
        raise NotImplementedError


class SE(Radial):
    """Squared exponential: exp(-d^2 / 2), d = |(x - x') / lengthscale|.

    Parameters
    ----------
    lengthscale : float or sequence of float
        One for all columns, or one for each column.
    columns : str or sequence of str, optional
        None for all.

    Examples
    --------
    >>> SE(lengthscale=[1.0, 2.0])([[0.0, 0.0]], [[1.0, 2.0]]).round(4)
    array([[0.3679]])
    """

    def _profile(self, distance: Floats) -> Floats:
        k = distance**2
        k *= -0.5
        return np.exp(k, out=k)

    def _slope(self, distance: Floats, k: Floats) -> Floats:
        return k.copy()

    def _unit_density(self, squared_norm: Floats, p: int) -> Floats:
        density: Floats = np.exp(-0.5 * squared_norm) / (2 * np.pi) ** (p / 2)
        return density

    def _unit_sample(self, n: int, p: int, rng: np.random.Generator) -> Floats:
        return rng.standard_normal((n, p))


class _Matern(Radial):
    """Matern kernels; the spectral density is a Student t with 2 nu degrees of freedom."""

    nu: ClassVar[float]

    def _unit_density(self, squared_norm: Floats, p: int) -> Floats:
        half = self.nu + p / 2
        log_constant = gammaln(half) - gammaln(self.nu) - p / 2 * np.log(2 * self.nu * np.pi)
        density: Floats = np.exp(log_constant - half * np.log1p(squared_norm / (2 * self.nu)))
        return density

    def _unit_sample(self, n: int, p: int, rng: np.random.Generator) -> Floats:
        return rng.standard_normal((n, p)) / np.sqrt(rng.chisquare(2 * self.nu, (n, 1)) / (2 * self.nu))


class Matern12(_Matern):
    """Rough: exp(-d), d = |(x - x') / lengthscale|. In one dimension, the Ornstein-Uhlenbeck process.

    Parameters are those of `SE`.

    Examples
    --------
    >>> Matern12(2.0)([0.0], [2.0]).round(4)
    array([[0.3679]])
    """

    nu = 0.5

    def _profile(self, distance: Floats) -> Floats:
        k = -distance
        return np.exp(k, out=k)

    def _slope(self, distance: Floats, k: Floats) -> Floats:
        return np.divide(k, distance, out=np.zeros_like(distance), where=distance > 0)


class Matern32(_Matern):
    """Once differentiable: (1 + s) exp(-s), s = sqrt(3) |(x - x') / lengthscale|.

    Parameters are those of `SE`.

    Examples
    --------
    >>> Matern32()([0.0], [1.0]).round(4)
    array([[0.4834]])
    """

    nu = 1.5

    def _profile(self, distance: Floats) -> Floats:
        s: Floats = np.sqrt(3) * distance
        k: Floats = np.negative(s)
        np.exp(k, out=k)
        s += 1
        k *= s
        return k

    def _slope(self, distance: Floats, k: Floats) -> Floats:
        # 3 k / (1 + s)
        slope: Floats = np.sqrt(1 / 3) * distance
        slope += 1 / 3
        np.divide(k, slope, out=slope)
        return slope


class Matern52(_Matern):
    """Twice differentiable: (1 + s + s^2 / 3) exp(-s), s = sqrt(5) |(x - x') / lengthscale|.

    Parameters are those of `SE`.

    Examples
    --------
    >>> Matern52()([0.0], [1.0]).round(4)
    array([[0.524]])
    """

    nu = 2.5

    def _profile(self, distance: Floats) -> Floats:
        s: Floats = np.sqrt(5) * distance
        k: Floats = np.negative(s)
        np.exp(k, out=k)
        k *= _quadratic(s)
        return k

    def _slope(self, distance: Floats, k: Floats) -> Floats:
        # 5 / 3 (1 + s) k / (1 + s + s^2 / 3)
        s = np.sqrt(5) * distance
        slope: Floats = k / _quadratic(s)
        s += 1
        s *= 5 / 3
        slope *= s
        return slope


class Periodic(Stationary):
    """Repeating: exp(-2 sin^2(pi (x - x') / period) / lengthscale^2), a product over the columns.

    Parameters
    ----------
    period, lengthscale : float or sequence of float
        One for all columns, or one for each column. The lengthscale has no unit: it is compared with the sine.
    columns : str or sequence of str, optional
        None for all.

    Examples
    --------
    >>> Periodic(period=7.0)([0.0], [7.0, 3.5]).round(4)
    array([[1.    , 0.1353]])
    """

    learned = ("period", "lengthscale")

    def __init__(
        self, period: PerColumn = 1.0, lengthscale: PerColumn = 1.0, columns: str | Sequence[str] | None = None
    ) -> None:
        self.period = period
        self.lengthscale = lengthscale
        self.columns = columns

    def _gram(self, X: Table, Y: Table) -> Floats:
        return self._pullback(X, Y)[0]

    def _pullback(self, X: Table, Y: Table) -> tuple[Floats, Pullback]:
        x, y = self._numbers(X), self._numbers(Y)
        period, scale = (_per_column(self, name, x.shape[1]) for name in self.learned)

        def angle(j: int) -> Floats:
            angle: Floats = np.pi * np.subtract.outer(x[:, j], y[:, j]) / period[j]
            return angle

        exponent = np.zeros((len(x), len(y)))
        for j in range(x.shape[1]):
            exponent -= 2 * (np.sin(angle(j)) / scale[j]) ** 2
        K = np.exp(exponent, out=exponent)

        def pull(weight: Floats) -> dict[str, Floats]:
            weight = weight * K
            slopes = np.empty((2, x.shape[1]))
            for j in range(x.shape[1]):
                # d log k / d log period = 2 a sin 2a / l^2, d log k / d log lengthscale = 4 sin^2 a / l^2
                a = angle(j)
                slopes[:, j] = np.vdot(weight, 2 * a * np.sin(2 * a)), np.vdot(weight, 4 * np.sin(a) ** 2)
            totals = zip(self.learned, slopes / scale**2, strict=True)
            return {name: v.sum(keepdims=True) if np.size(getattr(self, name)) == 1 else v for name, v in totals}

        return K, pull

    def spectral_mass(self, k: npt.ArrayLike) -> Floats:
        """Probability of the harmonics k, integers of shape (n, p): frequencies 2 pi k / period, shape (n,)."""
        order = np.abs(np.atleast_2d(np.asarray(k, dtype=np.float64)))
        mass: Floats = np.prod(ive(order, _per_column(self, "lengthscale", order.shape[1]) ** -2), axis=1)
        return mass

    def spectral_sample(self, n: int, p: int, rng: np.random.Generator) -> Floats:
        """Draw n angular frequencies from the discrete spectrum in p dimensions, shape (n, p)."""
        period, scale = (_per_column(self, name, p) for name in ("period", "lengthscale"))
        # Bessel weights exp(-z) I_k(z), z = 1 / lengthscale^2, are Skellam: a difference of two Poisson counts
        rate = np.broadcast_to(0.5 / scale**2, (n, p))
        sample: Floats = 2 * np.pi * (rng.poisson(rate) - rng.poisson(rate)) / period
        return sample


def _per_column(kernel: Kernel, name: str, p: int) -> Floats:
    """A positive parameter as one number for each column, shape (p,)."""
    values = np.atleast_1d(np.asarray(getattr(kernel, name)))
    if values.dtype.kind not in "fiu" or not (np.isfinite(values).all() and (values > 0).all()):
        raise InputError(f"The {name} of {kernel!r} must be positive and finite.")
    if values.shape not in {(1,), (p,)}:
        raise InputError(f"{kernel!r} has {values.size} values of {name} for {p} columns; give one, or one per column.")
    return np.broadcast_to(values.astype(np.float64), (p,))


def _quadratic(s: Floats) -> Floats:
    """1 + s + s^2 / 3."""
    value: Floats = s / 3
    value += 1
    value *= s
    value += 1
    return value


def _weighted_squares(weight: Floats, x: Floats, y: Floats) -> Floats:
    """sum_ij w_ij (x_i - y_j)^2 of each column of x and y, for weights (len(x), len(y))."""
    middle = x.mean(axis=0)
    left, right = x - middle, y - middle
    if max(np.abs(left).max(), np.abs(right).max()) > FAR:
        gaps = (np.subtract.outer(x[:, j], y[:, j]) for j in range(x.shape[1]))
        return np.array([np.einsum("ij,ij,ij->", weight, gap, gap) for gap in gaps])
    squares = weight.sum(axis=1) @ left**2 + weight.sum(axis=0) @ right**2
    total: Floats = squares - 2 * np.einsum("ij,ij->j", left, weight @ right)
    return total


def _distances(x: Floats, y: Floats) -> Floats:
    """Euclidean distances of rows, (len(x), len(y))."""
    if x.shape[1] == 1:
        gaps = np.subtract.outer(x[:, 0], y[:, 0])
        return np.abs(gaps, out=gaps)
    from scipy.spatial.distance import cdist  # a tenth of a second to load, and seldom needed

    return np.asarray(cdist(x, y))
