"""The process against the dense Gaussian process: covariances of `tuckergp.kernels`, states by matrix exponentials."""

from __future__ import annotations

import resource
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import linalg, stats

from tuckergp.compute import line as compute
from tuckergp.compute import line_data, line_steps
from tuckergp.errors import InputError
from tuckergp.kernels import Matern12, Matern32, Matern52
from tuckergp.residuals import line_draws
from tuckergp.residuals.line_draws import (
    LengthscalePrior,
    process_given_data,
    process_given_noise,
    process_given_values,
    weights_given_factors,
)
from tuckergp.residuals.markov import MaternProcess, log_likelihood

KERNELS = {1: Matern12, 2: Matern32, 3: Matern52}
orders = pytest.mark.parametrize("p", [1, 2, 3])
BOUND = 4.5  # of a z score: a false alarm in 150,000 for each


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def times(M, rng, spread=4.0):
    """Unequally spaced, the closest pair 0.02 apart, so that dense K is still good to 1e-10."""
    t = np.cumsum(0.02 + rng.exponential(spread / M, M))
    return t - t[0] - 1.0


def gram(t, p, lengthscale):
    return KERNELS[p](lengthscale)(t)


def precision_matrix(r, rng):
    X = rng.standard_normal((r, 2 * r))
    return X @ X.T / (2 * r) + 0.3 * np.eye(r)


def row_statistics(M, r, rng, scale=3.0):
    """Rows of full rank, of deficient rank and without data."""
    Z = rng.standard_normal((M, 2 * r, r))
    Z[::3, 1:] = 0.0
    Z[1::4] = 0.0
    y = rng.standard_normal((M, 2 * r))
    return scale * np.einsum("mik,mil->mkl", Z, Z), scale * np.einsum("mik,mi->mk", Z, y)


def state_covariance(t, p, lengthscale):
    """Covariance of all states, (M p, M p), from the stochastic differential equation alone."""
    coefficients = np.array([1.0, 3.0, 3.0])[:p] if p == 3 else np.array([1.0, 2.0])[:p] if p == 2 else np.ones(1)
    F = np.diag(np.ones(p - 1), 1)
    F[-1] = -coefficients
    noise = np.zeros((p, p))
    noise[-1, -1] = 1.0
    P = linalg.solve_continuous_lyapunov(F, -noise)
    P /= P[0, 0]
    s = t * np.sqrt(2 * p - 1) / lengthscale
    S = np.empty((len(t), p, len(t), p))
    for i in range(len(t)):
        for j in range(i + 1):
            S[i, :, j] = linalg.expm(F * (s[i] - s[j])) @ P
            S[j, :, i] = S[i, :, j].T
    return S.reshape(len(t) * p, -1)


def columns_of(draw, shape):
    """The matrix J of a draw mean + J noise, one column for every number of noise."""
    mean = draw(np.zeros(shape)).ravel()
    units = np.eye(int(np.prod(shape)))
    return np.stack([draw(unit.reshape(shape)).ravel() - mean for unit in units], axis=1)


def dense_posterior(K, A, b, mean, precision):
    """Mean (M, r) and covariance (M r, M r) of E, without inverting K."""
    prior = np.kron(K, np.linalg.inv(precision))
    heard = linalg.block_diag(*A)
    covariance = prior @ np.linalg.inv(np.eye(len(prior)) + heard @ prior)
    return (covariance @ (b.ravel() - heard @ mean.ravel())).reshape(b.shape), covariance


def steps(gaps, p):
    """T and L of gaps in units of time of one process."""
    return line_steps.transitions(gaps, np.array([p]), np.ones(1), np.ones(1))


