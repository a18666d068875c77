"""Saved models answer as before, from the file alone."""

from __future__ import annotations

import datetime
import json
import os
import uuid
import zipfile
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tuckergp
from tests.store.files import learned, rewrite
from tests.store.make_model_files import answers
from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender, load
from tuckergp.data.datasets import make_ratings
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.features import Cholesky, Fourier, Hashing, Line, Nystrom, Rows
from tuckergp.inference import ALS, HMC, NUTS, SGD, SGLD, VI, Gibbs
from tuckergp.kernels import SE, Constant, Cosine, Identity, Linear, Matern12, Matern32, Matern52, Periodic
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.design import Design
from tuckergp.model.tucker import SparseCore
from tuckergp.store.trees import digest

FIXTURES = Path(__file__).parent / "fixtures"
SHORT = {"rank": 2, "draws": 4, "warmup": 2, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=25, n_items=20, n_ratings=250, random_state=0)


@pytest.fixture(scope="module")
def ratings(data):
    table = {name: np.asarray(data.train[name]) for name in ("user_id", "item_id", "rating")}
    n = len(table["rating"])
    table["timestamp"] = np.datetime64("1998-04-22T10:30", "ns") + np.arange(n) * np.timedelta64(8, "h")
    table["device"] = np.array(["phone", "desk", None], dtype=object)[np.arange(n) % 3]
    table["hour"] = (np.arange(n) % 24).astype(np.int8)
    return table


@pytest.fixture(scope="module")
def pairs(ratings, data):
    asked = {name: values[:30].copy() for name, values in ratings.items() if name != "rating"}
    asked["user_id"] = asked["user_id"].astype(object)
    asked["user_id"][:3] = "nobody"
    return asked


def back(model, folder):
    path = folder / "model.tgp"
    model.save(path)
    return load(path)


def same_answers(model, again, questions):
    sampled = model.fit_.draws.sampled
    kinds = [{}, {"return_std": True}, {"quantiles": [0.1, 0.9]}, {"interval": 0.8, "include_noise": False}]
    for options in kinds if sampled else kinds[:1]:
        before, after = model.predict(questions, **options), again.predict(questions, **options)
        pairs = zip(before, after, strict=True) if options else [(before, after)]
        assert all(np.array_equal(mine, theirs) for mine, theirs in pairs)
    if len(model.fit_.levels):
        assert np.array_equal(model.predict_proba(questions), again.predict_proba(questions))


RECOMMENDERS = {
    "default": {},
    "shared noise, two chains": {"noise": "shared", "chains": 2, "implicit": False},
    "weeks": {"time": "week"},
    "months and context": {"time": "month", "context": ["device", "hour"]},
    "ordinal": {"likelihood": "ordinal"},
    "full core": {"core": "full", "time": None},
    "sparse core": {"core": SparseCore(3), "time": None},
    "scale and names": {"rating_scale": (0, 6), "duplicates": "mean", "columns": {"rating": "rating"}},
    "kernels and texts": {"attributes": {"users": {"age": SE(1.0)}, "items": {"title": "text", "year": None}}},
    "Gibbs object": {"inference": Gibbs(draws=4, warmup=2, thin=2)},
    "ALS": {"inference": "als"},
    "ALS object": {"inference": ALS(iterations=3)},
    "SGD": {"inference": SGD(epochs=3), "side_information": False},
    "VI": {"inference": VI(iterations=3, draws=4)},
}


@pytest.mark.parametrize("settings", RECOMMENDERS.values(), ids=RECOMMENDERS)
def test_recommenders_answer_as_before(settings, data, ratings, pairs, tmp_path):
    own = "inference" in settings
    model = TuckerRecommender(**({"rank": 2, "random_state": 0} if own else SHORT), **settings)
    model.fit(ratings, data.users, data.items)
    again = back(model, tmp_path)
    assert type(again) is TuckerRecommender
    assert again.get_params(deep=False) == model.get_params(deep=False)
    same_answers(model, again, pairs)
    assert learned(again) == learned(model)
    assert again.recommend(["nobody"], n=3).equals(model.recommend(["nobody"], n=3))
    assert clone(again).get_params() == model.get_params()


@pytest.mark.parametrize("settings", [{"time": None}, {"time": "week", "likelihood": "ordinal"}], ids=str)
@pytest.mark.parametrize("learn", ["fold_in", "partial_fit"])
def test_loaded_models_go_on_learning(learn, settings, data, ratings, pairs, tmp_path):
    model = TuckerRecommender(**SHORT, **settings).fit(ratings, data.users, data.items)
    again = back(model, tmp_path)
    new = {name: values[:6].copy() for name, values in ratings.items()}
    new["user_id"] = np.array(["new one", "new two"] * 3, dtype=object)
    for one in (model, again):
        getattr(one, learn)(new)
    same_answers(model, again, {**pairs, "user_id": np.array(["new one", "new two", "nobody"] * 10, dtype=object)})
    same_answers(again, back(again, tmp_path), new)


