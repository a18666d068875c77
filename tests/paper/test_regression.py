"""California and wind: parts that do not overlap, models by hand, claims. Quick runs are in tests/paper/report."""

import numpy as np
import pytest

from tuckergp import Mode
from tuckergp.features import Fourier
from tuckergp.gp import ExactGP
from tuckergp.inference import Gibbs
from tuckergp.kernels import SE
from tuckergp.paper import california, california_models, regression, wind
from tuckergp.paper.sources import load

HELD_OUT = {"california": california.held_out, "wind": wind.held_out}


@pytest.fixture(scope="module")
def splits(data_dir):
    return {
        "california": california_models.split_of(load("california", data_dir)),
        "wind": wind.split_of(load("wind", data_dir)),
    }


def rows_of(part):
    """Inputs and target of every row as one comparable thing."""
    return list(zip(*[values.tolist() for values in part.X.values()], part.y.tolist(), strict=True))


def test_the_authors_split_has_the_error_of_a_zero_prediction_that_they_report(splits):
    split = splits["california"]
    assert len(split.train.y) == len(split.test.y) == 10_320
    mean = split.train.y.mean()
    assert round(float(np.sqrt(np.mean((split.test.y - mean) ** 2))), 4) == 0.5709


def test_wind_has_20_000_training_values_and_nothing_twice(splits):
    split = splits["wind"]
    assert (len(split.train.y), len(split.test.y)) == (20_000, 58_888)
    key = [
        set(zip(part.X["station"].tolist(), part.X["day"].tolist(), strict=True)) for part in (split.train, split.test)
    ]
    assert not key[0] & key[1]
    assert len(key[0]) + len(key[1]) == 78_888


@pytest.mark.parametrize("name", HELD_OUT)
def test_choosing_sees_training_rows_alone(name, splits):
    split, inner = splits[name], HELD_OUT[name](splits[name])
    assert sorted(rows_of(inner.train) + rows_of(inner.test)) == sorted(rows_of(split.train))


def test_the_gp_of_the_authors_is_what_their_numbers_say_on_some_rows(splits):
    """The kernel of the experiment against one written out, on 300 rows."""
    part = splits["california"].train.take(np.arange(300))
    given = california_models.GIVEN
    gp = ExactGP(california_models.modes_of(given, None), given.scale, given.noise, learn=False).fit(part.X, part.y)
    Z = np.stack([(x - x.mean()) / x.std() for x in part.X.values()], axis=1) / [given.longitude, given.latitude]
    K = given.scale * np.exp(-0.5 * ((Z[:, None] - Z) ** 2).sum(-1))
    y = (part.y - part.y.mean()) / part.y.std()
    mean = K @ np.linalg.solve(K + given.noise * np.eye(300), y) * part.y.std() + part.y.mean()
    np.testing.assert_allclose(gp.predict(part.X), mean, atol=1e-8)


def test_turning_keeps_distances_and_equal_places_equal():
    X = {"longitude": np.array([-120.0, -119.0, -120.0]), "latitude": np.array([36.0, 37.0, 36.0])}
    straight, turned = california_models.turn(X, 0.0), california_models.turn(X, 30.0)

    def distance(at):
        return np.hypot(at["u"][0] - at["u"][1], at["v"][0] - at["v"][1])

    assert distance(straight) == pytest.approx(distance(turned), abs=2e-4)
    assert turned["u"][0] == turned["u"][2]
    assert straight["v"].tolist() == X["latitude"].tolist()


def test_claims_are_judged_by_every_size_that_was_run():
    def cell(error):
        return {"train_rmse": 0.1, "test_rmse": error, "seconds": 1.0}

    cells = {"gp/given": cell(0.29)}
    for n in california.SIZES:
        cells |= {f"full/n={n}/seed 0": cell(0.3), f"gibbs/n={n}/r=5/seed 0": cell(0.28)}
    cells["gibbs/n=50/r=5/seed 1"] = cell(0.9)  # a seed that full rank was not run with
    below = "r = 5 below full rank for all n (Gibbs)"
    assert {row[0]: row[1] for row in california.claims_table(cells)}[below] == "pass"
    cells["gibbs/n=50/r=5/seed 0"] = cell(0.31)
    claims = {row[0]: row[1:] for row in california.claims_table(cells)}
    assert claims[below][0] == "fail"
    assert "n = 50: 0.3100 and 0.3000" in claims[below][1]
    assert claims["r = 5: higher training and lower test error than full rank (Gibbs)"][0] == "fail"


def test_convergence_is_of_entries_of_u_and_w_of_every_chain():
    rng = np.random.default_rng(0)
    part = regression.Part({"x": rng.random(60), "z": rng.random(60)}, rng.standard_normal(60))
    modes = [Mode(name, SE(0.5), features=Fourier(3, pairs=False), constant=False) for name in ("x", "z")]
    model = regression.tucker(modes, 2, Gibbs(draws=8, warmup=2, chains=2), 0, regression.Split(part, part))
    entries = regression._parameters(model.fit_.draws)
    assert entries.shape == (2, 8, 2 * 3 * 2 + 4)
    last = model.fit_.draws.only(-1)
    expected = np.concatenate([*(mode.B[:, 0].ravel() for mode in last.modes), last.W[0]])
    np.testing.assert_allclose(entries[1, -1], expected)
    found = regression.convergence(model)
    assert found["f"]["draws"] == found["parameters"]["draws"] == 16


def test_exact_features_on_distinct_values_make_a_cell(splits):
    split = splits["california"]
    few = regression.Split(split.train.take(np.arange(80)), split.test.take(np.arange(40)))
    cell = california_models.cholesky(few, 2, 0, {"draws": 4, "warmup": 2, "chains": 1})
    distinct = [len(np.unique(few.train.X[name])) for name in ("longitude", "latitude")]
    # places that are all but equal may share a feature
    assert all(0.9 * most < found <= most for found, most in zip(cell["features"], distinct, strict=True))