class TestSteps:
    @orders
    @pytest.mark.parametrize("s", [0.01, 0.3, 2.0, 3.99, 4.01, 20.0, 400.0])
    def test_match_the_matrix_exponential(self, p, s):
        T, L = steps(np.array([np.inf, s]), p)
        S = state_covariance(np.array([0.0, s / np.sqrt(2 * p - 1)]), p, 1.0)
        P, cross = S[:p, :p], S[p:, :p]
        np.testing.assert_allclose(L[0] @ L[0].T, P, atol=1e-14)
        np.testing.assert_allclose(T[1], np.linalg.solve(P, cross.T).T, atol=1e-13)
        np.testing.assert_allclose(L[1] @ L[1].T, P - T[1] @ P @ T[1].T, atol=1e-14)

    def test_noise_keeps_its_relative_accuracy_at_small_gaps(self):
        s = 1e-6
        L = steps(np.array([s]), 3)[1][0]
        scale = np.array([s**2.5, s**1.5, s**0.5])
        # white noise integrated three times, as s -> 0
        limit = 16 / 3 * np.array([[1 / 20, 1 / 8, 1 / 6], [1 / 8, 1 / 3, 1 / 2], [1 / 6, 1 / 2, 1.0]])
        np.testing.assert_allclose(L @ L.T / np.outer(scale, scale), limit, rtol=1e-5)

    @orders
    def test_both_ways_to_the_noise_agree_where_they_meet(self, p):
        L = steps(np.array([line_steps.NEAR, np.nextafter(line_steps.NEAR, 5)]), p)[1]
        np.testing.assert_allclose(L[0], L[1], rtol=1e-13)


class TestWhitening:
    @orders
    @pytest.mark.parametrize("M", [1, 2, 40])
    def test_is_the_cholesky_factor_of_the_kernel(self, p, M, rng):
        t = times(M, rng)
        process = MaternProcess(t, p, 0.7)
        K = gram(t, p, 0.7)
        C = process.colour(np.eye(M))
        np.testing.assert_allclose(C @ C.T, K, atol=1e-13)
        np.testing.assert_allclose(np.triu(C, 1), 0.0, atol=0)
        X = C @ rng.standard_normal((M, 5))
        np.testing.assert_allclose(
            process.whiten(X).T @ process.whiten(X), X.T @ np.linalg.solve(K, X), rtol=1e-7, atol=1e-7
        )
        np.testing.assert_allclose(process.log_determinant, np.linalg.slogdet(K)[1], rtol=1e-8, atol=1e-12)

    @orders
    def test_quadratic_form_of_any_columns(self, p, rng):
        t = 3 * times(12, rng)
        process, X, K = MaternProcess(t, p, 0.2), rng.standard_normal((12, 4)), gram(t, p, 0.2)
        np.testing.assert_allclose(process.whiten(X).T @ process.whiten(X), X.T @ np.linalg.solve(K, X), rtol=1e-9)

    @orders
    def test_colour_undoes_whiten(self, p, rng):
        process, X = MaternProcess(times(40, rng), p, 1.3), rng.standard_normal((40, 3))
        np.testing.assert_allclose(process.colour(process.whiten(X)), X, rtol=1e-10, atol=1e-10)

    @orders
    def test_small_and_huge_gaps_against_sixty_digits(self, p):
        t = np.cumsum([0.0, 1e-6, 2e-6, 1e-3, 0.5, 1e-5, 1e-5, 1e6])
        with localcontext() as context:
            context.prec = 60
            rate = Decimal(2 * p - 1).sqrt()
            exact = [Decimal(float(x)) for x in t]

            def k(a, b):
                s = abs(a - b) * rate
                return (1 + (s if p > 1 else 0) + (s * s / 3 if p > 2 else 0)) * (-s).exp()

            C = [[Decimal(0)] * len(t) for _ in t]
            for i in range(len(t)):
                for j in range(i + 1):
                    rest = k(exact[i], exact[j]) - sum(C[i][c] * C[j][c] for c in range(j))
                    if i == j:
                        C[i][i] = (rest + Decimal(compute.RESOLUTION) ** 2).sqrt()
                    else:
                        C[i][j] = rest / C[j][j]
        process = MaternProcess(t, p, 1.0)
        twin = np.array([[float(x) for x in row] for row in C])
        # np.diff(t) has the rounding of the difference, nothing else is lost
        np.testing.assert_allclose(process._innovations[1], np.diag(twin), rtol=1e-9)
        np.testing.assert_allclose(process.colour(np.eye(len(t))), twin, rtol=1e-8, atol=1e-15)

    @orders
    def test_log_density_is_the_matrix_normal(self, p, rng):
        t, precision = times(20, rng), precision_matrix(3, rng)
        process = MaternProcess(t, p, 0.5)
        E = process.colour(rng.standard_normal((20, 3)))
        covariance = np.kron(gram(t, p, 0.5), np.linalg.inv(precision))
        dense = stats.multivariate_normal(np.zeros(60), covariance, allow_singular=False).logpdf(E.ravel())
        np.testing.assert_allclose(process.log_density(E, precision), dense, rtol=1e-8)


