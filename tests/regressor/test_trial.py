"""What `modes=None` stands for: contenders, the trial among them, and what a fit makes of its outcome."""

from dataclasses import replace

import numpy as np
import pytest

from tuckergp import TuckerGPRegressor, load
from tuckergp.data.tables import as_table
from tuckergp.errors import DataWarning
from tuckergp.features import Field
from tuckergp.inference import Gibbs
from tuckergp.regressor import trial as trials
from tuckergp.regressor.choice import Choice
from tuckergp.regressor.contenders import contenders
from tuckergp.regressor.reading import Observations
from tuckergp.regressor.settings import RegressorSettings
from tuckergp.regressor.trial import _parts, _split, choose

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

SHORT = {"rank": 2, "draws": 8, "warmup": 8, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(260, 3))
TOGETHER = np.sin(X @ RNG.standard_normal((3, 4)) + np.arange(4)).sum(axis=1) + 0.2 * RNG.standard_normal(260)


def observations(X, y):
    table = as_table({f"x{j}": column for j, column in enumerate(X.T)}, "X")
    return Observations(table, y, None, None, np.arange(len(y)))


@pytest.fixture(scope="module")
def trial():
    data = observations(X, TOGETHER)
    return data, choose(RegressorSettings(**SHORT), data, 0, None)


def test_a_smooth_function_of_columns_that_act_together_is_a_surface(trial):
    _, choice = trial
    assert choice.modes in ("surface", "field")
    assert set(choice.scores) == {"lines", "rough lines", "surface", "field"}
    assert choice.scores[choice.modes] == max(choice.scores.values())
    assert (choice.rows, choice.held_out) == (195, 65)


def test_scores_are_log_densities_of_rows_that_were_not_learned_from(trial):
    data, choice = trial
    some, held = map(data.take, _split(data, 0))
    seen = {tuple(row) for row in np.column_stack(list(some.table.columns.values()))}
    assert not any(tuple(row) in seen for row in np.column_stack(list(held.table.columns.values())))
    model = TuckerGPRegressor(contenders(some.table)["lines"].modes, **SHORT).fit(some.table, some.target)
    assert model.log_predictive_density(held.table, held.target).mean() == pytest.approx(choice.scores["lines"])


LINE = np.linspace(-2, 2, 300)[:, None]
OUTLIERS = np.sin(LINE[:, 0]) + 0.1 * np.random.default_rng(2).standard_t(2.1, 300)


