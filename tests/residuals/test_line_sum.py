"""Sums of kernels on a line against the dense Gaussian process, and what a regressor says of their parts."""

import numpy as np
import pytest
from scipy import stats

from tests.helpers import quick_and_long, z_scores
from tests.residuals.test_markov import columns_of, dense_posterior, precision_matrix, row_statistics, times
from tuckergp import Mode, TuckerGPRegressor, load
from tuckergp.errors import InputError
from tuckergp.features import Cholesky, Line, LineSum
from tuckergp.inference import ALS, Gibbs
from tuckergp.kernels import Identity, Linear, Matern12, Matern32, Matern52
from tuckergp.residuals.line_draws import (
    LengthscalePrior,
    process_given_data,
    process_given_noise,
    process_given_values,
)
from tuckergp.residuals.line_sum import LineSum as Residual
from tuckergp.residuals.line_sum import SumPrior
from tuckergp.residuals.markov import MaternProcess, log_likelihood
from tuckergp.residuals.markov_sum import MaternSum

KERNELS = {1: Matern12, 2: Matern32, 3: Matern52}
CASES = {  # orders, lead, lengthscales, shares
    "slow, fast": ((2, 1), 1, (4.0, 0.7), (0.7, 0.3)),
    "smooth one leads": ((2, 1), 0, (4.0, 0.7), (0.7, 0.3)),
    "same order": ((1, 1), 1, (9.0, 0.5), (0.2, 0.8)),
    "white": ((3, 0), 1, (2.0,), (0.6, 0.4)),
    "four": ((1, 3, 2, 0), 3, (0.3, 9.0, 3.0), (0.2, 0.3, 0.4, 0.1)),
    "hardly there": ((3, 1), 1, (3.0, 1.0), (1 - 1e-6, 1e-6)),
}
cases = pytest.mark.parametrize("case", CASES)


def process_on(t, case):
    orders, lead, lengths, shares = CASES[case]
    return MaternSum(t, orders, lead, np.array(lengths), np.array(shares))


def grams(process, s, t):
    """The covariance of each part between s and t."""
    lengths = iter(process.lengthscales)
    pairs = zip(process.orders, process.shares, strict=True)
    return [w * (KERNELS[p](next(lengths))(s, t) if p else (s[:, None] == t).astype(float)) for p, w in pairs]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