class TestStatesGivenData:
    @orders
    @pytest.mark.parametrize(("M", "r"), [(1, 1), (1, 3), (2, 2), (12, 3), (40, 1), (4, 20)])
    def test_mean_and_covariance(self, p, M, r, rng):
        t, precision, mean = times(M, rng), precision_matrix(r, rng), rng.standard_normal((M, r))
        A, b = row_statistics(M, r, rng)
        process = MaternProcess(t, p, 0.9)
        expected, covariance = dense_posterior(gram(t, p, 0.9), A, b, mean, precision)
        states = process.states_given_data(A, b, mean, precision)
        assert states.shape == (M, p, r)
        np.testing.assert_allclose(states[:, 0], expected, atol=1e-10)
        J = columns_of(
            lambda noise: process.states_given_data(A, b, mean, precision, noise)[:, 0], (*process.noise_shape, r)
        )
        np.testing.assert_allclose(J @ J.T, covariance, atol=1e-10)

    @orders
    def test_derivatives_too(self, p, rng):
        M, r = 9, 2
        t, precision, mean = times(M, rng), precision_matrix(r, rng), rng.standard_normal((M, r))
        A, b = row_statistics(M, r, rng)
        process = MaternProcess(t, p, 0.9)
        full = np.zeros((M, p, r, M, p, r))
        for m in range(M):
            full[m, 0, :, m, 0] = A[m]
        heard = full.reshape(M * p * r, -1)
        prior = np.kron(state_covariance(t, p, 0.9), np.linalg.inv(precision))
        covariance = prior @ np.linalg.inv(np.eye(len(prior)) + heard @ prior)
        prior_shift = np.zeros((M, p, r))
        prior_shift[:, 0] = b - np.einsum("mkl,ml->mk", A, mean)
        states = process.states_given_data(A, b, mean, precision)
        np.testing.assert_allclose(states.ravel(), covariance @ prior_shift.ravel(), atol=1e-10)
        J = columns_of(lambda noise: process.states_given_data(A, b, mean, precision, noise), (*process.noise_shape, r))
        np.testing.assert_allclose(J @ J.T, covariance, atol=1e-10)

    @orders
    @pytest.mark.parametrize("scale", [1e-3, 10.0, 1e7])
    def test_gaps_from_a_millionth_to_a_million_lengthscales(self, p, scale, rng):
        t = np.cumsum([0.0, 1e-6, 2e-6, 1e-6, 0.3, 1e-4, 1e-4, 1e-6, 1e6, 1e-6, 1e-3, 1e-3, 1e5])
        M, r = len(t), 2
        precision, mean = precision_matrix(r, rng), np.zeros((M, r))
        Z, y = rng.standard_normal((M, 5, r)), rng.standard_normal((M, 5))
        A, b = scale * np.einsum("mik,mil->mkl", Z, Z), scale * np.einsum("mik,mi->mk", Z, y)
        # with a full A the dense formula inverts K + A^-1, which is well conditioned
        prior = np.kron(gram(t, p, 1.0), np.linalg.inv(precision))
        heard = np.linalg.inv(A)
        gain = linalg.solve(prior + linalg.block_diag(*heard), prior, assume_a="pos").T
        targets = np.einsum("mkl,ml->mk", heard, b)
        tolerance = 1e-15 * max(scale, 1e4)
        process = MaternProcess(t, p, 1.0)
        states = process.states_given_data(A, b, mean, precision)
        np.testing.assert_allclose(states[:, 0].ravel(), gain @ targets.ravel(), atol=10 * tolerance)
        J = columns_of(
            lambda noise: process.states_given_data(A, b, mean, precision, noise)[:, 0], (*process.noise_shape, r)
        )
        np.testing.assert_allclose(J @ J.T, prior - gain @ prior, atol=tolerance)

    def test_rotations_agree_with_cholesky(self, rng):
        half, L, root = rng.standard_normal((6, 6)), np.tril(rng.standard_normal((3, 3))), np.empty((6, 6))
        covariance = half @ half.T + np.kron(L @ L.T, np.eye(2))
        line_data.predicted_root(half, L, 2, root)
        np.testing.assert_allclose(root @ root.T, covariance, atol=1e-12)
        # two ranks of which one is all but known: the pivots of its square lose all digits
        half[1] = half[0] * (1 + 1e-9)
        L *= 1e-9
        line_data.predicted_root(half, L, 2, root)
        np.testing.assert_allclose(root @ root.T, half @ half.T + np.kron(L @ L.T, np.eye(2)), atol=1e-12)
        both = np.hstack([half, np.kron(L, np.eye(2))])
        expected = np.abs(np.diag(np.linalg.qr(both.T)[1]))
        np.testing.assert_allclose(np.abs(np.diag(root)), expected, rtol=1e-6)

    @orders
    def test_evidence_is_the_integral_over_the_prior(self, p, rng):
        M, r = 10, 2
        t, precision, mean = times(M, rng), precision_matrix(r, rng), rng.standard_normal((M, r))
        A, b = row_statistics(M, r, rng)
        prior = np.kron(gram(t, p, 0.9), np.linalg.inv(precision))
        heard = linalg.block_diag(*A)
        covariance = dense_posterior(gram(t, p, 0.9), A, b, mean, precision)[1]
        prior_shift = b.ravel() - heard @ mean.ravel()
        expected = prior_shift @ covariance @ prior_shift / 2 - np.linalg.slogdet(np.eye(M * r) + prior @ heard)[1] / 2
        expected += b.ravel() @ mean.ravel() - mean.ravel() @ heard @ mean.ravel() / 2
        np.testing.assert_allclose(MaternProcess(t, p, 0.9).log_evidence(A, b, mean, precision), expected, rtol=1e-10)

    def test_statistics_that_are_not_positive_are_refused(self, rng):
        with pytest.raises(FloatingPointError, match="semi-definite"):
            MaternProcess(np.arange(3.0), 2, 1.0).states_given_data(
                -5 * np.ones((3, 1, 1)), np.ones((3, 1)), np.zeros((3, 1)), np.eye(1)
            )

    @pytest.mark.parametrize("p", [1, 3])
    def test_twenty_thousand_rows_never_form_a_square_matrix(self, p, rng):
        M, r = 20_000, 8
        t = np.cumsum(rng.exponential(0.1, M))
        process, precision, mean = MaternProcess(t, p, 1.0), precision_matrix(r, rng), np.zeros((M, r))
        A, b = row_statistics(M, r, rng)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        states = process.states_given_data(A, b, mean, precision)
        process.log_density(states[:, 0], precision)
        process.states_given_values(states[:, 0], precision)
        process.predict(states, np.linspace(t[0], t[-1], M))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        assert grown < M * M * 8 / 2
        # rows 60 lengthscales away do not matter: a short process gives the same middle
        part = slice(9_000, 11_000)
        short = MaternProcess(t[part], p, 1.0).states_given_data(A[part], b[part], mean[part], precision)
        np.testing.assert_allclose(states[part][900:1_100], short[900:1_100], atol=1e-10)