def test_contexts_may_be_missing(ratings, pairs, tmp_path):
    hour = np.where(ratings["hour"] % 5 == 0, np.nan, ratings["hour"])
    model = TuckerRecommender(**SHORT, time=None, context=["hour", "device"]).fit({**ratings, "hour": hour})
    again = back(model, tmp_path)
    same_answers(model, again, pairs)
    assert learned(again) == learned(model)


def test_clicks_answer_as_before(ratings, pairs, tmp_path):
    clicks = {name: ratings[name] for name in ("user_id", "item_id")}
    model = TuckerRecommender(**SHORT, likelihood="bernoulli").fit(clicks)
    again = back(model, tmp_path)
    same_answers(model, again, pairs)
    assert again.history_.clicks is True


def test_moments_without_draws_come_back(ratings, pairs, tmp_path):
    model = TuckerRecommender(**SHORT, time=None).fit(ratings, moments_of=pairs, keep_draws=False)
    again = back(model, tmp_path)
    assert digest(again.moments_) == digest(model.moments_)
    assert digest(again.fit_.moments()) == digest(model.fit_.moments())
    with pytest.raises(InputError, match="The draws were not kept"):
        again.predict(pairs)


def test_what_convergence_is_judged_by_comes_back(ratings, tmp_path):
    model = TuckerRecommender(**{**SHORT, "draws": 10, "chains": 2}, time=None).fit(ratings)
    again = back(model, tmp_path)
    assert digest(again.fit_.draws.diagnostics()) == digest(model.fit_.draws.diagnostics())
    assert again.fit_.draws.traces[0] is again.fit_.draws.watched[0]["f"]  # one array before, one in the file


