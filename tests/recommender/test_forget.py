"""A person who is forgotten is in no answer and in no file, and nobody else notices."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

import tuckergp
from tuckergp import TuckerRecommender
from tuckergp.errors import InputError

GONE, OTHERS, ITEMS = "ann gone", ["bob", "carl", "dora"], [f"item {k}" for k in range(12)]
PAIRS = {"user_id": np.repeat(OTHERS, 12), "item_id": np.tile(ITEMS, 3), "timestamp": ["2024-01-15"] * 36}


def ratings(rng, timed=False):
    people = [GONE, *OTHERS, *(f"p{k}" for k in range(12))]
    pairs = [(person, item) for person in people for item in ITEMS if rng.random() < 0.6]
    table = {"user_id": [who for who, _ in pairs], "item_id": [what for _, what in pairs]}
    table["rating"] = rng.integers(1, 6, size=len(pairs)).astype(float).tolist()
    if timed:
        table["timestamp"] = (np.datetime64("2024-01-01") + rng.integers(0, 40, size=len(pairs))).tolist()
    return table


def people(rng):
    ids = [*OTHERS, GONE, *(f"p{k}" for k in range(12))]
    return {"user_id": ids, "age": rng.integers(20, 60, size=len(ids)).tolist()}


def model(rng, **more):
    given = {"rank": 2, "draws": 6, "warmup": 4, "random_state": 0, "time": None, "objective": "rating", **more}
    return TuckerRecommender(**given)


def cosine(rng):
    return model(rng, implicit=True).fit(ratings(rng), people(rng))


def drifting(rng):
    return model(rng, time="week").fit(ratings(rng, timed=True))


def by_value(rng):
    return model(rng, objective="value").fit(ratings(rng), people(rng))


def clicked(rng):
    table = ratings(rng)
    return model(rng).fit({name: table[name] for name in ("user_id", "item_id")})


def point(rng):
    return model(rng, inference="als", draws=250, warmup=50).fit(ratings(rng))


def folded(rng):
    more = {"user_id": [GONE, "bob"], "item_id": ["item 1", "item 2"], "rating": [5.0, 1.0]}
    return cosine(rng).fold_in(more)


@pytest.fixture(scope="module", params=[cosine, drifting, by_value, clicked, point, folded], ids=lambda f: f.__name__)
def made(request, tmp_path_factory):
    """A model, the same without a person, and that as a file."""
    rec = request.param(np.random.default_rng(3))
    before = answers(rec)
    n, count = len(rec.history_), int((np.array(rated(rec)) == GONE).sum())
    path = tmp_path_factory.mktemp("forgotten") / "model.tgp"
    live = rec.forget(GONE)
    assert len(live.history_) == n - count < n
    lived = answers(live), after_more(live)
    live.save(path)
    return before, lived, live, path


def rated(rec):
    flat = rec.history_.flat
    return [flat.ids[0][code] for code in flat.codes[0].tolist()]


def answers(rec):
    return rec.predict(PAIRS), rec.recommend(OTHERS, n=4, titles=None)


def after_more(rec):
    """The answers after more ratings of somebody else, by a copy."""
    other = TuckerRecommender.__new__(TuckerRecommender)
    other.__dict__ = dict(rec.__dict__)
    more = {"user_id": ["dora"] * 2, "item_id": ["item 3", "item 4"], "rating": [4.0, 2.0]}
    if rec.history_.clicks:
        more.pop("rating")
    return other.fold_in(more).predict(PAIRS)


def test_answers_for_others_stay(made):
    before, ((predicted, listed), _), _, _ = made
    np.testing.assert_array_equal(predicted, before[0])
    assert list(listed["item_id"]) == list(before[1]["item_id"])


def test_the_file_answers_as_the_model_does(made):
    _, ((predicted, listed), more), _, path = made
    again = tuckergp.load(path, verify=True)
    np.testing.assert_allclose(again.predict(PAIRS), predicted, rtol=1e-6)
    assert list(again.recommend(OTHERS, n=4)["item_id"]) == list(listed["item_id"])
    np.testing.assert_allclose(after_more(again), more, rtol=1e-5)


def test_nothing_of_the_person_is_in_the_file(made):
    _, _, live, path = made
    with zipfile.ZipFile(path) as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    assert GONE.encode() not in content
    again = tuckergp.load(path)
    assert GONE not in again.layout_.sides[0].number
    assert len(again.fit_.draws.modes[0].rows["psi"]) == again.layout_.sides[0].n_rated == len(again.history_.ids[0])
    assert again.tables_[0] is None or GONE not in again.tables_[0]["user_id"].tolist()
    assert again.layout_.sides[0].ids == live.layout_.sides[0].ids


def test_the_person_is_new_afterwards(made):
    _, _, _, path = made
    rec = tuckergp.load(path)
    unknown = rec.predict({"user_id": ["nobody"], "item_id": ["item 1"]})
    np.testing.assert_array_equal(rec.predict({"user_id": [GONE], "item_id": ["item 1"]}), unknown)
    with pytest.raises(InputError, match="knows no user 'ann gone'"):
        rec.forget(GONE)
    more = {"user_id": [GONE], "item_id": ["item 1"], "rating": [5.0]}
    if rec.history_.clicks:
        more.pop("rating")
    rec.fold_in(more)
    assert GONE in rec.layout_.sides[0].number


def test_several_people_are_forgotten_one_by_one(tmp_path):
    rec = cosine(np.random.default_rng(3))
    before, seen = answers(rec), rec.recommend(["p5"], n=12)
    rec.forget(GONE).forget("p3").forget("p4")
    assert list(rec.recommend(["p5"], n=12)["item_id"]) == list(seen["item_id"])
    more = after_more(rec)
    rec.save(tmp_path / "model.tgp")
    again = tuckergp.load(tmp_path / "model.tgp", verify=True)
    np.testing.assert_allclose(again.predict(PAIRS), before[0], rtol=1e-6)
    np.testing.assert_allclose(after_more(again), more, rtol=1e-5)
    assert list(again.recommend(["p5"], n=12)["item_id"]) == list(seen["item_id"])


def test_sets_of_who_rated_what_have_an_empty_place():
    rec = cosine(np.random.default_rng(3))
    number, items = rec.layout_.sides[0].base.place(GONE), rec.layout_.sides[1]
    columns = items.table.features[:, items.table.blocks[items.mode.set_block]]
    assert columns[:, [number]].sum() > 0
    others = np.delete(np.asarray(columns.todense()), number, axis=1)
    from tuckergp.recommender.growth import compacted

    rec.forget(GONE)
    layout, _, _ = compacted(rec.layout_, rec.fit_, rec.history_)
    side = layout.sides[1]
    now = np.asarray(side.table.features[:, side.table.blocks[side.mode.set_block]].todense())
    assert not now[:, number].any()
    np.testing.assert_array_equal(np.delete(now, number, axis=1), others)
    (encoder,) = side.mode.blocks[side.mode.set_block].map.base_.encoders_
    assert [encoder.levels[k] for k in range(number, len(rec.history_.flat.ids[0]))] == list(
        range(number + 1, others.shape[1] + 1)
    )


def test_learning_goes_on_without_the_person(made):
    _, _, _, path = made
    rec = tuckergp.load(path)
    if rec.inference == "als" or rec.history_.clicks:
        pytest.skip("partial_fit is not what this is about there")
    more = {"user_id": ["dora"], "item_id": ["item 3"], "rating": [4.0]}
    rec.partial_fit(more, warmup=1)
    assert GONE not in rec.layout_.sides[0].number
    assert len(rec.predict(PAIRS)) == len(PAIRS["user_id"])


def test_a_checkpoint_is_deleted_and_other_files_stay(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "checkpoint"
    rec = model(rng).fit(ratings(rng), checkpoint=folder)
    (folder / "mine.txt").write_text("mine")
    rec.forget(GONE, checkpoint=folder)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    with pytest.raises(InputError, match="no checkpoint"):
        rec.forget("bob", checkpoint=tmp_path / "none")
    assert "bob" in rec.layout_.sides[0].number


@pytest.fixture(scope="module", params=[cosine, drifting, by_value, clicked, point], ids=lambda f: f.__name__)
def withheld(request, tmp_path_factory):
    """A model and its file without ratings."""
    rec = request.param(np.random.default_rng(3))
    path = tmp_path_factory.mktemp("withheld") / "model.tgp"
    rec.save(path, ratings=False)
    return rec, tuckergp.load(path, verify=True)


def test_a_file_without_ratings_predicts_the_same(withheld):
    rec, other = withheld
    np.testing.assert_array_equal(other.predict(PAIRS), rec.predict(PAIRS))
    lists = [each.recommend(OTHERS, n=4, exclude_seen=False) for each in (rec, other)]
    assert list(lists[0]["item_id"]) == list(lists[1]["item_id"])
    totals = [each.explain("bob", "item 1").total for each in (rec, other)]
    assert totals[0] == pytest.approx(totals[1], rel=1e-9)


def test_a_file_without_ratings_has_none(withheld):
    rec, other = withheld
    assert len(rec.history_) > 0
    assert len(other.history_) == 0
    for side in other.layout_.sides:
        if side.mode.set_block is not None:
            assert abs(side.table.features[:, side.table.blocks[side.mode.set_block]]).sum() == 0


def test_ratings_that_a_file_lacks_are_not_guessed(withheld):
    rec, other = withheld
    table = {"user_id": ["bob"], "item_id": ["item 1"], "rating": [5.0]}
    new = {**table, "user_id": ["newcomer"]}
    if rec.history_.clicks:
        table.pop("rating")
        new.pop("rating")
    with pytest.raises(InputError, match="left out of the file"):
        other.fold_in(table)
    with pytest.raises(InputError, match="saved without ratings"):
        other.partial_fit(table)
    pair = {"user_id": ["newcomer"], "item_id": ["item 2"]}
    np.testing.assert_allclose(other.fold_in(new).predict(pair), rec.fold_in(new).predict(pair), rtol=0.2)
    assert other.recommend(["newcomer"], n=1, min_ratings=3)["item_id"].tolist()