class TestStatesGivenValues:
    @pytest.mark.parametrize("p", [2, 3])
    @pytest.mark.parametrize("M", [1, 2, 15])
    def test_mean_and_covariance_of_the_derivatives(self, p, M, rng):
        r = 2
        t, precision = 2 * times(M, rng), precision_matrix(r, rng)
        process = MaternProcess(t, p, 0.6)
        E = process.colour(rng.standard_normal((M, r)))
        S = state_covariance(t, p, 0.6)
        value = np.arange(M) * p
        gain = np.linalg.solve(S[np.ix_(value, value)], S[value]).T
        states = process.states_given_values(E, precision)
        np.testing.assert_allclose(states, (gain @ E).reshape(M, p, r), atol=1e-7)
        np.testing.assert_array_equal(states[:, 0], E)
        J = columns_of(lambda noise: process.states_given_values(E, precision, noise), (*process.noise_shape, r))
        covariance = np.kron(S - gain @ S[value], np.linalg.inv(precision))
        np.testing.assert_allclose(J @ J.T, covariance, atol=1e-8)

    def test_order_one_has_no_derivatives(self, rng):
        E = rng.standard_normal((5, 2))
        np.testing.assert_array_equal(MaternProcess(np.arange(5.0), 1, 1.0).states_given_values(E, np.eye(2))[:, 0], E)

    def test_values_too_close_to_resolve_do_not_invent_derivatives_or_surprise(self, rng):
        t = np.concatenate([np.arange(50) * 1e-8, 1 + np.arange(50) * 1e-9, [2.0, 3.0]])
        M, r = len(t), 4
        process = MaternProcess(t, 3, 1.0)
        noise = rng.standard_normal((*process.noise_shape, r))
        nothing = np.zeros((M, r))
        E = process.states_given_data(np.zeros((M, r, r)), nothing, nothing, np.eye(r), noise)[:, 0]
        # rounding errors of E must not count as roughness: its quadratic form stays below that of M r normals
        E = (E + 10.0) - 10.0
        assert (process.whiten(E) ** 2).sum() < M * r + BOUND * np.sqrt(2 * M * r)
        states = process.states_given_values(E, np.eye(r), rng.standard_normal((*process.noise_shape, r)))
        assert np.abs(states).max() < 6.0