IDS = {
    "int": list(range(7, 13)),
    "large int": [2**70 + k for k in range(6)],
    "text": ["ann", "bob", "", "dörte", "e\ud800", "f|g"],
    "float": [0.5, 1.5, -2.0, 1e300, float("inf"), 3.25],
    "bytes": [b"a", b"b", b"", b"\x00", b"\xff", b"c"],
    "date": [datetime.date(2000, 1, k) for k in range(1, 7)],
    "datetime": [datetime.datetime(2000, 1, 1, 1, 2, 3, k) for k in range(6)],
    "time zone": [datetime.datetime(2000, 1, 1, k, tzinfo=datetime.UTC) for k in range(6)],
    "uuid": [uuid.UUID(int=k) for k in range(6)],
    "tuple": [("a", k, None, (1.5, b"x")) for k in range(6)],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
@pytest.mark.parametrize("many", [1, 20])
def test_ids_keep_their_type(ids, many, tmp_path):
    column = np.empty(len(ids) * 3, dtype=object)
    column[:] = ids * 3
    others = np.arange(len(column)) % (4 * many)
    ratings = {"user_id": column, "item_id": others, "rating": np.arange(len(column)) % 5}
    model = TuckerRecommender(rank=1, inference="als").fit(ratings)
    again = back(model, tmp_path)
    for mine, theirs in zip(model.history_.ids[0], again.history_.ids[0], strict=True):
        assert mine == theirs
        assert type(mine) is type(theirs)
    assert np.array_equal(again.predict(ratings), model.predict(ratings))


def test_attributes_of_all_kinds_come_back(tmp_path):
    def column(*cells):
        values = np.empty(12, dtype=object)
        values[:] = (cells * 12)[:12]
        return values

    users = {
        "user_id": [f"u{k}" for k in range(12)],
        "number": [1.5, np.nan, *range(10)],
        "whole": np.arange(12, dtype=np.int16),
        "truth": np.arange(12) % 2 == 0,
        "some": column("a", None, "b"),
        "tags": column(("a", "b"), None, ()),
        "lists": column(["a"], ["b", "c"], []),
        "sets": column({"a"}, frozenset({"b"}), None),
        "arrays": column(np.array(["a", "b"], dtype=object), None),
        "day": np.datetime64("2000-01-01", "D") + np.arange(12),
        "mixed": column("a", 1, 2.5, None, float("nan")),
        "dates": column(datetime.date(2000, 1, 1), None),
        "empty": column(None),
    }
    ratings = {"user_id": users["user_id"] * 2, "item_id": [1, 2, 3] * 8, "rating": list(range(24))}
    model = TuckerRecommender(**SHORT).fit(ratings, users)
    again = back(model, tmp_path)
    same_answers(model, again, ratings)
    assert again.features_ == model.features_
    for name, values in model.tables_[0].columns.items():
        theirs = again.tables_[0][name]
        assert theirs.dtype == values.dtype
        for a, b in zip(values.tolist(), theirs.tolist(), strict=True):
            assert (a.tolist() if isinstance(a, np.ndarray) else a) == b or a != a


KERNELS = [
    Identity(),
    Constant(),
    Linear(),
    Cosine(),
    SE([1.0, 2.0]),
    Matern12(1.0),
    Matern32(np.array([1.0, 2.0])),
    Matern52(1.0, columns=["a"]),
    Periodic(2.0),
    0.5 * SE(1.0) * Identity("a"),
    SE(1.0) * Periodic(3.0) + 2.0 * (Linear("b") + Constant()),
    SE(1.0) + (Linear("a") + SE(2.0)),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_regressors_of_every_kernel_answer_as_before(kernel, tmp_path):
    rng = np.random.default_rng(0)
    X = {"a": rng.uniform(size=20), "b": rng.uniform(size=20), "c": rng.integers(3, size=20)}
    modes = [Mode(["a", "b"], kernel, whiten=True), Mode("c", Identity())]
    model = TuckerGPRegressor(modes, **SHORT).fit(X, rng.standard_normal(20))
    again = back(model, tmp_path)
    assert again.get_params(deep=False) == model.get_params(deep=False)
    same_answers(model, again, {"a": [0.1, 0.2], "b": [0.1, 2.0], "c": [1, 7]})
    assert learned(again) == learned(model)


FEATURES = {
    "Fourier": (SE(1.0), Fourier(6, pairs=False)),
    "Nystrom": (SE(1.0), Nystrom(5)),
    "Cholesky": (Matern12(1.0), Cholesky(1e-3, 4)),
    "hashed rows": (Identity(), Hashing(8)),
    "hashed base": (SE(1.0), Hashing(4, base=Fourier(6))),
    "Line": (Matern52(1.0), Line(learn=False)),
    "Rows": (Identity(), Rows()),
    "a list": (Periodic(2.0) + Matern32(1.0) + Linear(), [Fourier(4), None, Hashing(3)]),
}


@pytest.mark.parametrize(("kernel", "features"), FEATURES.values(), ids=FEATURES)
@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal"])
def test_regressors_with_every_feature_map_answer_as_before(kernel, features, likelihood, tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.permutation(24) / 4, rng.integers(3, size=24)])
    modes = [Mode("x0", kernel, features), Mode("x1", Identity())]
    model = TuckerGPRegressor(modes, **SHORT, likelihood=likelihood).fit(X, rng.integers(3, size=24))
    again = back(model, tmp_path)
    same_answers(model, again, np.array([[0.3, 1.0], [9.0, 5.0]]))
    assert again.get_params(deep=False) == model.get_params(deep=False)


INFERENCES = {
    "gibbs": Gibbs(draws=4, warmup=2, chains=2),
    "als": "als",
    "sgd": SGD(epochs=3),
    "vi": VI(iterations=3, draws=4),
    "hmc": HMC(draws=4, warmup=4, chains=2),
    "nuts": NUTS(draws=4, warmup=4, chains=1),
    "sgld": SGLD(draws=4, warmup=4, chains=1),
}


@pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")
@pytest.mark.parametrize(
    ("likelihood", "inference"),
    [(name, how) for name, kind in LIKELIHOODS.items() for how in kind.inferences if not kind.all_pairs],
)
def test_every_likelihood_by_every_inference_answers_as_before(likelihood, inference, tmp_path):
    rng = np.random.default_rng(0)
    X = {"day": np.datetime64("2000-01-01") + np.arange(20), "place": ["a", "b"] * 10}
    model = TuckerGPRegressor(
        inference=INFERENCES[inference], likelihood=likelihood, rank=(2, 1), random_state=np.int64(3)
    )
    model.fit(X, rng.integers(2, size=20))
    again = back(model, tmp_path)
    same_answers(model, again, X)
    assert learned(again) == learned(model)
    assert list(again.feature_names_in_) == ["day", "place"]


def test_the_residuals_of_a_regressor_are_read_by_draw(tmp_path):
    """Rows, a line and features alone, asked about one draw at a time."""
    rng = np.random.default_rng(0)
    X = {"day": rng.permutation(12).astype(float), "place": ["a", "b", "c"] * 4, "x": rng.uniform(size=12)}
    modes = [Mode("day", Matern32(2.0)), Mode("place", Identity()), Mode("x", SE(1.0))]
    model = TuckerGPRegressor(modes, **SHORT, noise="rows").fit(X, rng.standard_normal(12))
    again = back(model, tmp_path)
    asked = {"day": [3.0, 2.5, 40.0], "place": ["a", "z", "b"], "x": [0.1, 0.2, 3.0]}
    assert np.array_equal(again.sample_y(asked, 9), model.sample_y(asked, 9))
    assert np.array_equal(again.components(asked, draw=1).values, model.components(asked, draw=1).values)


def test_kernels_of_many_terms_are_no_deep_trees(tmp_path):
    X = {f"c{k}": np.arange(4.0) for k in range(300)}
    mode = Mode(list(X), reduce(add, (Linear(name) for name in X)))
    model = TuckerGPRegressor([mode], rank=1, inference="als", random_state=0).fit(X, np.arange(4.0))
    assert np.array_equal(back(model, tmp_path).predict(X), model.predict(X))


def test_a_generator_becomes_none_with_a_note(ratings, tmp_path):
    model = TuckerRecommender(**{**SHORT, "random_state": np.random.default_rng(0)}, time=None).fit(ratings)
    again = back(model, tmp_path)
    assert again.random_state is None
    with zipfile.ZipFile(tmp_path / "model.tgp") as archive:
        assert "random_state was a generator" in json.loads(archive.read("model.json"))["notes"][0]


def test_a_loaded_model_saves_to_the_same_file(data, ratings, tmp_path):
    model = TuckerRecommender(**SHORT, time="week", context="device").fit(ratings, data.users, data.items)
    model.save(tmp_path / "one.tgp")
    load(tmp_path / "one.tgp").save(tmp_path / "two.tgp")
    assert (tmp_path / "one.tgp").read_bytes() == (tmp_path / "two.tgp").read_bytes()


def test_others_can_read_the_parts(data, ratings, tmp_path):
    from pyarrow import parquet

    model = TuckerRecommender(**SHORT, implicit=False, time=None).fit(ratings, data.users)
    model.save(tmp_path / "model.tgp")
    with zipfile.ZipFile(tmp_path / "model.tgp") as archive:
        assert archive.testzip() is None
        known = json.loads(archive.read("model.json"))
        (psi,) = load_tensors(archive.read("rows/fit_.draws.modes.0.rows.psi.safetensors")).values()
        (item,) = load_tensors(archive.read("rows/history_.item.safetensors")).values()
        features = load_tensors(archive.read("arrays.safetensors"))["layout_.sides.0.table.features.data"]
        with archive.open("tables/tables_.0.parquet") as file:
            users = parquet.read_table(file)
    assert (known["format"], known["version"], known["kind"]) == ("tuckergp model", "2.0", "TuckerRecommender")
    assert psi.dtype == np.float32
    assert np.array_equal(psi, model.fit_.draws.modes[0].rows["psi"])
    assert np.array_equal(item, model.history_.codes[1][np.argsort(model.history_.codes[0], kind="stable")])
    assert np.array_equal(features, model.layout_.sides[0].table.features.data)
    assert users.column_names == list(data.users.columns)


def test_small_arrays_are_the_model_s_own(ratings, tmp_path):
    """Compiled code tells arrays that cannot be written to from others, and would be compiled anew for them."""
    again = back(TuckerRecommender(**SHORT, core="full", time=None).fit(ratings), tmp_path)
    draws = again.fit_.draws
    arrays = [draws.W, draws.modes[0].covariance, *draws.unknowns.values(), again.layout_.sides[0].table.features.data]
    assert all(array.flags.writeable and array.flags.aligned for array in arrays)


def determined(model, questions):
    """Which questions need no random numbers for what draws leave open; older files have none for new features."""
    if isinstance(model, TuckerGPRegressor):
        design = Design.transform(model.modes_, as_table(questions, "questions"))
    else:
        design = model.layout_.pairs(as_table(questions, "questions"))
    known = [replace(table, new=None) for table in design.modes]
    return ~np.any([table.undetermined[rows] for table, rows in zip(known, design.index.T, strict=True)], axis=0)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.tgp")), ids=lambda path: path.name)
def test_files_of_every_release_load_for_ever(path):
    """Random numbers for what draws leave open are others since format 2; answers without them are as they were."""
    known, model = json.loads(path.with_suffix(".json").read_text()), load(path, verify=True)
    found = answers(model, known["questions"])
    same = determined(model, known["questions"])
    assert same.any()
    for name, expected in known["answers"].items():
        random = path.stem.endswith("-1.0") and (name != "mean" or not model.fit_.likelihood.linear)
        rows = same if random else slice(None)
        np.testing.assert_allclose(np.array(found[name])[rows], np.array(expected)[rows], rtol=0, atol=1e-6)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*-1.0.tgp")), ids=lambda path: path.name)
def test_files_of_an_old_format_are_saved_in_the_new_one(path, tmp_path):
    questions = json.loads(path.with_suffix(".json").read_text())["questions"]
    model = load(path)
    again = back(model, tmp_path)
    same_answers(model, again, questions)
    assert learned(again) == learned(model)


@pytest.mark.parametrize("name", ["model-1.0", "model-2.0", "point-1.0"])
def test_files_of_ratings_from_before_there_were_choices_rank_by_rating(name):
    model = load(FIXTURES / f"{name}.tgp")
    user = model.layout_.sides[0].ids[0]
    found = as_table(model.recommend([user], n=5, exclude_seen=False), "lists")
    assert not {"rating", "choice"} & set(found.columns)
    expected = model.scores([user], found["item_id"].tolist(), by="rating")[0]
    np.testing.assert_allclose(found["score"], expected, rtol=1e-5)
    assert (np.diff(expected) <= 0).all()
    with pytest.raises(InputError, match="by='value' needs"):
        model.recommend([user], by="value")


def test_a_file_of_format_1_that_has_not_kept_what_is_needed_is_refused(tmp_path):
    path = tmp_path / "model.tgp"
    path.write_bytes((FIXTURES / "regressor-1.0.tgp").read_bytes())

    def other_columns(known):
        known["state"]["modes_"]["tuple"][0]["fields"]["mode"]["fields"]["columns"] = {"tuple": ["station", "height"]}

    rewrite(path, other_columns)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value) == (
        "model.tgp was written in format 1, which has not kept all columns of the mode 'station, height': fit and save "
        "it again."
    )