class TestProcess:
    @cases
    @pytest.mark.parametrize("M", [1, 2, 30])
    def test_has_the_covariance_of_the_sum(self, case, M, rng):
        process = process_on(times(M, rng), case)
        K = sum(grams(process, process.t, process.t))
        C = process.colour(np.eye(M))
        np.testing.assert_allclose(C @ C.T, K, atol=1e-12)
        assert process.log_determinant == pytest.approx(np.linalg.slogdet(K)[1], rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(process.whiten(C), np.eye(M), atol=1e-7)

    @cases
    @pytest.mark.parametrize("M", [1, 25])
    def test_given_data_is_the_dense_conditional(self, case, M, rng):
        """With a stretch of rows without data, and rows close together."""
        r = 2
        t = times(M, rng)
        if M > 1:
            t[4] = t[3] + 1e-5
        process = process_on(t, case)
        A, b = row_statistics(M, r, rng)
        A[10:15], b[10:15] = 0.0, 0.0
        mean, precision = rng.standard_normal((M, r)), precision_matrix(r, rng)
        K = sum(grams(process, t, t))
        expected, covariance = dense_posterior(K, A, b, mean, precision)
        found = process.states_given_data(A, b, mean, precision)[:, 0]
        np.testing.assert_allclose(found, expected, atol=1e-7)

        J = columns_of(
            lambda noise: process.states_given_data(A, b, mean, precision, noise)[:, 0], (*process.noise_shape, r)
        )
        np.testing.assert_allclose(J @ J.T, covariance, atol=1e-7)

    @cases
    def test_evidence_is_the_dense_one_at_all_lengthscales_and_shares(self, case, rng):
        M, r = 12, 2
        start = process_on(times(M, rng), case)
        A, b = row_statistics(M, r, rng)
        mean, precision = rng.standard_normal((M, r)), precision_matrix(r, rng)
        big, count = np.zeros((M, r, M, r)), len(start.numbers)
        big[np.arange(M), :, np.arange(M)] = A
        big, score = big.reshape(M * r, M * r), (b - np.einsum("mkl,ml->mk", A, mean)).ravel()
        alone = log_likelihood(np.zeros((M, r)), A, b, mean)
        for _ in range(4):
            process = start.with_numbers(np.array(start.numbers) + 0.5 * rng.standard_normal(count))
            K = np.kron(sum(grams(process, process.t, process.t)), np.linalg.inv(precision))
            inner = np.eye(M * r) + K @ big
            dense = score @ np.linalg.solve(inner, K @ score) / 2 - np.linalg.slogdet(inner)[1] / 2 + alone
            assert process.log_evidence(A, b, mean, precision) == pytest.approx(dense, rel=1e-9)

    @cases
    def test_parts_given_the_sum_are_the_dense_ones_at_rows_and_new_values(self, case, rng):
        """Mean and joint covariance of draws: between rows, beyond them, and twice at the same value."""
        t, new, r = times(9, rng), np.array([-1.0, 0.31, 0.4, 1.9, 30.0]), 1
        process = process_on(t, case)
        E = process.colour(rng.standard_normal((9, r)))
        both, n = np.concatenate([t, new]), 9

        def draw(noise):
            states = process.states_given_values(E, np.eye(r), noise[:n])
            drawn = process.draw_at(states, new, np.eye(r), noise[n:, : process.size])
            return np.concatenate([np.stack(process.parts(x))[:, :, 0] for x in (states, drawn)], axis=1).ravel()

        shape = (n + len(new), 2 * process.size, r)
        K = sum(grams(process, t, t))
        each = grams(process, both, both)
        across = np.vstack([part[:, :n] for part in each])
        expected = across @ np.linalg.solve(K, E[:, 0])
        mean = draw(np.zeros(shape))
        np.testing.assert_allclose(mean, expected, atol=2e-6)
        blocks = np.zeros((len(each), len(both), len(each), len(both)))
        for p, part in enumerate(each):
            blocks[p, :, p] = part
        covariance = blocks.reshape(len(expected), -1) - across @ np.linalg.solve(K, across.T)
        J = columns_of(draw, shape)
        np.testing.assert_allclose(J @ J.T, covariance, atol=2e-6)
        np.testing.assert_allclose(mean.reshape(len(each), -1)[:, :n].sum(axis=0), E[:, 0], atol=1e-12)

    def test_repeated_new_values_draw_the_same_white_noise_too(self, rng):
        process = process_on(np.array([0.0, 1.0]), "white")
        new = np.array([0.5, 3.0, 0.5, -1.0, 3.0])
        states = process.states_given_values(np.ones((2, 1)), np.eye(1))
        drawn = process.draw_at(states, new, np.eye(1), rng.standard_normal((5, process.size, 1)))
        np.testing.assert_allclose(drawn[[0, 1]], drawn[[2, 4]], rtol=1e-12)

    def test_numbers_are_logarithms_of_lengthscales_and_ratios_of_shares(self, rng):
        process = process_on(times(3, rng), "four")
        again = process.with_numbers(process.numbers)
        np.testing.assert_allclose(again.lengthscales, process.lengthscales, rtol=1e-14)
        np.testing.assert_allclose(again.shares, process.shares, rtol=1e-14)
        other = process.with_numbers((*process.numbers[:3], 700.0, -700.0, 0.0))
        assert np.isfinite(other.shares).all()

    def test_candidates_have_all_lengthscales_and_other_shares(self, rng):
        process = process_on(times(30, rng), "four")
        found = [process.with_numbers(each) for each in process.candidates(1, rng)]
        assert all(each.shares.sum() == pytest.approx(1.0) for each in found)
        assert {tuple(np.round(each.lengthscales[[0, 2]], 9)) for each in found} == {(0.3, 3.0)}
        assert len({each.shares[1] for each in found}) > len(found) // 2
        others = np.array([each.shares[[0, 2, 3]] / each.shares[[0, 2, 3]].sum() for each in found])
        np.testing.assert_allclose(others, np.tile(np.array([0.2, 0.4, 0.1]) / 0.7, (len(found), 1)))
        assert len({each.lengthscales[1] for each in found}) > 5
        assert len({round(each.shares[1], 12) for each in found}) > 5

    def test_refuses_other_numbers_of_parts(self):
        t = np.arange(3.0)
        with pytest.raises(InputError, match="lengthscales must be positive, one for each Matern"):
            MaternSum(t, (1, 0), 0, np.array([1.0, 2.0]), np.array([0.5, 0.5]))
        with pytest.raises(InputError, match="shares must be positive, one for each part"):
            MaternSum(t, (1, 2), 0, np.array([1.0, 2.0]), np.array([1.0]))


PRIOR = SumPrior((LengthscalePrior(2.0), LengthscalePrior(0.4)), (0.7, 0.3))


class TestNumbers:
    def test_the_prior_of_shares_is_logistic_normal_and_lengthscales_stay_in_order(self):
        x = np.linspace(-3.0, 3.0, 13)
        density = [PRIOR.log_density(1.0, 0.5, v) for v in x]
        # log w_1 - log w_2 of two logarithms with deviation 1.5
        normal = stats.norm(np.log(0.7 / 0.3), 1.5 * np.sqrt(2)).logpdf(x)
        np.testing.assert_allclose(np.diff(density), np.diff(normal), rtol=1e-10)
        assert PRIOR.log_density(0.5, 1.0, 0.0) == -np.inf
        equal = SumPrior((LengthscalePrior(2.0), LengthscalePrior(2.0)), (0.7, 0.3))
        assert equal.log_density(0.5, 1.0, 0.0) == equal.log_density(1.0, 0.5, 0.0)

    @quick_and_long("repeats", 400, 4_000)
    def test_all_steps_leave_the_joint_distribution_as_it_is(self, repeats):
        """Draw everything from the prior, take a step: nothing may have moved on average. 3 steps, 8 figures, at 4.5
        standard errors: a fresh seed fails in about 1 of 5,000 cases at 4,000 repeats."""
        rng = np.random.default_rng(5)
        t, r = times(10, rng), 2
        precision, which = precision_matrix(r, rng), (0, 1, 2)
        inverse_root, mean = np.linalg.inv(np.linalg.cholesky(precision)), rng.standard_normal((10, r))
        A, _ = row_statistics(10, r, rng)
        noise_root = np.array([vectors * np.sqrt(np.maximum(values, 0)) for values, vectors in map(np.linalg.eigh, A)])

        def figures(process, E, b):
            slow, fast, ratio = process.numbers
            rough = np.log((np.diff(E, axis=0) ** 2).sum())
            fit = np.tanh((E * (b - np.einsum("mkl,ml->mk", A, mean + E))).sum() / 10)
            return slow, fast, ratio, slow * fast, ratio**2, ratio * rough, fast * rough, ratio * fit

        moved = np.empty((3, repeats, 8))
        for i in range(repeats):
            numbers = (0.0, 1.0)
            while numbers[0] < numbers[1]:
                numbers = np.log([2.0, 0.4]) + 1.5 * rng.standard_normal(2)
            ratio = np.log(0.7 / 0.3) + 1.5 * np.sqrt(2) * rng.standard_normal()
            process = MaternSum(t, (2, 1), 1, np.ones(2), np.ones(2) / 2).with_numbers((*numbers, ratio))
            E = process.colour(rng.standard_normal((10, r))) @ inverse_root
            b = np.einsum("mkl,ml->mk", A, mean + E) + np.einsum("mkl,ml->mk", noise_root, rng.standard_normal((10, r)))
            before = np.array(figures(process, E, b))
            moved[0, i] = np.subtract(
                figures(process_given_values(process, E, precision, PRIOR, rng, which), E, b), before
            )
            other, shifted = process_given_noise(
                process, E, lambda E, b=b: log_likelihood(E, A, b, mean), PRIOR, rng, which
            )
            moved[1, i] = np.subtract(figures(other, shifted, b), before)
            other = process_given_data(process, A, b, mean, precision, PRIOR, rng, which=which)
            noise = rng.standard_normal((*process.noise_shape, r))
            drawn = other.states_given_data(A, b, mean, precision, noise)[:, 0]
            moved[2, i] = np.subtract(figures(other, drawn, b), before)
        assert max(np.abs(z_scores(step)).max() for step in moved) < 4.5

    def test_which_are_learned(self):
        def learned(orders, learn):
            lengths = np.ones(sum(map(bool, orders)))
            parts = np.ones(len(orders)) / len(orders)
            return Residual(np.arange(3.0), np.arange(3.0), orders, lengths, parts, 1.0, learn).learned

        assert learned((2, 1), (True, True)) == (0, 1, 2)
        assert learned((2, 0, 1), (True, True, False)) == (0, 2, 3)
        assert learned((2, 1), (False, False)) == ()


SUM = Matern32(60.0) + 0.25 * Matern12(3.0)


def trend_and_weather(seed, n=150):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.choice(np.arange(1.5 * n), n, replace=False))
    trend = MaternProcess(t, 2, 60.0).colour(rng.standard_normal((n, 1)))[:, 0]
    weather = 0.5 * MaternProcess(t, 1, 4.0).colour(rng.standard_normal((n, 1)))[:, 0]
    return t, trend, weather, trend + weather + 0.2 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def fitted():
    t, _, _, y = trend_and_weather(3)
    model = TuckerGPRegressor([Mode("t", SUM)], rank=1, inference=Gibbs(draws=30, warmup=30), random_state=0)
    return model.fit({"t": t}, y), t, y


