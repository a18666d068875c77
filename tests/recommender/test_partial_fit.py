"""Going on with more ratings: from the last draw, with all ratings, to where a new fit would be."""

import numpy as np
import pytest

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import rmse
from tuckergp.inference import Gibbs
from tuckergp.recommender.continuation import last_draws, start_from

SETTINGS = {
    "rows": {"inference": Gibbs(draws=20, warmup=15, noise="rows", chains=2)},
    "drift and context": {"inference": Gibbs(draws=10, warmup=10, noise="rows"), "time": "week", "context": "device"},
    "full core": {"inference": Gibbs(draws=10, warmup=10), "core": "full"},
    "ordinal": {"inference": Gibbs(draws=10, warmup=10), "likelihood": "ordinal"},
    "als": {"inference": "als"},
}


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)


def plain(table):
    columns = {name: values.tolist() for name, values in table.columns.items()}
    return columns | ({"device": ["tv", "phone"] * (len(table) // 2) + ["tv"] * (len(table) % 2)})


def cut(table, *rows):
    return {name: values[slice(*rows)] for name, values in table.items()}


@pytest.fixture(scope="module")
def ratings(data):
    return plain(data.train)


@pytest.mark.parametrize("name", SETTINGS)
def test_new_ids_are_known_and_all_ratings_count(name, data, ratings):
    settings = {"rank": 2, "time": None, "random_state": 0} | SETTINGS[name]
    old = cut(ratings, 0, 1000)
    rec = TuckerRecommender(**settings).fit(old, data.users, data.items)
    new = cut(ratings, 1000, None)
    new["user_id"][0], new["item_id"][1] = "new user", "new item"
    newcomer = {"user_id": ["new user"], "age": [30], "sex": ["F"], "occupation": ["doctor"]}
    rec.partial_fit(new, newcomer, warmup=5, progress=False)
    assert len(rec.history_) == len(ratings["rating"])
    assert rec.layout_.sides[0].number["new user"] < rec.layout_.sides[0].n_rated
    assert rec.layout_.sides[1].number["new item"] < rec.layout_.sides[1].n_rated
    assert "new user" in rec.tables_[0]["user_id"]
    assert np.isfinite(rec.predict({"user_id": ["new user"], "item_id": ["new item"]})).all()
    if name != "als":
        expected = SETTINGS[name]["inference"].draws + 5
        assert len(rec.fit_.steps) == expected * SETTINGS[name]["inference"].chains


def test_the_start_is_the_last_draw(data, ratings):
    rec = TuckerRecommender(rank=2, time="week", context="device", draws=3, warmup=20, random_state=0)
    rec.fit(ratings, data.users, data.items)
    layout, history = rec.layout_, rec.history_
    design = layout.design(*history.codes, history.occasion)
    trained = type(design)(
        (*(side.table.take(np.arange(side.n_rated)) for side in layout.sides), *design.modes[2:]), design.index
    )
    last = last_draws(rec.fit_)
    start = start_from(layout, last, layout, trained, history.occasion, Gibbs(), 0)
    values = start.chains[0]
    f = last.draws.model.contract([mode.psi for mode in values.modes], values.W, trained.index)
    np.testing.assert_allclose(last.mean + last.scale * f, last.predict(trained), rtol=1e-6)
    assert values.unknowns["alpha"] == last.draws.unknowns["alpha"][0]
    for d, mode in enumerate(last.draws.modes[:2]):
        np.testing.assert_allclose(
            values.modes[d].noise[trained.modes[d].groups], mode.row_noise[trained.modes[d].groups, 0]
        )
        scale = layout.modes[d].residual_sd
        np.testing.assert_allclose(np.linalg.inv(values.modes[d].precision) * scale**2, mode.covariance[0])


def test_few_sweeps_lead_where_a_new_fit_is(data, ratings):
    settings = {"rank": 3, "time": None, "draws": 60, "random_state": 0}
    rec = TuckerRecommender(**settings, warmup=40).fit(cut(ratings, 0, 1200), data.users, data.items)
    rec.partial_fit(cut(ratings, 1200, None), progress=False)
    assert len(rec.fit_.steps) == 70
    whole = TuckerRecommender(**settings, warmup=40).fit(ratings, data.users, data.items)
    other = TuckerRecommender(**settings | {"random_state": 1}, warmup=40).fit(ratings, data.users, data.items)
    test = plain(data.test)
    # no further from a new fit than 1.7 times as far as another new fit is, whose distance is random itself
    apart = rmse(whole.predict(test), other.predict(test))
    assert rmse(whole.predict(test), rec.predict(test)) < 1.7 * apart + 0.02
    assert abs(rmse(data.test["rating"], rec.predict(test)) - rmse(data.test["rating"], whole.predict(test))) < 0.02
    # the noise is at its level from the first sweep on
    noise = [[info.figures["noise"] for info in model.fit_.steps] for model in (rec, whole)]
    settled = np.mean(noise[1][-40:])
    assert abs(noise[0][0] - settled) < 0.1


def test_without_new_ratings_the_chain_just_goes_on(data, ratings):
    rec = TuckerRecommender(rank=2, time=None, draws=20, warmup=30, random_state=0).fit(ratings, data.users)
    before, n = rec.predict(plain(data.test)), len(rec.history_)
    rec.partial_fit(cut(ratings, 0, 0), warmup=0, progress=False)
    assert len(rec.history_) == n
    after = rec.predict(plain(data.test))
    assert 0 < rmse(before, after) < 0.2


def test_als_goes_on_from_its_point(data, ratings):
    rec = TuckerRecommender(rank=2, inference="als", random_state=0).fit(ratings, data.users)
    before = rec.predict(plain(data.test))
    rec.partial_fit(cut(ratings, 0, 0))
    assert len(rec.fit_.steps) <= 4
    np.testing.assert_allclose(rec.predict(plain(data.test)), before, atol=0.05)


def test_of_a_model_never_fitted_it_is_fit(data, ratings):
    one, two = (TuckerRecommender(rank=2, time=None, draws=3, warmup=2, random_state=0) for _ in range(2))
    one.fit(ratings, data.users)
    two.partial_fit(ratings, data.users)
    np.testing.assert_array_equal(one.predict(plain(data.test)), two.predict(plain(data.test)))


def test_rows_of_attribute_tables_replace_those_of_the_same_id(data, ratings):
    users = {"user_id": data.users["user_id"][:1].tolist(), "age": [99]}
    rec = TuckerRecommender(rank=2, time=None, inference="als", random_state=0).fit(ratings, data.users)
    rec.partial_fit(cut(ratings, 0, 0), users)
    row = rec.tables_[0]["user_id"].tolist().index(users["user_id"][0])
    assert rec.tables_[0]["age"][row] == 99
    assert len(rec.tables_[0]) == len(data.users)


def test_a_run_that_was_stopped_goes_on_from_its_checkpoint(data, ratings, tmp_path):
    settings = {"rank": 2, "time": None, "draws": 8, "warmup": 3, "random_state": 0}
    straight, first, second = (TuckerRecommender(**settings).fit(cut(ratings, 0, 1200), data.users) for _ in range(3))
    new = cut(ratings, 1200, None)
    straight.partial_fit(new, warmup=2)
    first.partial_fit(new, warmup=2, checkpoint=tmp_path / "run", max_time=0.0)
    second.partial_fit(new, warmup=2, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(straight.predict(plain(data.test)), second.predict(plain(data.test)))


def test_fold_in_may_come_before(data, ratings):
    rec = TuckerRecommender(rank=2, time=None, draws=5, warmup=5, random_state=0).fit(ratings, data.users)
    rec.fold_in({"user_id": ["n", "n"], "item_id": [ratings["item_id"][0], "odd"], "rating": [4.0, 5.0]})
    rec.partial_fit({"user_id": ["m"], "item_id": ["odd"], "rating": [1.0]}, warmup=2)
    assert rec.layout_.sides[0].ids[rec.layout_.sides[0].n_rated - 2 : rec.layout_.sides[0].n_rated] == ["n", "m"]
    rec.fold_in({"user_id": ["m"], "item_id": [ratings["item_id"][1]], "rating": [3.0]})
    assert np.isfinite(rec.predict(as_table({"user_id": ["m"], "item_id": ["odd"]}, "pairs"))).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inference": "sgd"}, "needs inference='gibbs' or 'als'"),
        ({"rank": 3}, "has rank 2, not 3"),
        ({"likelihood": "ordinal"}, "another inference or likelihood"),
        ({"context": "device"}, "with neither time nor context, and its settings now have context; set them back"),
    ],
)
def test_other_settings_are_refused(change, message, data, ratings):
    rec = TuckerRecommender(rank=2, time=None, inference="als", random_state=0).fit(ratings)
    if "likelihood" in change:
        rec.set_params(inference=Gibbs(draws=2))
    with pytest.raises(InputError, match=message):
        rec.set_params(**change).partial_fit(ratings)
