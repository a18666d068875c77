"""Lists of recommendations against loops that follow the definitions."""

import math

import numpy as np
import pytest
from scipy import sparse

from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import ranking, top_k

USERS, ITEMS, RATERS = 25, 12, 30


@pytest.fixture(params=[3, 5, 20], ids=lambda k: f"k={k}")
def case(request):
    """Scores with ties, items that are no candidates, and at least one relevant candidate for every user."""
    rng = np.random.default_rng(request.param)
    scores = np.round(rng.normal(size=(USERS, ITEMS)), 1)
    scores[rng.random((USERS, ITEMS)) < 0.3] = -np.inf
    scores[:, 0] = 0.5
    scores[0, 1:] = -np.inf  # one candidate only
    relevant = (rng.random((USERS, ITEMS)) < 0.3) & (scores > -np.inf)
    relevant[~relevant.any(axis=1), 0] = True
    lists = top_k(scores, request.param)
    hits = (lists >= 0) & np.take_along_axis(relevant, np.maximum(lists, 0), axis=1)
    return request.param, scores, relevant, lists, hits, relevant.sum(axis=1)


def listed(scores, k):
    """The list of one user."""
    return sorted((i for i in range(ITEMS) if scores[i] > -np.inf), key=lambda i: (-scores[i], i))[:k]


def test_lists_are_the_best_candidates_in_order(case):
    k, scores, _, lists, _, _ = case
    for user in range(USERS):
        best = listed(scores[user], k)
        assert lists[user].tolist() == best + [-1] * (k - len(best))


def test_metrics_of_hits_follow_their_definitions(case):
    k, scores, relevant, _, hits, n_relevant = case
    for user in range(USERS):
        places = [j for j, item in enumerate(listed(scores[user], k), start=1) if relevant[user, item]]
        n = n_relevant[user]
        reference = {
            "precision": len(places) / k,
            "recall": len(places) / n,
            "hit_rate": float(bool(places)),
            "average_precision": sum((a + 1) / j for a, j in enumerate(places)) / min(n, k),
            "reciprocal_rank": 1 / places[0] if places else 0.0,
            "ndcg": sum(1 / math.log2(j + 1) for j in places)
            / sum(1 / math.log2(j + 1) for j in range(1, min(n, k) + 1)),
        }
        row, many = hits[[user]], n_relevant[[user]]
        found = {
            "precision": ranking.precision(row),
            "recall": ranking.recall(row, many),
            "hit_rate": ranking.hit_rate(row),
            "average_precision": ranking.average_precision(row, many),
            "reciprocal_rank": ranking.reciprocal_rank(row),
            "ndcg": ranking.ndcg(row, many),
        }
        assert {name: value[0] for name, value in found.items()} == pytest.approx(reference)
    # all users at once are the users one by one
    np.testing.assert_array_equal(ranking.ndcg(hits, n_relevant)[[3]], ranking.ndcg(hits[[3]], n_relevant[[3]]))


def test_auc_is_the_share_of_pairs_in_the_right_order(case):
    _, scores, relevant, _, _, _ = case
    found = ranking.auc(scores, relevant)
    for user in range(USERS):
        candidates = [i for i in range(ITEMS) if scores[user, i] > -np.inf]
        pairs = [(a, b) for a in candidates for b in candidates if relevant[user, a] and not relevant[user, b]]
        won = [float(scores[user, a] > scores[user, b]) + 0.5 * (scores[user, a] == scores[user, b]) for a, b in pairs]
        assert found[user] == pytest.approx(np.mean(won) if won else math.nan, nan_ok=True)


def test_metrics_of_lists_follow_their_definitions(case):
    k, scores, _, lists, _, _ = case
    rng = np.random.default_rng(9)
    rated = rng.random((ITEMS, RATERS)) < 0.3
    rated[4] = False  # nobody knows it
    sets = [set(np.flatnonzero(row)) for row in rated]

    def cosine(a, b):
        return len(sets[a] & sets[b]) / math.sqrt(len(sets[a]) * len(sets[b])) if sets[a] and sets[b] else 0.0

    novelty = ranking.novelty(lists, rated.sum(axis=1), RATERS)
    diversity = ranking.diversity(lists, sparse.csr_array(rated * 3.5))
    everything = set()
    for user in range(USERS):
        items = listed(scores[user], k)
        everything |= set(items)
        assert novelty[user] == pytest.approx(np.mean([-math.log2((len(sets[i]) + 1) / (RATERS + 1)) for i in items]))
        pairs = [1 - cosine(a, b) for a in items for b in items if a != b]
        assert diversity[user] == pytest.approx(np.mean(pairs) if pairs else math.nan, nan_ok=True)
    assert ranking.catalogue_coverage(lists, ITEMS) == len(everything) / ITEMS


def test_an_empty_list_has_no_novelty():
    assert np.isnan(ranking.novelty([[-1, -1]], [1, 2], 3)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: top_k([[np.nan]], 1), "no NaN"),
        (lambda: top_k([[1.0]], 0), "at least 1"),
        (lambda: ranking.precision([True]), r"not \(1,\)"),
        (lambda: ranking.recall([[True]], [0]), "at least 1"),
        (lambda: ranking.ndcg([[True, True]], [1]), "at least the number of hits"),
        (lambda: ranking.recall([[True]], [1, 2]), "for each of 1 users"),
        (lambda: ranking.auc([[1.0, 2.0]], [[True]]), "of one shape"),
        (lambda: ranking.auc([[np.nan]], [[True]]), "without NaN"),
        (lambda: ranking.catalogue_coverage([[5]], 5), "from 0 to 4"),
        (lambda: ranking.novelty([0, 1], [1, 2], 3), r"not \(2,\)"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