def test_there_are_files_of_every_format():
    for kind in ("model", "regressor"):
        for version in ("1.0", "2.0"):
            assert (FIXTURES / f"{kind}-{version}.tgp").stat().st_size < 100_000


# What cannot be saved


def test_unfitted_models_are_not_saved(tmp_path):
    for model in (TuckerRecommender(), TuckerGPRegressor()):
        with pytest.raises(NotFittedError, match=rf"This {type(model).__name__} is not fitted yet; call fit before"):
            model.save(tmp_path / "model.tgp")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def small(ratings):
    return TuckerRecommender(rank=1, inference="als", random_state=0).fit(ratings)


def test_places_that_cannot_be_written_to_are_refused(small, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"There is no folder .*nowhere to write model.tgp to\.$"):
        small.save(tmp_path / "nowhere" / "model.tgp")
    with pytest.raises(InputError, match=r"is a folder; name a file in it\.$"):
        small.save(tmp_path)
    small.save(tmp_path / "model.tgp")
    before = (tmp_path / "model.tgp").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"model.tgp cannot be written: No space left on device\.$"):
        small.save(tmp_path / "model.tgp")
    assert (tmp_path / "model.tgp").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model.tgp"]


class Thing:
    """A hashable of the user's own."""


class Wavy(SE):
    """A kernel of the user's own."""


