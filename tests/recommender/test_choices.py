"""Recommenders of clicks: every pair of a user and an item counts, chosen or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from tuckergp import TuckerRecommender, load
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.likelihoods import Clicks
from tuckergp.recommender.fold_in import _problem
from tuckergp.recommender.zeros import Zeros

FAST = {"rank": 4, "draws": 20, "warmup": 20, "random_state": 0}
FIXED = Clicks(zeros=0.2, popularity=0.0, counting="none", temper=0.5, activity=0.0)


def world(seed: int = 0, users: int = 60, items: int = 40, groups: int = 4) -> tuple[pl.DataFrame, np.ndarray]:
    """Choices of users who mostly choose items of their own group, and the probabilities behind them."""
    rng = np.random.default_rng(seed)
    same = (np.arange(users)[:, None] - np.arange(items)) % groups == 0
    p = np.where(same, 0.5, 0.04)
    chosen = rng.random(p.shape) < p
    chosen[np.arange(users), np.arange(users) % items] = True
    chosen[np.arange(items) % users, np.arange(items)] = True
    user, item = np.nonzero(chosen)
    return pl.DataFrame({"user_id": [f"u{k}" for k in user], "item_id": [f"i{k}" for k in item]}), p


def chosen(rec: TuckerRecommender) -> Clicks:
    """What a trial chose: all but the intercept, which the draws decide."""
    return replace(rec.fit_.likelihood, intercept=0.0)


@pytest.fixture(scope="module")
def fitted() -> TuckerRecommender:
    return TuckerRecommender(**FAST).fit(world()[0])


def test_a_table_without_ratings_is_one_of_clicks(fitted: TuckerRecommender) -> None:
    likelihood = fitted.fit_.likelihood
    assert isinstance(likelihood, Clicks)
    assert likelihood.open == []


def test_lists_have_items_of_the_own_group(fitted: TuckerRecommender) -> None:
    lists = fitted.recommend(["u0", "u1", "u2", "u3"], n=3)
    same = [(int(u[1:]) - int(i[1:])) % 4 == 0 for u, i in lists.select("user_id", "item_id").iter_rows()]
    assert np.mean(same) > 0.8
    assert ((lists["score"] > 0) & (lists["score"] < 1)).all()


@pytest.mark.parametrize("inference", ["gibbs", "als"])
def test_probabilities_are_those_of_held_out_choices(inference: str) -> None:
    """Among pairs that are not known, as many as predicted are among the held-out tenth."""
    table, _ = world(1, users=200, items=60)
    held = np.random.default_rng(0).random(len(table)) < 0.1
    options = {k: v for k, v in FAST.items() if inference == "gibbs" or k in ("rank", "random_state")}
    rec = TuckerRecommender(**options, inference=inference).fit(table.filter(~held))
    known = set(table.filter(~held).iter_rows())
    truth = set(table.filter(held).iter_rows())
    pairs = [(f"u{u}", f"i{i}") for u in range(200) for i in range(60) if (f"u{u}", f"i{i}") not in known]
    p = rec.predict(pl.DataFrame(pairs, schema=["user_id", "item_id"], orient="row"))
    y = np.array([pair in truth for pair in pairs])
    assert p.sum() == pytest.approx(y.sum(), rel=0.25)
    for part in np.array_split(np.argsort(p), 3):
        expected = p[part].sum()
        assert abs(y[part].sum() - expected) < 4 * np.sqrt(expected) + 0.25 * expected


@pytest.mark.parametrize("activity", [0.0, 0.6])
def test_a_folded_in_user_is_the_ridge_solution_over_all_items(activity: float) -> None:
    likelihood = replace(FIXED, activity=activity)
    rec = TuckerRecommender(rank=3, inference="als", likelihood=likelihood, random_state=0).fit(world()[0])
    chosen = ["i0", "i4", "i8"]
    rec.fold_in(pl.DataFrame({"user_id": ["new"] * 3, "item_id": chosen}))
    draws, layout = rec.fit_.draws, rec.layout_
    V = draws.factors(1, layout.sides[1].table.take(layout.sides[1].numbers([f"i{k}" for k in range(40)])))[:, 0]
    new = layout.sides[0].table.take(layout.sides[0].numbers(["new"]))
    weight, y = np.full(40, 0.2), np.zeros(40)
    weight[[0, 4, 8]], y[[0, 4, 8]] = 1.0, 1.0
    choices = world()[0].group_by("user_id").len()["len"].to_numpy()
    of_user = (3 / np.exp(np.log(choices).mean())) ** -activity
    alpha = 0.5 * float(draws.unknowns["alpha"][0]) * of_user
    prior = np.asarray(draws.modes[0].precision[0])
    mean = draws.modes[0].mean(new.features)[0, 0]
    A = alpha * (V * weight[:, None]).T @ V + prior
    expected = np.linalg.solve(A, alpha * V.T @ (weight * y) + prior @ mean)
    np.testing.assert_allclose(draws.factors(0, new)[0, 0], expected, rtol=1e-4, atol=1e-5)


def test_a_folded_in_item_is_the_ridge_solution_over_users_by_their_activity(tmp_path: Any) -> None:
    table, _ = world()
    likelihood = replace(FIXED, activity=0.6)
    rec = TuckerRecommender(rank=3, inference="als", likelihood=likelihood, random_state=0).fit(table)
    rec.save(tmp_path / "m.tgp")
    rec = load(tmp_path / "m.tgp")
    users, counts = table.group_by("user_id").len()
    usual = np.exp(np.log(counts).mean())
    before = rec.layout_.sides[0]
    U = rec.fit_.draws.factors(0, before.table.take(before.numbers(users.to_list())))[:, 0]
    rec.fold_in(pl.DataFrame({"user_id": ["new"] * 2, "item_id": ["i0", "unheard of"]}))
    draws, (users_now, items_now) = rec.fit_.draws, rec.layout_.sides
    z = draws.factors(0, users_now.table.take(users_now.numbers(["new"])))[0, 0]
    item = items_now.table.take(items_now.numbers(["unheard of"]))
    alpha, prior = 0.5 * float(draws.unknowns["alpha"][0]), np.asarray(draws.modes[1].precision[0])
    mine, others = (2 / usual) ** -0.6, (counts.to_numpy() / usual) ** -0.6
    A = alpha * (0.2 * (U * others[:, None]).T @ U + mine * 0.8 * np.outer(z, z)) + prior
    expected = np.linalg.solve(A, alpha * mine * z + prior @ draws.modes[1].mean(item.features)[0, 0])
    np.testing.assert_allclose(draws.factors(1, item)[0, 0], expected, rtol=1e-4, atol=1e-5)


def test_zeros_of_a_folded_in_user_are_spread_over_the_contexts_of_their_choices() -> None:
    table, _ = world()
    table = table.with_columns(device=pl.Series(np.random.default_rng(0).choice(["tv", "phone"], len(table))))
    rec = TuckerRecommender(**FAST, likelihood=FIXED, context="device").fit(table)
    new = as_table({"user_id": ["new"] * 3, "item_id": ["i0", "i4", "i8"], "device": ["tv", "tv", "phone"]}, "new")
    problem = _problem(rec.layout_, rec.fit_, rec.history_, new, (None, None), None, "keep", 4, 0)
    draws, (items, numbers) = rec.fit_.draws, (rec.layout_.sides[1], [f"i{k}" for k in range(40)])
    V = draws.factors(1, items.table.take(items.numbers(numbers)))
    X = draws.factors(2, problem.design.modes[2])[problem.design.index[:, 2]]
    assert not np.allclose(X[0], X[2])
    mean, (precision,) = problem.locals[0].prior(0, draws)
    found = problem.find(None)[0].psi[0]
    for s, alpha in enumerate(0.5 * draws.unknowns["alpha"]):
        # 0.2 of every pair, one third of it in the context of each choice; 0.8 more of chosen pairs
        z, every = V[[0, 4, 8], s] * X[:, s], (V[:, None, s] * X[:, s]).reshape(-1, 4)
        A = alpha * (0.2 / 3 * every.T @ every + 0.8 * z.T @ z) + precision[s]
        expected = np.linalg.solve(A, alpha * z.sum(axis=0) + precision[s] @ mean[0, s])
        np.testing.assert_allclose(found[s], expected, rtol=1e-4, atol=1e-5)


def test_forgotten_users_weigh_nothing_where_activity_counts() -> None:
    table, _ = world()
    heavy = pl.DataFrame({"user_id": ["u8"] * 40, "item_id": [f"i{k}" for k in range(40)]})
    likelihood = replace(FIXED, activity=0.6)
    rec = TuckerRecommender(rank=3, inference="als", likelihood=likelihood, random_state=0)
    rec.fit(pl.concat([table.filter(pl.col("user_id") != "u8"), heavy]))
    place = rec.layout_.sides[0].numbers(["u8"])[0]

    def weights() -> np.ndarray:
        return Zeros.of(rec.fit_.likelihood, rec.fit_.draws, rec.history_).of_users

    before = weights()
    rec.forget("u8")
    np.testing.assert_array_equal(weights(), np.where(np.arange(len(before)) == place, 0.0, before))


def test_activity_is_chosen_on_held_out_choices() -> None:
    table, _ = world()
    rec = TuckerRecommender(**FAST, likelihood=replace(FIXED, activity="auto")).fit(table)
    assert rec.fit_.likelihood.activity in (0.0, 0.25, 0.5)
    assert rec.fit_.likelihood.usual == pytest.approx(np.exp(np.log(table.group_by("user_id").len()["len"]).mean()))


def test_a_folded_in_user_is_much_like_one_who_was_there() -> None:
    table, _ = world()
    rest = table.filter(pl.col("user_id") != "u8")
    rec = TuckerRecommender(**FAST, likelihood=FIXED).fit(rest)
    rec.fold_in(table.filter(pl.col("user_id") == "u8"))
    whole = TuckerRecommender(**FAST, likelihood=FIXED).fit(table)
    pairs = pl.DataFrame({"user_id": ["u8"] * 40, "item_id": [f"i{k}" for k in range(40)]})
    assert np.corrcoef(rec.predict(pairs), whole.predict(pairs))[0, 1] > 0.9


def test_thompson_sampling_explores_all_unseen_items() -> None:
    table, _ = world()
    items = pl.DataFrame({"item_id": [f"i{k}" for k in range(45)]})
    rec = TuckerRecommender(**FAST, likelihood=FIXED).fit(table, items=items)
    new = [f"i{k}" for k in range(40, 45)]
    first = [
        rec.recommend(["u0"], n=1, items=new, strategy="thompson", random_state=seed)["item_id"][0]
        for seed in range(120)
    ]
    counts = np.array([first.count(item) for item in new])
    # about 24 of 120 for each, with a standard deviation of 4.4: four of them
    assert (np.abs(counts - 24) < 18).all()


def test_running_moments_are_those_of_the_draws() -> None:
    table, _ = world()
    asked = table.head(30)
    rec = TuckerRecommender(**FAST, likelihood=FIXED).fit(table, moments_of=asked)
    mean, spread = rec.predict(asked, return_std=True, clip=False)
    np.testing.assert_allclose(rec.moments_.mean, mean, rtol=1e-5)
    np.testing.assert_allclose(rec.moments_.std, spread, rtol=1e-4)
    with pytest.raises(InputError, match="Clicks need draws after the fit"):
        TuckerRecommender(**FAST, likelihood=FIXED).fit(table, moments_of=asked, keep_draws=False)


def test_counts_are_confidence() -> None:
    table, _ = world()
    rng = np.random.default_rng(0)
    plays = table.with_columns(plays=pl.Series(rng.integers(1, 50, len(table))))
    rec = TuckerRecommender(**FAST).fit(plays)
    assert rec.columns_["count"] == "plays"
    assert rec.fit_.likelihood.typical == pytest.approx(np.median(plays["plays"]))
    named = plays.rename({"plays": "n"})
    again = TuckerRecommender(**FAST, columns={"count": "n"}).fit(named)
    pairs = table.head(5)
    np.testing.assert_array_equal(rec.predict(pairs), again.predict(pairs))


def test_repeated_rows_are_counts() -> None:
    table, _ = world()
    often = pl.concat([table, table.head(30), table.head(30)])
    rec = TuckerRecommender(**FAST, likelihood=FIXED).fit(often)
    assert rec.history_.rating.max() == 3
    assert len(rec.history_) == len(table)


def test_ratings_are_not_read_by_clicks() -> None:
    table, _ = world()
    rated = table.with_columns(rating=pl.Series(np.arange(len(table)) % 5 + 1))
    as_clicks = TuckerRecommender(**FAST, likelihood=FIXED).fit(rated)
    alone = TuckerRecommender(**FAST, likelihood=FIXED).fit(table)
    np.testing.assert_array_equal(as_clicks.predict(table.head(9)), alone.predict(table.head(9)))


@pytest.mark.parametrize("more", [{"context": "device"}, {"time": "week"}])
def test_contexts_and_drift_work(more: dict[str, Any]) -> None:
    table, _ = world()
    rng = np.random.default_rng(0)
    table = table.with_columns(
        device=pl.Series(rng.choice(["tv", "phone"], len(table))),
        timestamp=pl.Series(1_000_000_000 + rng.integers(0, 5_000_000, len(table))),
    )
    rec = TuckerRecommender(**FAST, likelihood=FIXED, **more).fit(table)
    assert np.isfinite(rec.predict(table.head(20))).all()
    rec.fold_in(table.head(3).with_columns(user_id=pl.lit("new")))
    assert len(rec.recommend(["new"], n=5)) == 5


def test_a_saved_model_answers_the_same(fitted: TuckerRecommender, tmp_path: Any) -> None:
    fitted.save(tmp_path / "m.tgp")
    again = load(tmp_path / "m.tgp")
    pairs = world()[0].head(20)
    np.testing.assert_array_equal(again.predict(pairs), fitted.predict(pairs))
    again.fold_in(pl.DataFrame({"user_id": ["new"], "item_id": ["i3"]}))
    assert len(again.recommend(["new"], n=2)) == 2


def test_more_learning_keeps_the_weights() -> None:
    table, _ = world()
    rec = TuckerRecommender(**FAST).fit(table.head(400))
    before = chosen(rec)
    rec.partial_fit(table.tail(len(table) - 400))
    assert chosen(rec) == before


def test_explanations_add_up(fitted: TuckerRecommender) -> None:
    explanation = fitted.explain("u0", "i4")
    predicted = fitted.predict({"user_id": ["u0"], "item_id": ["i4"]})
    assert explanation.predicted == pytest.approx(float(predicted[0]))


def test_full_cores_and_attributes() -> None:
    table, _ = world()
    users = pl.DataFrame({"user_id": [f"u{k}" for k in range(61)], "group": [str(k % 4) for k in range(61)]})
    rec = TuckerRecommender(**FAST, likelihood=FIXED, core="full").fit(table, users=users)
    new = rec.recommend(["u60"], n=5)  # nobody knows u60 but for the group
    assert np.mean([(0 - int(i[1:])) % 4 == 0 for i in new["item_id"]]) > 0.6
    rec.fold_in(pl.DataFrame({"user_id": ["u60"], "item_id": ["i0"]}))


@pytest.mark.parametrize("core", ["superdiagonal", "pairwise"])
def test_other_cores_are_refused(core: Any) -> None:
    with pytest.raises(InputError, match="clicks"):
        TuckerRecommender(**FAST, likelihood=FIXED, core=core).fit(world()[0])


def test_a_resumed_run_does_not_choose_anew(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = world()
    whole = TuckerRecommender(**FAST).fit(table)
    stopped = TuckerRecommender(**{**FAST, "draws": 5}).fit(table, checkpoint=tmp_path / "run")
    monkeypatch.setattr("tuckergp.recommender.choice_trial._settled", None)  # would fail if it were called again
    longer = TuckerRecommender(**FAST).fit(table, checkpoint=tmp_path / "run")
    assert chosen(stopped) == chosen(longer) == chosen(whole)
    np.testing.assert_array_equal(longer.predict(table.head(9)), whole.predict(table.head(9)))


# Bad input


@pytest.mark.parametrize("value", [-1.0, 0.0, float("inf"), 1e20])
def test_counts_that_are_none_are_refused(value: float) -> None:
    table = world()[0].with_columns(count=pl.lit(2.0))
    table[3, "count"] = value
    with pytest.raises(InputError, match=r"column 'count'.* at row 3"):
        TuckerRecommender(**FAST).fit(table)


def test_missing_counts_are_refused() -> None:
    table = world()[0].with_columns(count=pl.lit(2.0))
    table[3, "count"] = None
    with pytest.raises(InputError, match="count"):
        TuckerRecommender(**FAST).fit(table)


def test_somebody_who_chose_everything_gets_an_empty_list() -> None:
    table, _ = world()
    everything = pl.DataFrame({"user_id": ["all"] * 40, "item_id": [f"i{k}" for k in range(40)]})
    rec = TuckerRecommender(**FAST, likelihood=FIXED).fit(pl.concat([table, everything]))
    assert len(rec.recommend(["all"], n=5)) == 0


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"user_id": ["a"], "item_id": ["x"]}),
        pl.DataFrame({"user_id": ["a", "a", "a"], "item_id": ["x", "y", "z"]}),
        pl.DataFrame({"user_id": ["a", "b", "c"], "item_id": ["x", "x", "x"]}),
    ],
    ids=["one choice", "one user", "one item"],
)
@pytest.mark.parametrize("inference", ["gibbs", "als"])
def test_the_smallest_tables_give_finite_answers(table: pl.DataFrame, inference: str) -> None:
    options = FAST if inference == "gibbs" else {"rank": 2, "random_state": 0}
    rec = TuckerRecommender(**options, inference=inference).fit(table)
    assert np.isfinite(rec.predict(table)).all()
    rec.recommend(["a"], n=2, exclude_seen=False)


@pytest.mark.parametrize("inference", ["sgd", "vi"])
def test_other_algorithms_are_refused(inference: str) -> None:
    with pytest.raises(InputError, match="likelihood='clicks' needs inference='gibbs'"):
        TuckerRecommender(inference=inference, likelihood="clicks").fit(world()[0])