class TestRegressor:
    def test_materns_of_one_column_are_one_line(self, fitted):
        model = fitted[0]
        mode = model.modes_[0]
        assert isinstance(mode.residual, LineSum)
        assert mode.residual.orders_ == (2, 1)
        assert mode.residual_sd == pytest.approx(np.sqrt(1.25))
        assert [type(block.kernel).__name__ for block in mode.blocks] == ["Constant"]
        assert "line" in str(model.features_)
        posterior = model.inference_data().posterior
        lengths, shares = posterior["lengthscale"].values, posterior["share"].values
        assert lengths.shape == shares.shape == (1, 30, 2)
        assert (lengths[..., 0] > lengths[..., 1]).all()
        np.testing.assert_allclose(shares.sum(axis=-1), 1.0)
        assert len(np.unique(shares)) == 60

    def test_parts_add_up_to_the_prediction_with_bands_of_their_own(self, fitted):
        model, t, _ = fitted
        X = {"t": np.concatenate([t[:40] + 0.25, t, [-30.0, 400.0]])}
        parts = model.decompose(X)
        assert sorted(parts.terms) == ["Matern12(t)", "Matern32(t)"]
        np.testing.assert_allclose(parts.total(), model.predict(X), atol=1e-10)
        slow, fast = (parts.terms.index(name) for name in ("Matern32(t)", "Matern12(t)"))
        inside = slice(0, -2)
        assert np.abs(np.diff(parts.mean[40:-2, slow])).mean() < np.abs(np.diff(parts.mean[40:-2, fast])).mean() / 2
        assert parts.std[inside, slow].mean() < parts.std[inside, fast].mean() * 5
        assert abs(parts.mean[-1, fast]) < 0.2 * np.abs(parts.mean[inside, fast]).max()  # weather is forgotten
        assert (parts.std[-2:, slow] > 1.5 * parts.std[inside, slow].mean()).all()

    @quick_and_long("datasets", 6, 40)
    def test_bands_cover_trend_and_weather(self, datasets):
        """90 % bands of both parts, lengthscales and shares drawn. Values of one data set are alike: as if there were
        some ten of them, 6 sets have a coverage of 0.9 +- 0.04, and the bound is six of that."""
        covered = []
        for seed in range(datasets):
            t, trend, weather, y = trend_and_weather(seed)
            mode = Mode("t", SUM, constant=False)
            model = TuckerGPRegressor([mode], rank=1, draws=80, warmup=60, random_state=seed).fit({"t": t}, y)
            parts = model.decompose({"t": t})
            for name, true in (("Matern32(t)", trend - parts.level), ("Matern12(t)", weather)):
                k = parts.terms.index(name)
                covered.append(np.mean((parts.lower[:, k] <= true) & (true <= parts.upper[:, k])))
        covered = np.reshape(covered, (-1, 2)).mean(axis=0)
        assert (np.abs(covered - 0.9) < 0.6 / np.sqrt(datasets)).all(), covered

    def test_a_file_keeps_the_parts(self, fitted, tmp_path):
        model, t, _ = fitted
        model.save(tmp_path / "model.tgp")
        X = {"t": np.append(t[:5] + 0.3, 500.0)}
        again = load(tmp_path / "model.tgp").decompose(X)
        ours = model.decompose(X)
        assert again.terms == ours.terms
        np.testing.assert_array_equal(again.mean, ours.mean)
        np.testing.assert_array_equal(again.upper, ours.upper)

    def test_a_run_that_was_stopped_resumes_to_the_same_draws(self, tmp_path):
        t, _, _, y = trend_and_weather(0, 40)

        def fit(**more):
            model = TuckerGPRegressor([Mode("t", SUM)], rank=2, draws=12, warmup=5, random_state=0)
            return model.fit({"t": t}, y, **more)

        def stop(info):
            if info.step == 9:
                raise KeyError("stopped")

        whole = fit()
        with pytest.raises(KeyError):
            fit(checkpoint=tmp_path / "run", callback=stop)
        seen = []
        resumed = fit(checkpoint=tmp_path / "run", callback=seen.append)
        assert len(seen) < 17
        new = {"t": np.array([-3.0, 0.5, 90.0])}
        for a, b in zip(whole.predict(new, return_std=True), resumed.predict(new, return_std=True), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_duplicates_and_one_input_are_fitted(self):
        model = TuckerGPRegressor([Mode("t", SUM)], rank=1, draws=5, warmup=5, random_state=0)
        rng = np.random.default_rng(0)
        few = {"t": np.repeat([1.0, 2.0, 7.0], 10)}
        assert np.isfinite(model.fit(few, rng.standard_normal(30)).predict({"t": [1.5, 2.0]})).all()
        one = {"t": np.array([2.0])}
        assert np.isfinite(model.fit(one, np.array([3.0])).predict({"t": [2.0, 5.0]})).all()

    def test_other_terms_stay_features(self):
        t, _, _, y = trend_and_weather(1, 40)
        kernel = Linear() + SUM
        model = TuckerGPRegressor([Mode("t", kernel)], rank=1, draws=4, warmup=4, random_state=0).fit({"t": t}, y)
        mode = model.modes_[0]
        assert [type(block.kernel.unscaled()[0]).__name__ for block in mode.blocks] == ["Constant", "Linear"]
        assert mode.residual.shares_ == pytest.approx([0.8, 0.2])

    def test_features_that_the_user_asks_for_are_taken(self):
        t, _, _, y = trend_and_weather(1, 40)
        mode = Mode("t", SUM, features=[Line(), Cholesky()])
        model = TuckerGPRegressor([mode], rank=1, draws=4, warmup=4, random_state=0).fit({"t": t}, y)
        fitted = model.modes_[0]
        assert isinstance(fitted.residual, Line)
        assert fitted.blocks[-1].map.n_features_ == 40

    def test_numbers_that_are_not_to_be_learned_stay(self):
        t, _, _, y = trend_and_weather(1, 40)

        def drawn(features):
            mode = Mode("t", SUM, features=features)
            model = TuckerGPRegressor([mode], rank=1, draws=4, warmup=4, random_state=0).fit({"t": t}, y)
            return [model.inference_data().posterior[name].values[0] for name in ("lengthscale", "share")]

        lengths, shares = drawn(Line(learn=False))
        np.testing.assert_allclose(lengths, np.tile([60.0, 3.0], (4, 1)))
        np.testing.assert_allclose(shares, np.tile([0.8, 0.2], (4, 1)))
        lengths, shares = drawn([Line(learn=False), Line()])
        np.testing.assert_allclose(lengths[:, 0], 60.0)
        assert len(np.unique(lengths[:, 1])) == len(np.unique(shares[:, 0])) == 4

    def test_an_identity_beside_a_marked_matern_is_white_noise_of_the_line(self):
        """Rows that differ independently, each with several observations, so that noise is told from them."""
        rng = np.random.default_rng(0)
        t = np.repeat(np.arange(60.0), 4)
        own = rng.standard_normal(60)
        y = 2 * np.sin(t / 9) + own[t.astype(int)] + 0.1 * rng.standard_normal(240)
        mode = Mode("t", Matern32(10.0) + Identity(), features=Line())
        model = TuckerGPRegressor([mode], rank=1, draws=60, warmup=60, random_state=0).fit({"t": t}, y)
        assert model.modes_[0].residual.orders_ == (2, 0)
        days = {"t": np.arange(60.0)}
        parts = model.decompose(days)
        k = parts.terms.index("Identity(t)")
        assert np.corrcoef(parts.mean[:, k], own)[0, 1] > 0.8
        between = model.decompose({"t": np.arange(20.5, 30.5)})
        k = between.terms.index("Identity(t)")
        assert np.abs(between.mean[:, k]).max() < 0.3
        assert between.std[:, k].mean() == pytest.approx(1.0, rel=0.4)
        rows = TuckerGPRegressor([Mode("t", Matern32(10.0) + Identity())], rank=1, draws=4, warmup=4, random_state=0)
        assert type(rows.fit({"t": t}, y).modes_[0].residual).__name__ == "Rows"

    def test_als_has_the_parts_of_the_dense_posterior_mean(self):
        rng = np.random.default_rng(0)
        t = np.array([0.0, 0.4, 1.1, 1.3, 2.9, 4.0])
        y = rng.standard_normal(6)
        y = (y - y.mean()) / y.std()
        slow, fast = Matern52(3.0), 0.3 * Matern12(0.5)
        mode = Mode("t", slow + fast, constant=False)
        model = TuckerGPRegressor([mode], rank=1, core="identity", inference=ALS(noise=0.3, iterations=3))
        new = np.array([0.0, 0.2, 4.0, 6.0])
        parts = model.fit({"t": t}, y).decompose({"t": new})
        alpha = np.linalg.solve((slow + fast)(t) + 0.3 * np.eye(6), y)
        for kernel, name in ((slow, "Matern52(t)"), (fast, "Matern12(t)")):
            mean = parts.mean[:, parts.terms.index(name)]
            np.testing.assert_allclose(mean, kernel(new, t) @ alpha, atol=1e-9)

    def test_a_line_of_another_column_is_refused(self):
        kernel = Matern12(1.0, "t") + Matern12(1.0, "s")
        mode = Mode(["t", "s"], kernel, features=[Line(), Line()])
        X = {"t": np.arange(9.0), "s": np.arange(9.0)[::-1]}
        with pytest.raises(InputError, match="on one column that tells all inputs of the mode apart"):
            TuckerGPRegressor([mode], rank=1, draws=2, warmup=1).fit(X, np.arange(9.0))


class TestMark:
    def test_says_what_is_wrong_with_what_a_file_holds(self):
        def mark(**changed):
            made = LineSum([Line(), Line()]).fit(np.arange(5.0), SUM)
            vars(made).update(changed)
            return made

        assert mark().fault() is None
        for name, values in {
            "orders_": [(2, 4), (0, 0), (2,), (2, True)],
            "lengthscales_": [np.array([1.0]), np.array([1.0, -1.0])],
            "shares_": [np.array([1.0]), np.array([2.0, -1.0]), np.array([0.2, 0.2])],
            "knots_": [np.array([0.0, 0.0]), np.zeros(0)],
        }.items():
            for value in values:
                assert mark(**{name: value}).fault() is not None, (name, value)

    def test_is_for_sums_of_its_number_of_parts(self):
        for kernel in (Matern12(1.0), SUM + Matern12(1.0), Linear() + Matern12(1.0), Identity() + Identity()):
            with pytest.raises(InputError, match="so many Matern terms of one numeric column"):
                LineSum([Line(), Line()]).fit(np.arange(5.0), kernel)
