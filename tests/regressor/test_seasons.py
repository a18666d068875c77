"""Seasons that are found in columns of numbers, and defaults that carry them into gaps and beyond the last row."""

import numpy as np
import pytest
from scipy.signal import lombscargle

from tuckergp import TuckerGPRegressor, load
from tuckergp.data.tables import as_table
from tuckergp.kernels import Periodic
from tuckergp.model.whitening import whitening_of
from tuckergp.regressor import seasons as module
from tuckergp.regressor import trial
from tuckergp.regressor.contenders import contenders
from tuckergp.regressor.seasons import seasons_of
from tuckergp.regressor.trial import _in_gaps

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

YEARS = np.datetime64("2020-01-01") + np.arange(3 * 365)


def found(x, y):
    table = as_table({"x": x}, "X")
    return seasons_of(table, y, table).get("x", [])


def weather(n, rng, kept=0.9):
    """Ups and downs that last some rows, without a season."""
    out = rng.standard_normal(n)
    for k in range(1, n):
        out[k] += kept * out[k - 1]
    return out


def noise(n, size, seed=0):
    return size * np.random.default_rng(seed).standard_normal(n)


@pytest.mark.parametrize("n", [250, 1000])
@pytest.mark.parametrize("noise", [0.05, 1.0])
def test_a_period_is_found_to_a_small_part_of_a_cycle_in_the_whole_span(n, noise):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-3, 8, n)
        y = np.sin(2 * np.pi * x) + 0.3 * np.sin(4 * np.pi * x + 1) + 0.5 * x + noise * rng.standard_normal(n)
        (period,) = found(x, y)
        assert 11 / period == pytest.approx(11, abs=0.15 * max(noise, 0.1))


def test_the_grid_of_cells_has_the_power_of_waves_of_exact_places():
    """Beside the periodogram of SciPy, which is for rows at any places."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 600, endpoint=False)
    y = rng.standard_normal(600)
    cycles, power = module._spectrum(x, y, 60.0)
    exact = lombscargle(x, y, 2 * np.pi * cycles)
    assert (cycles[0], cycles[-1]) == (module.CYCLES, 60.0)
    assert np.corrcoef(power, exact)[0, 1] > 0.97
    strongest = cycles[exact.argmax()]
    assert cycles[power.argmax()] == pytest.approx(strongest, abs=1 / module.FINE)


@pytest.mark.parametrize("falls", [0, 1, 2])
def test_usual_power_is_the_mean_of_noise_whose_power_falls_with_the_number_of_cycles(falls):
    rng = np.random.default_rng(0)
    cycles = np.arange(20, 4000) / module.FINE
    mean = 7.0 * cycles**-falls
    usual = np.mean([module._usual(cycles, mean * rng.exponential(size=len(cycles))) for _ in range(20)], axis=0)
    np.testing.assert_allclose(usual[30:], mean[30:], rtol=0.2)
    assert np.all(usual > 0.8 * mean)  # on one side alone it is less sure, and rather too high


def test_a_weak_and_quick_season_is_found_beneath_slow_ups_and_downs():
    t = np.arange(600.0)
    for seed in range(5):
        y = np.cumsum(np.random.default_rng(seed).standard_normal(600)) + 1.2 * np.sin(2 * np.pi * t / 7)
        assert 7.0 in found(t, y)


def test_numbers_of_whole_steps_are_those_that_the_rows_cannot_tell_from_them():
    t = np.arange(400.0)
    assert found(t, np.sin(2 * np.pi * t / 23.5) + noise(400, 0.1)) == pytest.approx([23.5], abs=0.05)
    assert module._step(np.array([3.0, 1.0, 1.0, 7.0])) == 2.0
    assert module._step(np.array([0.0, 1.0, 2.4])) == 0.0


def test_weeks_and_years_of_dates_are_those_of_the_calendar():
    rng = np.random.default_rng(0)
    day = np.arange(len(YEARS))
    y = 20 * np.cos(2 * np.pi * day / 365.2425) + 10 * (day % 7 >= 5) + 2 * weather(len(day), rng)
    assert sorted(found(YEARS, y)) == [7.0, 365.2425]
    quick = y - 17 * np.cos(2 * np.pi * day / 365.2425) + 15 * np.sin(4 * np.pi * day / 365.2425 + 1)
    assert sorted(found(YEARS, quick)) == [7.0, 365.2425 / 2]
    week, year = sorted(found(day.astype(float), y))  # numbers have no calendar, but whole steps
    assert (week, year) == (7.0, round(year))
    assert year == pytest.approx(365.0, rel=0.03)
    assert found(day / 8.3, y) == pytest.approx([year / 8.3, 7 / 8.3])
    rough = found(day + rng.uniform(0, 0.1, len(day)), y)
    assert min(rough) == pytest.approx(7.0, abs=1e-3)
    assert min(rough) != 7.0


@pytest.mark.parametrize("half", [0, 5, 10])
def test_three_years_are_found_where_their_halves_differ(half):
    day = np.arange(len(YEARS))
    for seed in range(4):
        year = 20 * np.cos(2 * np.pi * day / 365.2425 + seed) + half * np.sin(4 * np.pi * day / 365.2425 + 1)
        assert found(YEARS, year + 2 * weather(len(day), np.random.default_rng(seed))) == [365.2425]


def test_parts_of_a_season_are_exact_parts_of_it():
    """Where half of a season is stronger than the whole, both tell the period."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 500))
    y = np.cos(2 * np.pi * x) + 2 * np.sin(4 * np.pi * x) + 1.5 * np.cos(6 * np.pi * x) + 0.5 * rng.standard_normal(500)
    periods = sorted(found(x, y))
    assert periods == pytest.approx([1 / 3, 1 / 2, 1], rel=2e-3)
    assert periods[2] / np.array(periods) == pytest.approx([3, 2, 1], rel=1e-12)