class TestPrediction:
    NEW = np.array([-3.0, -1.0, -0.97, 0.2, 0.2001, 0.9, 1.7, 2.5, 9.0, 500.0])

    @orders
    @pytest.mark.parametrize("M", [1, 2, 12])
    def test_is_the_conditional_given_all_states(self, p, M, rng):
        r, t = 2, times(M, rng)
        process = MaternProcess(t, p, 0.8)
        S = state_covariance(t, p, 0.8)
        states = (np.linalg.cholesky(S) @ rng.standard_normal((M * p, r))).reshape(M, p, r)
        mean, variance = process.predict(states, self.NEW)
        for x, m, v in zip(self.NEW, mean[:, 0], variance, strict=True):
            at = np.searchsorted(t, x)
            if np.isin(x, t):
                np.testing.assert_allclose(m, states[at, 0], atol=1e-13)
                assert v < 1e-20
                continue
            S = state_covariance(np.insert(t, at, x), p, 0.8)
            new = np.arange(len(S)) == at * p
            old = np.delete(np.arange(len(S)), slice(at * p, at * p + p))
            weights = np.linalg.solve(S[np.ix_(old, old)], S[old][:, new][:, 0])
            np.testing.assert_allclose(m, weights @ states.reshape(M * p, r), atol=1e-8)
            np.testing.assert_allclose(v, 1.0 - weights @ S[old][:, new][:, 0], atol=1e-9)

    @orders
    def test_average_over_states_given_values_is_the_ordinary_gaussian_process(self, p, rng):
        t, r = times(25, rng), 2
        process = MaternProcess(t, p, 0.8)
        E = process.colour(rng.standard_normal((25, r)))
        K, cross = gram(t, p, 0.8), KERNELS[p](0.8)(self.NEW, t)
        states = process.states_given_values(E, np.eye(r))
        mean, variance = process.predict(states, self.NEW)
        np.testing.assert_allclose(mean[:, 0], cross @ np.linalg.solve(K, E), atol=1e-7)

        # total variance = given the states + of the states given the values
        def draw(noise):
            return process.predict(process.states_given_values(E[:, :1], np.eye(1), noise), self.NEW)[0][:, 0]

        J = columns_of(draw, (*process.noise_shape, 1))
        total = variance + (J**2).sum(axis=1)
        np.testing.assert_allclose(total, 1 - np.einsum("ij,ji->i", cross, np.linalg.solve(K, cross.T)), atol=1e-8)

    @orders
    def test_joint_draw_has_the_joint_covariance(self, p, rng):
        t, r = times(6, rng), 2
        process, precision = MaternProcess(t, p, 0.8), precision_matrix(r, rng)
        new = rng.permutation(np.array([-2.5, -2.0, 0.05, 0.1, 0.15, 1.0, 4.0, 4.5, 8.0]))
        states = (np.linalg.cholesky(state_covariance(t, p, 0.8)) @ rng.standard_normal((6 * p, r))).reshape(6, p, r)
        both = np.concatenate([t, new])
        order = np.argsort(both)
        S = np.empty((len(both), p, len(both), p))
        S[np.ix_(order, range(p), order, range(p))] = state_covariance(both[order], p, 0.8).reshape(S.shape)
        old, values = S[:6, :, :6].reshape(6 * p, 6 * p), S[6:, 0, :6].reshape(len(new), 6 * p)
        gain = np.linalg.solve(old, values.T).T
        mean = process.draw_at(states, new, precision, np.zeros((len(new), p, r)))
        np.testing.assert_allclose(mean[:, 0], gain @ states.reshape(6 * p, r), atol=1e-8)
        np.testing.assert_allclose(mean, process.predict(states, new)[0], atol=1e-11)
        J = columns_of(lambda noise: process.draw_at(states, new, precision, noise)[:, 0], (len(new), p, r))
        covariance = np.kron(S[6:, 0, 6:, 0] - gain @ values.T, np.linalg.inv(precision))
        np.testing.assert_allclose(J @ J.T, covariance, atol=1e-9)

    @orders
    def test_repeated_new_values_draw_the_same(self, p, rng):
        process = MaternProcess(np.array([0.0, 1.0]), p, 1.0)
        new = np.array([0.5, 3.0, 0.5, -1.0, 3.0, -1.0])
        E = process.draw_at(rng.standard_normal((2, p, 3)), new, np.eye(3), rng.standard_normal((6, p, 3)))
        np.testing.assert_allclose(E[[0, 1, 3]], E[[2, 4, 5]], rtol=1e-13)


