"""The best of each row against a sort of everything."""

import numpy as np
import pytest

from tuckergp.compute import topk
from tuckergp.compute.topk import top_k


@pytest.mark.parametrize("few", [0, 10**6])
@pytest.mark.parametrize("k", [1, 4, 40])
def test_the_best_are_found_ties_in_the_order_of_columns_and_seen_ones_left_out(few, k, monkeypatch):
    monkeypatch.setattr(topk, "FEW", few)  # compiled, and by NumPy
    rng = np.random.default_rng(0)
    scores = rng.integers(6, size=(50, 40)).astype(np.float32)
    scores[rng.random(scores.shape) < 0.2] = -np.inf
    scores[3] = -np.inf
    seen = [np.sort(rng.choice(40, size=count, replace=False)) for count in rng.integers(0, 30, size=50)]
    ends = np.cumsum([0, *map(len, seen)])
    found = top_k(scores.copy(), k, ends, np.concatenate(seen))
    for row, taken, out in zip(scores, seen, found.tolist(), strict=True):
        open_to = [j for j in range(40) if row[j] > -np.inf and j not in set(taken.tolist())]
        best = sorted(open_to, key=lambda j: (-row[j], j))[:k]
        assert out == best + [-1] * (k - len(best))
