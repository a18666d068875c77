"""Feedback without ratings: what stands for zeros, what is learned from it, and what is refused."""

import numpy as np
import pytest

from tuckergp import TuckerRecommender
from tuckergp.data.history import History
from tuckergp.data.splits import UserHoldout
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.evaluation.evaluate import evaluate
from tuckergp.evaluation.metrics import ndcg, top_k
from tuckergp.evaluation.scoring import item_scores
from tuckergp.random import stream
from tuckergp.recommender.clicks import with_negatives

FAST = {"rank": 3, "likelihood": "bernoulli", "draws": 40, "warmup": 40, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")


def read(user, item):
    return History.read(as_table({"user_id": user, "item_id": item}, "ratings"), clicks=True)


@pytest.fixture(scope="module")
def some():
    """40 users, the first of whom clicked a few of 60 items, the last nearly all of them."""
    rng = stream(0)
    clicked = rng.random((40, 60)) < np.linspace(0.05, 0.95, 40)[:, None]
    clicked[:, 0] = True  # everybody is there, and so is
    clicked[-1] = True  # every item
    return read(*np.nonzero(clicked))


@pytest.mark.parametrize("negatives", [1, 3, 100])
def test_negatives_are_never_clicks_never_twice_and_as_many_as_asked_or_as_there_are(some, negatives):
    sample = with_negatives(some, negatives, stream(0))
    pairs = sample.user * 60 + sample.item
    assert len(np.unique(pairs)) == len(pairs)
    assert sample.y[: len(some)].all()
    assert not sample.y[len(some) :].any()
    clicks = np.bincount(some.codes[0])
    np.testing.assert_array_equal(
        np.bincount(sample.user[len(some) :], minlength=40), np.minimum(negatives * clicks, 60 - clicks)
    )


def test_negatives_take_the_moments_of_their_users_clicks_in_turn(some):
    sample = with_negatives(some, 2, stream(0))
    np.testing.assert_array_equal(some.codes[0][sample.row], sample.user)
    times = np.bincount(sample.row)
    for user in range(40):
        of_user = times[some.codes[0] == user]
        assert of_user.max() - of_user.min() <= 1


def test_negatives_depend_on_the_seed_alone(some):
    first, again, other = (with_negatives(some, 2, stream(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.item, again.item)
    assert (first.item != other.item).any()


@pytest.mark.parametrize("negatives", [2, 5])  # drawn, and shuffled
def test_every_item_is_as_likely_as_any_other(negatives):
    """One user, 3 clicks among 30 items: each of the other 27 is drawn with probability 3 negatives / 27.

    Over 2,000 seeds a count has a standard deviation of at most 22.4; one of 27 beyond 5 of them has a chance of 2e-5.
    """
    user = np.concatenate([np.zeros(3, dtype=int), np.ones(30, dtype=int)])
    history = read(user, np.concatenate([[4, 9, 17], np.arange(30)]))
    counts = np.zeros(30)
    for seed in range(2_000):
        sample = with_negatives(history, negatives, stream(seed))
        counts[sample.item[(sample.y == 0) & (sample.user == 0)]] += 1
    free = np.sort(counts)[3:]
    share = 3 * negatives / 27
    assert (np.abs(free - 2_000 * share) < 5 * np.sqrt(2_000 * share * (1 - share))).all()
    assert np.sort(counts)[2] == 0


def test_users_who_clicked_everything_have_no_negatives_and_if_all_did_there_is_nothing_to_learn():
    sample = with_negatives(read([0, 0, 1], [0, 1, 0]), 4, stream(0))
    assert sample.user.tolist() == [0, 0, 1, 1]
    assert sample.item.tolist() == [0, 1, 0, 1]
    with pytest.raises(InputError, match="Every user clicked every item"):
        with_negatives(read([0, 0, 1, 1], [0, 1, 0, 1]), 4, stream(0))


@pytest.mark.parametrize("negatives", [0, 2.5, True])
def test_negatives_must_be_a_number(some, negatives):
    with pytest.raises(InputError, match="negatives must be a whole number from 1 on"):
        with_negatives(some, negatives, stream(0))


@pytest.fixture(scope="module")
def camps():
    """120 users in two camps of taste and 80 items, half for either; 12 clicks each, 4 of them held out."""
    rng = np.random.default_rng(0)
    popular = rng.gamma(2.0, size=80)
    train, test = [], []
    for user in range(120):
        weight = popular * np.where(np.arange(80) % 2 == user % 2, 1.0, 0.05)
        items = rng.choice(80, 12, replace=False, p=weight / weight.sum())
        train += [(user, item) for item in items[:8]]
        test += [(user, item) for item in items[8:]]
    return [dict(zip(("user_id", "item_id"), np.array(part).T, strict=True)) for part in (train, test)]


def lists_of(scores, camps):
    """NDCG@10 of every user."""
    train, test = camps
    scores = scores.astype(float)
    scores[train["user_id"], train["item_id"]] = -np.inf
    relevant = np.zeros(scores.shape, dtype=bool)
    relevant[test["user_id"], test["item_id"]] = True
    return ndcg(np.take_along_axis(relevant, top_k(scores, 10), axis=1), np.full(len(scores), 4))


def test_lists_from_clicks_are_better_than_popularity(camps):
    """The gain over popularity has mean 0.19 and standard deviation 0.017 over data and fits with other seeds.

    A gain below 0.1 is five of them away.
    """
    model = TuckerRecommender(**FAST).fit(camps[0])
    ours = lists_of(item_scores(model, range(120), range(80)), camps)
    popularity = np.bincount(camps[0]["item_id"], minlength=80)
    assert (ours - lists_of(np.tile(popularity, (120, 1)), camps)).mean() > 0.1


def test_clicks_can_be_evaluated(camps):
    model = TuckerRecommender(**FAST)
    board = evaluate(model, camps[0], split=UserHoldout(n=2), metrics=["rmse", "ndcg"], baselines=["popularity"])
    assert board.value("ndcg", "TuckerRecommender") > board.value("ndcg", "popularity")
    with pytest.raises(InputError, match="has no ratings to predict; ask for metrics of lists"):
        evaluate(model, camps[0], metrics=["rmse"])


def test_clicks_of_one_pair_are_one_click(camps):
    once = camps[0]
    order = np.concatenate([np.arange(960), np.arange(100)])
    twice = {key: values[order] for key, values in once.items()}
    first, second = (TuckerRecommender(**FAST | {"draws": 5}).fit(clicks) for clicks in (once, twice))
    assert len(second.history_) == 960
    np.testing.assert_array_equal(first.predict(camps[1]), second.predict(camps[1]))


def test_probabilities_are_those_of_the_sample(camps):
    """With n negatives for a click, one pair in n + 1 is a click, and so it is on average."""
    for negatives in (1, 3):
        model = TuckerRecommender(**FAST, negatives=negatives).fit(camps[0])
        sample = with_negatives(model.history_, negatives, stream(0, 1, 2))
        ids = model.history_.ids
        pairs = {key: np.array(ids[d])[codes] for d, (key, codes) in enumerate(zip(camps[0], sample[:2], strict=True))}
        assert abs(model.predict(pairs).mean() - 1 / (1 + negatives)) < 0.03


def test_probabilities_among_all_pairs_follow_from_the_share_of_zeros_drawn(camps):
    """Every user has 8 clicks among 80 items, one in ten; the standard error of that over users is below 0.01."""
    model = TuckerRecommender(**FAST, negatives=2).fit(camps[0])
    p = item_scores(model, range(120), range(80))
    share = 2 * 8 / (len(model.history_.ids[1]) - 8)
    assert abs(p.mean() - 0.3) < 0.05
    assert abs((p * share / (p * share + 1 - p)).mean() - 0.1) < 0.03


def test_clicks_may_have_a_time_and_a_context(camps):
    rng = np.random.default_rng(0)
    clicks = {
        **camps[0],
        "timestamp": 893_030_400 + rng.integers(4 * 7 * 86_400, size=960),
        "device": np.array(["phone", "desk"], dtype=object)[rng.integers(2, size=960)],
    }
    model = TuckerRecommender(**FAST | {"draws": 10}, time="week", context="device").fit(clicks)
    asked = {**{key: values[:5] for key, values in camps[1].items()}, "device": ["phone"] * 5}
    p = model.predict(asked)
    assert ((p > 0) & (p < 1)).all()
    assert TuckerRecommender(**FAST | {"draws": 5}).fit(clicks).time_ is None  # unless asked for


def test_new_users_are_predicted_from_attributes(camps):
    users = {"user_id": np.arange(122), "camp": np.array(["even", "odd"], dtype=object)[np.arange(122) % 2]}
    model = TuckerRecommender(**FAST).fit(camps[0], users=users)
    even, odd = item_scores(model, [120, 121], range(80))
    assert even[::2].mean() > odd[::2].mean()
    assert odd[1::2].mean() > even[1::2].mean()


def test_what_makes_no_sense_is_refused(camps):
    with pytest.raises(InputError, match=r"has no column 'rating'.*use likelihood='bernoulli' or 'clicks'"):
        TuckerRecommender(random_state=0, likelihood="gaussian").fit(camps[0])
    with pytest.raises(InputError, match="Co-rating is what clicks are learned from already"):
        TuckerRecommender(**FAST, implicit=True).fit(camps[0])
    with pytest.raises(InputError, match="'bernoulli' needs inference='gibbs'"):
        TuckerRecommender(likelihood="bernoulli", inference="als").fit(camps[0])