class Special(TuckerRecommender):
    """An estimator of the user's own."""


def test_what_no_file_can_hold_is_refused_in_a_sentence(small, ratings, tmp_path):
    path = tmp_path / "model.tgp"
    for n in (3, 150):
        things = {"user_id": [Thing() for _ in range(n)], "item_id": [1] * n, "rating": list(range(n))}
        model = TuckerRecommender(rank=1, inference="als").fit(things)
        with pytest.raises(
            InputError, match=r"^model.tgp is not written: a Thing cannot be stored in .*; a file holds"
        ):
            model.save(path)
    model = TuckerGPRegressor([Mode("x0", Wavy(1.0))], rank=1, inference="als").fit(np.arange(5.0)[:, None], range(5))
    with pytest.raises(InputError, match=r"a Wavy cannot be stored in modes.0.kernel;"):
        model.save(path)
    with pytest.raises(InputError, match="a Special cannot be stored;"):
        Special(rank=1, inference="als").fit(ratings).save(path)
    changed = clone(small)
    vars(changed).update(vars(small))
    changed.history_ = replace(small.history_, rating=small.history_.rating.astype(complex))
    with pytest.raises(InputError, match=r"an array of complex128 cannot be stored in history_.value;"):
        changed.save(path)
    assert not path.exists()


def test_load_is_a_public_name():
    assert "load" in dir(tuckergp)
    assert tuckergp.load is load