class TestWeights:
    BLOCKS = (slice(0, 1), slice(1, 3))

    @orders
    def test_mean_is_generalised_least_squares(self, p, rng):
        t, Phi, psi = times(20, rng), rng.standard_normal((20, 3)), rng.standard_normal((20, 2))
        tau, K = np.array([0.5, 2.0]), gram(t, p, 0.1)
        expected = np.linalg.solve(
            Phi.T @ np.linalg.solve(K, Phi) + np.diag(tau[[0, 1, 1]]), Phi.T @ np.linalg.solve(K, psi)
        )
        B = weights_given_factors(MaternProcess(t, p, 0.1), Phi, self.BLOCKS, psi, tau, np.zeros((3, 2)))
        np.testing.assert_allclose(B, expected, rtol=1e-8, atol=1e-10)

    def test_draws_have_its_covariance(self, rng):
        t, Phi, psi = times(20, rng), rng.standard_normal((20, 3)), rng.standard_normal((20, 2))
        tau, K, precision = np.array([0.5, 2.0]), gram(t, 2, 0.3), precision_matrix(2, rng)
        process, start = MaternProcess(t, 2, 0.3), np.zeros((3, 2))
        mean = weights_given_factors(process, Phi, self.BLOCKS, psi, tau, start)
        draws = np.array(
            [weights_given_factors(process, Phi, self.BLOCKS, psi, tau, start, precision, rng) for _ in range(3_000)]
        )
        system = Phi.T @ np.linalg.solve(K, Phi) + np.diag(tau[[0, 1, 1]])
        root = np.linalg.cholesky(np.kron(np.linalg.inv(system), np.linalg.inv(precision)))
        white = np.linalg.solve(root, (draws - mean).reshape(3_000, 6).T)
        assert np.abs(white.sum(axis=1)).max() / np.sqrt(3_000) < BOUND
        squares = white @ white.T / 3_000 - np.eye(6)
        assert np.abs(squares / np.sqrt((1 + np.eye(6)) / 3_000)).max() < BOUND


