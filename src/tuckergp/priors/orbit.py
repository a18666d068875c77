"""Unknowns along the orbit of f: for any invertible M, U_d M and M^-1 x_d W have the same f as U_d and W.

The data say nothing about M, so given the data each of U_d and W holds M where it is, and draws of one given the other
move it by the little that noise allows. Drawn along the orbit, with f as it is, it goes where the priors want it.
A draw x -> g x by a group keeps a density p if g has density p(g x) |d(g x)/dx| for the group's own measure (Liu and
Sabatti 2000).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.priors.hyper import MOST_LOG_TAU
from tuckergp.random import log_slice

__all__ = ["scale_against_core", "scale_against_mode", "stretches"]

Floats = npt.NDArray[np.float64]

# The first widths of slices: of a direction, and of tau of two modes, which only their wide priors hold.
STRETCH_WIDTH, SCALE_WIDTH = 0.3, 2.0


def stretches(scatter: Floats, W: Floats, weights: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw M that stretches U_d along random orthogonal directions; returns M and its inverse, both (r, r).

    Parameters
    ----------
    scatter : ndarray, shape (r, r)
        U_d'T U_d times the scale of Lambda, so that the log prior of U_d is minus half its trace.
    W : ndarray, shape (r, entries)
        The core, unfolded along mode d, relative to its prior standard deviation.
    weights : int
        n, the rows of U_d.
    """
    r, entries = W.shape
    Q, _ = np.linalg.qr(rng.standard_normal((r, r)))
    # M = Q diag(c) Q': directions are independent, each with n more powers of c of U_d and so many less of W
    power = weights - entries
    ours, its = ((Q.T @ scatter) * Q.T).sum(axis=1), ((Q.T @ W) ** 2).sum(axis=1)
    log_c = np.array([_stretch(power, float(a), float(b), rng) for a, b in zip(ours, its, strict=True)])
    return (Q * np.exp(log_c)) @ Q.T, (Q * np.exp(-log_c)) @ Q.T


def _stretch(power: int, ours: float, its: float, rng: np.random.Generator) -> float:
    """Draw log c of the density c^power exp(-ours c^2 / 2 - its c^-2 / 2), from log c = 0."""

    def log_density(log_c: float) -> float:
        square = np.exp(2 * log_c)
        return float(power * log_c - 0.5 * ours * square - 0.5 * its / square)

    return log_slice(log_density, 0.0, STRETCH_WIDTH, rng)


def scale_against_core(tau: Floats, W: Floats, shape: float, rate: float, rng: np.random.Generator) -> float:
    """Draw c of U_d c, tau_d c^-2 and W / c; W is relative to its prior standard deviation.

    With U_d the precisions of its blocks change, so that its prior keeps its value: priors of tau and W decide.
    """
    # with x = c^-2: x^(entries / 2) exp(-W'W x / 2) of W, x^shape exp(-rate tau x) of each tau, and dx / x
    gamma = rng.gamma(W.size / 2 + shape * len(tau))
    square = (np.vdot(W, W) / 2 + rate * tau.sum()) / gamma
    # tau beyond its bounds is refused, which leaves all as it is
    return float(np.sqrt(square)) if np.abs(np.log(tau) - np.log(square)).max() <= MOST_LOG_TAU else 1.0


def scale_against_mode(tau: Floats, other: Floats, shape: float, rate: float, rng: np.random.Generator) -> float:
    """Draw c of U_d c, tau_d c^-2 and U_e / c, tau_e c^2: the priors of tau decide."""
    ours, its = np.log(tau), np.log(other)

    def log_density(log_c: float) -> float:
        # Gamma(shape, rate) of every tau, times itself for the change to its logarithm
        moved = np.concatenate([ours - 2 * log_c, its + 2 * log_c])
        if np.abs(moved).max() > MOST_LOG_TAU:
            return -np.inf
        return float(shape * moved.sum() - rate * np.exp(moved).sum())

    return float(np.exp(log_slice(log_density, 0.0, SCALE_WIDTH, rng)))