def test_rows_in_gaps_are_neither_learned_from_nor_among_those_that_are_near():
    t = np.arange(400.0)
    data = Observations(as_table({"t": t}, "X"), np.sin(2 * np.pi * t / 50), None, None, np.arange(400))
    some, held, near = _parts(data, {"t": [50.0]}, 0)
    learned, judged, close = ({*(part.table["t"] // 25)} for part in (some, held, near))  # gaps are of half a period
    assert close <= learned < judged
    assert not {*some.table["t"]} & {*held.table["t"]}
    assert {*near.table["t"]} < {*held.table["t"]}
    assert len(some.target) + len(held.target) == 400


def test_where_all_rows_held_out_at_random_are_in_gaps_they_tell_of_noise(monkeypatch):
    t = np.arange(400.0)
    data = Observations(as_table({"t": t}, "X"), np.sin(2 * np.pi * t / 50), None, None, np.arange(400))
    at_random = _split(data, 0)[1]
    monkeypatch.setattr(trials, "_in_gaps", lambda *_: np.isin(np.arange(400), at_random))
    np.testing.assert_array_equal(_parts(data, {"t": [50.0]}, 0).near.numbers, at_random)


def test_seasons_that_are_refused_change_nothing_of_the_choice_among_the_others(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    data, settings = observations(X, X[:, 0] + 0.1 * rng.random(300)), RegressorSettings(**SHORT)
    without = choose(settings, data, 0, None)
    assert without.seasons == {}
    monkeypatch.setattr(trials, "seasons_of", lambda *_: {"x0": [0.4]})
    assert choose(settings, data, 0, None) == replace(without, seasons={"x0": [0.4]})


def test_noise_is_students_where_held_out_residuals_have_heavy_tails():
    choice = choose(RegressorSettings(**SHORT), observations(LINE, OUTLIERS), 0, None)
    robust = choice.scores[f"{choice.modes} with heavy tails"]
    assert choice.heavy_tails
    assert robust > max(score for name, score in choice.scores.items() if "heavy" not in name)
    assert f"{choice}".startswith(f"{choice.modes} with heavy tails, by the mean log density")
    model = TuckerGPRegressor(**SHORT).fit(LINE, OUTLIERS)
    assert model.choice_ == choice
    assert model.fit_.likelihood.name == "student"


@pytest.mark.parametrize("given", ["student", "weights", "normal noise"])
def test_heavy_tails_are_not_tried_where_they_are_given_or_cannot_be(given):
    settings = RegressorSettings(**SHORT, likelihood="student" if given == "student" else "gaussian")
    y = LINE[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(300) if given == "normal noise" else OUTLIERS
    data = observations(LINE, y)
    choice = choose(settings, data._replace(weight=np.full(300, 2.0)) if given == "weights" else data, 0, None)
    assert set(choice.scores) == {"lines", "rough lines"}
    assert not choice.heavy_tails


def test_a_fit_with_heavy_tails_is_stored_with_its_noise(tmp_path):
    model = TuckerGPRegressor(**SHORT).fit(LINE, OUTLIERS)
    model.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    assert again.choice_.heavy_tails
    np.testing.assert_array_equal(
        again.log_predictive_density(LINE, OUTLIERS), model.log_predictive_density(LINE, OUTLIERS)
    )


def test_one_column_lies_on_a_line_smooth_or_rough():
    choice = choose(RegressorSettings(**SHORT), observations(X[:, :1], X[:, 0] + TOGETHER), 0, None)
    assert set(choice.scores) == {"lines", "rough lines"}
    assert choose(RegressorSettings(**SHORT), observations(X[:249], TOGETHER[:249]), 0, None) is None  # too few rows


@pytest.mark.filterwarnings("error::tuckergp.errors.DataWarning")
def test_a_column_that_only_held_out_rows_tell_of_is_in_all_models():
    """One row of a switch that is on: without it the switch is constant, and a trial said that its time was short."""
    data = observations(X, TOGETHER)
    held = data.take(_split(data, 0)[1])
    switch = np.zeros(len(X))
    switch[held.numbers[0]] = 1.0
    columns = np.column_stack([X[:, 0], switch])
    choice = choose(RegressorSettings(**SHORT), observations(columns, TOGETHER), 0, None)
    assert set(choice.scores) == {"lines", "rough lines", "surface", "field"}
    # lengthscales of a field are those of all its columns
    data = observations(columns, TOGETHER)
    some = data.take(_split(data, 0)[0])
    assert contenders(some.table, [0.5, 1.0], columns=["x0", "x1"])["field"].modes[0].columns == ("x0", "x1")


def test_a_trial_is_by_the_inference_of_the_fit(monkeypatch):
    seen = []
    fit = trials.fit_modes

    def watched(settings, *given):
        seen.append(settings.inference)
        return fit(settings, *given)

    monkeypatch.setattr(trials, "fit_modes", watched)
    own = Gibbs(draws=9, warmup=5, thin=3, chains=2, alpha_rate=0.05)
    choice = choose(RegressorSettings(inference=own, rank=2), observations(LINE, LINE[:, 0]), 0, None)
    assert seen[:2] == [Gibbs(draws=9, warmup=5, alpha_rate=0.05)] * 2
    assert set(choice.scores) >= {"lines", "rough lines"}


@pytest.mark.parametrize("given", [{"noise": "rows"}, {"shrinkage": True}])
def test_there_is_no_trial_with_an_inference_that_suits_some_models_alone(given, monkeypatch):
    monkeypatch.setattr("tuckergp.regressor.estimator.choose", lambda *_: pytest.fail("tried"))
    columns = {"x": X[:, 0], "y": X[:, 1], "place": np.tile(["a", "b"], 130)}
    inference = Gibbs(draws=4, warmup=4, **given)
    assert TuckerGPRegressor(inference=inference, rank=2, random_state=0).fit(columns, TOGETHER).choice_ is None


@pytest.fixture
def says(monkeypatch):
    """A trial with a given outcome; the settings and times that it was asked with."""
    asked = []

    def say(modes, lengthscales=()):
        def chosen(settings, data, seed, max_time):
            asked.append(max_time)
            return Choice(modes, {modes: -1.0, "lines": -2.0}, 150, 50, list(lengthscales))

        monkeypatch.setattr("tuckergp.regressor.estimator.choose", chosen)
        return asked

    return say


def test_the_outcome_is_fitted_said_and_stored(says, tmp_path, capsys):
    asked = says("field", [0.5, 1.0, 2.0])
    model = TuckerGPRegressor(**SHORT).fit(X, TOGETHER, progress=True, max_time=60)
    assert asked == [30.0]  # half of the time
    assert "modes: field, by the mean log density of 50 held-out rows after 150" in capsys.readouterr().err
    (fitted,) = model.modes_
    assert isinstance(fitted.residual, Field)
    np.testing.assert_array_equal(fitted.residual.lengthscales_, [0.5, 1.0, 2.0])
    assert {use.use for use in model.features_.values()} == {"field"}
    model.save(tmp_path / "model.tgp")
    assert load(tmp_path / "model.tgp").choice_ == model.choice_
    again = model.fit(X[:20], TOGETHER[:20])
    assert again.choice_.modes == "field"


def test_a_surface_has_levels_and_learned_numbers(says):
    says("surface")
    where = np.where(X[:, 0] > 0, "east", "west")
    columns = {"a": X[:, 0], "b": X[:, 1], "switch": X[:, 2] > 0, "where": where}
    model = TuckerGPRegressor(**SHORT).fit(columns, X[:, 1] + 3.0 * (where == "east"))
    assert model.score(columns, X[:, 1] + 3.0 * (where == "east")) > 0.99
    assert model.hyperparameters_["noise"] < 0.01
    assert model.modes_[0].mode.columns == ("a", "b", "switch", "where")
    curves = [repr(term) for term in model.modes_[0].mode.kernel.terms() if "Matern32" in repr(term)]
    assert len(curves) == 2  # none of the switch


def test_a_run_that_goes_on_keeps_its_choice(says, tmp_path, monkeypatch):
    says("rough lines")
    half = TuckerGPRegressor(**{**SHORT, "draws": 4}).fit(X, TOGETHER, checkpoint=tmp_path / "run")
    monkeypatch.setattr("tuckergp.regressor.estimator.choose", lambda *_: pytest.fail("chosen anew"))
    whole = TuckerGPRegressor(**SHORT).fit(X, TOGETHER, checkpoint=tmp_path / "run")
    assert whole.choice_ == half.choice_
    says("rough lines")
    np.testing.assert_array_equal(whole.predict(X), TuckerGPRegressor(**SHORT).fit(X, TOGETHER).predict(X))


def test_without_the_time_for_a_trial_columns_lie_on_lines():
    with pytest.warns(DataWarning, match="too short to try out which modes suit .*; raise max_time, or give modes"):
        model = TuckerGPRegressor(**SHORT).fit(X, TOGETHER, max_time=0.0)
    assert model.choice_ is None
    assert [use.use for use in model.features_.values()] == ["line"] * 3


@pytest.mark.parametrize(
    "given", [{"core": "full"}, {"inference": "als"}, {"modes": ["x0", "x1"]}, {"likelihood": "ordinal"}]
)
def test_there_is_no_trial_where_what_it_would_decide_is_given(given, monkeypatch):
    monkeypatch.setattr("tuckergp.regressor.estimator.choose", lambda *_: pytest.fail("tried"))
    lengths = {"rank": 2, "random_state": 0} if "inference" in given else SHORT
    y = np.round(TOGETHER) if "likelihood" in given else TOGETHER
    assert TuckerGPRegressor(**{**lengths, **given}).fit(X[:120], y[:120]).choice_ is None


def test_sweeps_that_are_not_given_are_fewer_for_more_rows():
    few, many = (contenders(as_table({"a": np.arange(n), "b": np.arange(n) % 7}, "X")) for n in (100, 20_000))
    for name in few:
        small, large = (each[name].settings(RegressorSettings()) for each in (few, many))
        assert large.draws + large.warmup < small.draws + small.warmup
        assert each_given(few[name]) == (5, 3)


def each_given(contender):
    settings = contender.settings(RegressorSettings(draws=5, warmup=3))
    return settings.draws, settings.warmup