class TestLengthscale:
    def test_the_prior_of_its_logarithm_is_normal(self):
        prior, x = LengthscalePrior(0.7, 0.4), np.linspace(-3.0, 3.0, 13)
        density = np.array([prior.log_density(v) for v in x])
        np.testing.assert_allclose(np.diff(density), np.diff(stats.norm(np.log(0.7), 0.4).logpdf(x)), rtol=1e-10)

    @orders
    def test_all_steps_leave_the_joint_distribution_as_it_is(self, p):
        """Draw everything from the prior, take a step: nothing may have moved on average."""
        rng = np.random.default_rng(5 + p)
        t, r, repeats = times(12, rng), 2, 1_200
        precision, prior = precision_matrix(r, rng), LengthscalePrior(0.5, 0.8)
        inverse_root = np.linalg.inv(np.linalg.cholesky(precision))
        mean = rng.standard_normal((12, r))

        def figures(process, E, b):
            x = np.log(process.lengthscale / prior.centre) / prior.spread
            rough = np.log((np.diff(E, axis=0) ** 2).sum())
            return x, x**2, rough, x * rough, x * (E * (b - A @ np.ones(r))).sum(), (E**2).sum()

        A, _ = row_statistics(12, r, rng)
        noise_root = np.array([vectors * np.sqrt(np.maximum(values, 0)) for values, vectors in map(np.linalg.eigh, A)])
        moved = np.empty((3, repeats, 6))
        for i in range(repeats):
            process = MaternProcess(t, p, float(prior.centre * np.exp(prior.spread * rng.standard_normal())))
            E = process.colour(rng.standard_normal((12, r))) @ inverse_root
            b = np.einsum("mkl,ml->mk", A, mean + E) + np.einsum("mkl,ml->mk", noise_root, rng.standard_normal((12, r)))
            before = np.array(figures(process, E, b))
            centred = process_given_values(process, E, precision, prior, rng)
            moved[0, i] = figures(centred, E, b) - before
            other, shifted = process_given_noise(process, E, lambda E, b=b: log_likelihood(E, A, b, mean), prior, rng)
            moved[1, i] = figures(other, shifted, b) - before
            other = process_given_data(process, A, b, mean, precision, prior, rng)
            noise = rng.standard_normal((*process.noise_shape, r))
            moved[2, i] = figures(other, other.states_given_data(A, b, mean, precision, noise)[:, 0], b) - before
        spread = moved.std(axis=1)
        changed = spread > 0  # the centred step leaves E alone
        assert changed[0].sum() == 4
        assert changed[1:].all()
        z = moved.mean(axis=1)[changed] / spread[changed] * np.sqrt(repeats)
        assert np.abs(z).max() < BOUND

    def test_candidates_of_a_start_are_drawn_by_their_densities(self, rng, monkeypatch):
        """Without data by the prior: shares of 1,000 draws, a z score below 4.5 each, where none is rare."""
        monkeypatch.setattr(line_draws, "log_slice", lambda density, x, width, rng: x)
        process, prior = MaternProcess(times(12, rng), 2, 0.9), LengthscalePrior(0.5)
        nothing = np.zeros((12, 1, 1)), np.zeros((12, 1)), np.zeros((12, 1)), np.eye(1)
        drawn = [process_given_data(process, *nothing, prior, rng, anywhere=True).numbers[0] for _ in range(1_000)]
        candidates = np.array([*process.log_range, np.log(0.9)])
        share = stats.norm(np.log(prior.centre), prior.spread).pdf(candidates)
        share /= share.sum()
        found = np.isclose(np.array(drawn)[:, None], candidates).mean(axis=0)
        often = share > 0.02
        assert often.sum() > 10
        assert found.sum() == pytest.approx(1.0)
        assert np.abs((found - share)[often] / np.sqrt(share * (1 - share) / 1_000)[often]).max() < BOUND

    def test_is_found_from_values_and_from_data(self, rng):
        t = np.sort(rng.random(200)) * 20
        truth = MaternProcess(t, 2, 1.5)
        E, prior, unit = truth.colour(rng.standard_normal((200, 3))), LengthscalePrior(0.5), np.eye(3)
        A, mean = np.tile(20 * unit, (200, 1, 1)), np.zeros((200, 3))
        b = 20 * E + np.sqrt(20) * rng.standard_normal(E.shape)
        start = truth.at(0.5)

        def posterior(log_density):
            """Mean and deviation of log lengthscale, on a grid."""
            x = np.linspace(np.log(0.5), np.log(4.0), 200)
            density = np.array([log_density(truth.at(float(np.exp(v)))) + prior.log_density(v) for v in x])
            weights = np.exp(density - density.max())
            weights /= weights.sum()
            centre = weights @ x
            return centre, np.sqrt(weights @ (x - centre) ** 2)

        def check(draws, log_density):
            centre, deviation = posterior(log_density)
            assert abs(np.mean(draws) - centre) < deviation
            assert 0.4 < np.std(draws) / deviation < 2.0

        known, collapsed, woven = [start], [start], [start]
        for _ in range(200):
            known.append(process_given_values(known[-1], E, unit, prior, rng))
            collapsed.append(process_given_data(collapsed[-1], A, b, mean, unit, prior, rng))
            noise = rng.standard_normal((*start.noise_shape, 3))
            current = woven[-1].states_given_data(A, b, mean, unit, noise)[:, 0]
            moved, current = process_given_noise(
                woven[-1], current, lambda E: log_likelihood(E, A, b, mean), prior, rng
            )
            woven.append(process_given_values(moved, current, unit, prior, rng))
        logs = [[np.log(process.lengthscale) for process in chains[50:]] for chains in (known, collapsed, woven)]
        check(logs[0], lambda process: process.log_density(E, unit))
        check(logs[1], lambda process: process.log_evidence(A, b, mean, unit))
        check(logs[2], lambda process: process.log_evidence(A, b, mean, unit))


class TestRefusals:
    @pytest.mark.parametrize("t", [[], [1.0, 1.0], [2.0, 1.0], [0.0, np.nan], [[0.0, 1.0]]])
    def test_values_must_be_sorted_and_distinct(self, t):
        with pytest.raises(InputError, match="sorted"):
            MaternProcess(np.array(t), 1, 1.0)

    def test_order_and_lengthscale(self):
        with pytest.raises(InputError, match="order"):
            MaternProcess(np.arange(2.0), 4, 1.0)
        for lengthscale in (0.0, -1.0, np.inf, np.nan):
            with pytest.raises(InputError, match="lengthscale"):
                MaternProcess(np.arange(2.0), 1, lengthscale)