def test_few_columns_without_a_season_seem_to_have_one():
    rng, count = np.random.default_rng(1), 0
    for k in range(200):
        n = int(rng.integers(200, 800))
        x = [rng.uniform(0, 1, n), np.arange(n, dtype=float)][k % 2]
        y = [rng.standard_normal(n), np.empty(n)][k // 2 % 2]
        if k // 2 % 2:
            y[np.argsort(x)] = weather(n, rng, rng.choice([0.5, 0.9, 0.99]))
        count += bool(found(x, y))
    assert count <= 6


@pytest.mark.parametrize("values", ["few", "constant", "words", "repeated", "one far away"])
def test_columns_that_cannot_have_a_season_have_none(values):
    rng = np.random.default_rng(0)
    column = {
        "few": rng.integers(0, 9, 400),
        "constant": np.ones(400),
        "words": rng.choice(["a", "b"], 400).astype(object),
        "repeated": np.where(rng.random(400) < 0.98, rng.integers(0, 5, 400), rng.uniform(0, 5, 400)),
        "one far away": np.r_[1e9, np.arange(399.0)],
    }[values]
    y = rng.standard_normal(400) + (np.sin(6 * column) if values != "words" else 0)
    assert found(column, y) == []


def test_a_part_of_the_rows_shows_a_week_as_all_days_do():
    rng = np.random.default_rng(0)
    day = np.arange(1500.0)
    y = (day % 7 >= 5) + 0.3 * rng.standard_normal(1500)
    some = np.sort(rng.permutation(1500)[:300])
    whole = as_table({"day": day}, "X")
    assert seasons_of(whole.take(some), y[some], whole)["day"] == pytest.approx([7.0], rel=1e-3)
    assert found(day[some], y[some]) == []  # fewer than four in a cycle


@pytest.mark.parametrize("curve", [lambda s: 1e4 * s**2, lambda s: 1e4 * s**3, lambda s: 1e2 * np.exp(3 * s)])
def test_a_steep_and_curved_trend_is_no_season_and_hides_none(curve):
    t = np.arange(600.0)
    trend = curve(t / 600)
    assert found(t, trend) == []
    assert found(t, trend + np.sin(2 * np.pi * t / 20) + noise(600, 0.1)) == [20.0]


@pytest.mark.parametrize("cycles", [1.7, 2.3, 600 / 3.6, 600 / 3, 600 / 1.9])
def test_waves_of_fewer_cycles_or_fewer_values_a_cycle_are_none(cycles):
    t = np.arange(600.0)
    for size in (0.001, 0.1):
        assert found(t, np.sin(2 * np.pi * cycles * t / 600) + noise(600, size)) == []


@pytest.mark.parametrize(("cycles", "often"), [(2.7, 5), (3.0, 8), (4.5, 11)])
def test_few_cycles_are_found_in_noise(cycles, often):
    x, count = np.linspace(0, 1, 300), 0
    for seed in range(12):
        periods = found(x, np.sin(2 * np.pi * cycles * x + seed) + noise(300, 0.7, seed))
        count += any(abs(1 / period - cycles) < 0.15 for period in periods)
    assert count >= often


def test_targets_that_differ_by_rounding_alone_have_no_season():
    for n in (60, 600, 1000):
        t = np.arange(float(n))
        for y in (np.full(n, 0.1), 0.1 * t + 1e6, 3 * t + 1, (t - 7) ** 2):
            assert found(t, y) == []


def test_quarters_of_a_year_are_measured_by_waves_that_four_values_show():
    """A third wave of four values in a cycle would be the first of another period."""
    t = np.arange(80.0)
    for seed in range(10):
        assert found(t, np.sin(np.pi * t / 2 + 0.3) + noise(80, 0.3, seed)) == [4.0]


def test_a_season_that_grows_is_one():
    t = np.arange(600.0)
    for seed in range(5):
        assert found(t, t / 600 * np.sin(2 * np.pi * t / 20) + noise(600, 0.1, seed)) == [20.0]


def test_short_series_have_no_second_season_for_which_too_few_others_speak():
    whole, count = as_table({"x": np.arange(80.0)}, "X"), 0
    for seed in range(30):
        rows = np.sort(np.random.default_rng(seed).permutation(80)[:60])
        y = np.sin(2 * np.pi * rows / 12 + seed) + noise(60, 0.3, seed)
        periods = seasons_of(whole.take(rows), y, whole)["x"]
        assert periods[0] == pytest.approx(12, rel=0.02)
        count += len(periods) > 1
    assert count <= 1


def test_shops_of_other_levels_and_other_numbers_hide_no_season():
    rng = np.random.default_rng(0)
    day = np.repeat(np.arange(120.0), 5)
    table = as_table({"day": day, "shop": np.tile(list("abcde"), 120).astype(object), "z": rng.uniform(size=600)}, "X")
    y = np.sin(2 * np.pi * day / 12) + noise(600, 0.3) + 10 * table["z"] + 10 * np.tile(np.arange(5.0), 120)
    rows = rng.permutation(600)[:300]
    assert seasons_of(table.take(rows), y[rows], table) == {"day": [12.0]}


def test_rows_of_little_weight_hide_no_season():
    t = np.arange(200.0)
    table, rough = as_table({"x": t}, "X"), t % 5 == 0
    y = np.sin(2 * np.pi * t / 12) + noise(200, 0.2) + np.where(rough, noise(200, 30.0, 1), 0)
    assert seasons_of(table, y, table) == {}
    weight = np.where(rough, 1e-4, 1.0)
    for unit in (1.0, 1e-200):
        assert seasons_of(table, y, table, unit * weight) == {"x": [12.0]}
    model = TuckerGPRegressor(rank=1, draws=5, warmup=5, random_state=0).fit({"x": t}, y, sample_weight=weight)
    assert model.choice_.seasons == {"x": [12.0]}


def test_modes_have_periods_in_standard_deviations_of_weighted_rows():
    rng = np.random.default_rng(0)
    table = as_table({"x": rng.exponential(size=300), "z": rng.uniform(size=300)}, "X")
    weight = rng.exponential(size=300)
    models = contenders(table, seasons={"x": [0.5, 0.1]}, weight=weight)
    assert list(models)[:4] == ["lines", "rough lines", "lines with seasons", "rough lines with seasons"]
    of_x, of_z = models["rough lines with seasons"].modes
    periods = [leaf.period for leaf in of_x.kernel.leaves() if isinstance(leaf, Periodic)]
    assert np.multiply(periods, whitening_of(table, weight)["x"][1]) == pytest.approx([0.5, 0.1])
    assert of_z == models["rough lines"].modes[1]
    assert "lines with seasons" not in contenders(table, seasons={})


def test_gaps_are_of_half_a_period_and_of_few_rows():
    rng = np.random.default_rng(0)
    day = np.repeat(np.arange(201.0), 3)
    table = as_table({"z": rng.uniform(size=603), "day": day}, "X")
    for period, longest in ((80.0, 40.0), (40.0, 20.0), (7.0, 10.0)):
        seen = np.zeros(603, dtype=bool)
        for _ in range(40):
            gap = _in_gaps(table, {"day": [2.0, period]}, rng)
            assert 0.15 <= gap.mean() <= 0.25
            days = np.unique(day[gap])
            assert gap.sum() == 3 * len(days)
            runs = np.split(days, np.flatnonzero(np.diff(days) > 1) + 1)
            assert min(map(len, runs)) >= longest - 1
            seen |= gap
        assert seen.all()
    assert not _in_gaps(table, {}, rng).any()
    crowded = as_table({"x": np.r_[rng.uniform(0, 0.1, 500), rng.uniform(0, 10, 100)]}, "X")
    assert max(_in_gaps(crowded, {"x": [1.0]}, rng).mean() for _ in range(40)) <= 0.25


@pytest.fixture(scope="module")
def fits():
    """Defaults on trends with a season and ups and downs; rows 150 to 190 and from 340 on are missing."""
    out = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        t = np.arange(400.0)
        f = 0.01 * t + np.sin(2 * np.pi * t / 23.5 + seed) + 0.3 * weather(400, rng, 0.6)
        y = f + 0.1 * rng.standard_normal(400)
        seen = (t < 150) | ((t > 190) & (t < 340))
        model = TuckerGPRegressor(rank=1, draws=60, warmup=60, random_state=seed).fit({"t": t[seen]}, y[seen])
        out.append((model, t, y, seen))
    return out


class TestDefaults:
    def test_the_season_is_chosen_shown_and_kept(self, fits, tmp_path):
        model, t, *_ = fits[0]
        assert model.choice_.modes.endswith("with seasons")
        (period,) = model.choice_.seasons["t"]
        assert period == pytest.approx(23.5, rel=0.01)
        assert f"a season of {period:.6g}" in model.features_["t"].note
        model.save(tmp_path / "model.tgp")
        again = load(tmp_path / "model.tgp")
        assert again.choice_ == model.choice_
        np.testing.assert_array_equal(again.predict({"t": t}), model.predict({"t": t}))
        assert "Periodic(t)" in model.decompose({"t": t}).terms

    def test_intervals_hold_what_they_say_in_a_gap_and_beyond(self, fits):
        inside, errors = {0.5: [], 0.9: []}, []
        for model, t, y, seen in fits:
            mean, ends = model.predict({"t": t[~seen]}, quantiles=[0.05, 0.25, 0.75, 0.95])
            inside[0.9].append((ends[:, 0] < y[~seen]) & (y[~seen] < ends[:, 3]))
            inside[0.5].append((ends[:, 1] < y[~seen]) & (y[~seen] < ends[:, 2]))
            errors.append(mean - y[~seen])
        assert 0.82 < np.mean(inside[0.9]) < 0.98
        assert 0.38 < np.mean(inside[0.5]) < 0.68
        assert np.sqrt(np.mean(np.square(errors))) < 0.7  # the ups and downs and the noise are 0.39, the season 0.71

    def test_few_rows_are_tried_for_seasons_alone(self):
        rng = np.random.default_rng(0)
        t, z = np.arange(120.0), rng.uniform(size=120)
        y = np.sin(2 * np.pi * t / 12) + 0.02 * t + 0.2 * rng.standard_normal(120)
        short = {"rank": 1, "draws": 20, "warmup": 20, "random_state": 0}
        model = TuckerGPRegressor(**short).fit({"t": t, "z": z}, y)
        assert set(model.choice_.scores) == {"lines", "lines with seasons"}
        assert model.choice_.modes.endswith("with seasons")
        assert TuckerGPRegressor(**short).fit({"t": t, "z": z}, rng.standard_normal(120)).choice_ is None
        assert TuckerGPRegressor(**short).fit({"t": t[:59], "z": z[:59]}, y[:59]).choice_ is None

    def test_a_season_beside_ups_and_downs_is_judged_in_gaps(self, monkeypatch):
        """Between rows that are close, lines without the season would foretell as well."""
        judged = []
        kurtosis = trial._kurtosis
        monkeypatch.setattr(trial, "_kurtosis", lambda model, held: judged.append(held) or kurtosis(model, held))
        short = {"rank": 1, "draws": 20, "warmup": 20, "random_state": 0}
        for n, seeds in ((120, range(6)), (260, range(1))):
            for seed in seeds:
                rng, t = np.random.default_rng(seed), np.arange(float(n))
                y = np.sin(2 * np.pi * t / 20 + seed) + 0.13 * weather(n, rng) + 0.05 * rng.standard_normal(n)
                choice = TuckerGPRegressor(**short).fit({"t": t}, y).choice_
                assert choice.modes.endswith("with seasons")
                assert choice.seasons["t"][0] == pytest.approx(20, rel=0.02)
                assert choice.held_out > n // 4
                assert choice.rows + choice.held_out == n
        (near,) = judged  # noise is judged by rows that are not in gaps
        assert 65 * 0.6 < len(near.target) < 65
