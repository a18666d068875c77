"""Independent rows: names of random numbers follow the rows, and weights are regressed on them."""

import numpy as np

from tuckergp.priors.given import ModeGiven
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.priors.regressions import regression_of
from tuckergp.random import DrawStreams
from tuckergp.residuals import Rows
from tuckergp.residuals.base import ModeDraws, ModeState


class Solved:
    """Evidence that leaves the rows at given factors."""

    def __init__(self, psi):
        self.psi = psi

    def rows(self, features, B, precision, rng):
        return self.psi


def test_names_follow_rows_that_are_taken_and_joined():
    places, names = np.array([0, -1, -1], dtype=np.int32), np.array([0, 7, 9], dtype=np.uint64)
    rows = Rows(places, 1, names=names)
    both = rows.joined(rows.take(np.array([2, 0])))
    assert both.keys.tolist() == [0, 7, 9, 9, 0]
    assert both.undetermined.tolist() == [False, True, True, True, False]
    assert Rows.of(3).joined(rows).keys.tolist() == [0, 0, 0, 0, 7, 9]
    assert rows.named(names[::-1]).keys.tolist() == [9, 7, 0]


def test_weights_given_rows_are_those_of_a_regression_with_the_rows_own_variance():
    """psi = Phi B + E, E ~ N(0, sd^2 Lambda^-1), B ~ N(0, (tau Lambda)^-1): with P = Phi'Phi + sd^2 tau B has the mean
    P^-1 Phi'psi and the covariance P^-1 kron sd^2 Lambda^-1, Lambda drawn with it. Of 200 draws of 8 weights the mean
    square, whitened, has the standard deviation (2 / 1600)^1/2 = 0.035."""
    rng = np.random.default_rng(0)
    phi, psi, sd, tau = rng.standard_normal((30, 4)), rng.standard_normal((30, 2)), 0.4, 7.0
    blocks, precision = (slice(0, 4),), np.array([[2.0, 0.3], [0.3, 1.0]])
    given = ModeGiven(phi, blocks, regression_of(phi, blocks, None), PrecisionPrior(3.0, 1.0, True))
    mode, rows = ModeState(psi, np.zeros((4, 2)), precision, np.array([tau])), Rows.of(30, sd)
    P = phi.T @ phi + sd**2 * tau * np.eye(4)
    mean = rows.update(mode, Solved(psi), given, None)[0].B
    np.testing.assert_allclose(mean, np.linalg.solve(P, phi.T @ psi), rtol=1e-9)
    drawn = [rows.update(mode, Solved(psi), given, rng)[0] for _ in range(200)]
    white = [np.linalg.cholesky(P).T @ (one.B - mean) @ np.linalg.cholesky(one.precision / sd**2) for one in drawn]
    assert abs(np.square(white).mean() - 1) < 5 * 0.035


def test_whitened_rows_have_no_sd_of_their_own():
    E = np.random.default_rng(0).standard_normal((3, 2))
    np.testing.assert_allclose(Rows.of(3, 0.4).whitened(0.4 * E, ()), E)


def test_new_rows_are_drawn_with_the_covariance_of_each_draw():
    """Of 8,000 rows a covariance c_jk has the standard deviation ((c_jj c_kk + c_jk^2) / 8000)^1/2 < 0.064."""
    new = np.full(8_000, -1, dtype=np.int32)
    rows = Rows(new, 1, names=np.arange(8_000, dtype=np.uint64))
    covariance = np.array([[[4.0, 1.5], [1.5, 1.0]], [[1.0, -0.8], [-0.8, 4.0]]])
    draws = ModeDraws(np.zeros((1, 2, 2)), covariance, {"psi": np.zeros((1, 2, 2))})
    psi = rows.factors(np.zeros((8_000, 1)), draws, DrawStreams(0, np.array([[0, 0], [0, 1]])))
    for s in range(2):
        np.testing.assert_allclose(np.cov(psi[:, s].T), covariance[s], atol=5 * 0.064)
