"""Sizes beyond this machine's memory are refused before anything is allocated."""

import numpy as np
import pytest

from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender, memory
from tuckergp.errors import InputError
from tuckergp.kernels import SE

RATINGS = {"user_id": [1, 2, 1], "item_id": [5, 5, 6], "rating": [1.0, 2.0, 5.0]}


@pytest.mark.parametrize("rank", [10**6, 10**30])
@pytest.mark.parametrize("inference", ["gibbs", "als", "sgd", "vi"])
def test_a_rank_beyond_memory_is_refused_with_its_size(rank, inference):
    with pytest.raises(InputError, match=rf"^rank={rank} needs matrices of {rank:,} x {rank:,} numbers, .* GB of mem"):
        TuckerRecommender(rank=rank, inference=inference).fit(RATINGS)


def test_a_rank_of_one_mode_beyond_memory_is_refused():
    with pytest.raises(InputError, match=r"^rank=1000000 needs .* 8,000 GB of memory"):
        TuckerGPRegressor(rank=(2, 10**6)).fit({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 0.0]}, [1.0, 2.0, 4.0])


@pytest.mark.parametrize("inference", ["gibbs", "als"])
def test_statistics_of_all_rows_beyond_memory_are_refused(inference, monkeypatch):
    X = {"a": np.arange(200.0), "b": np.arange(200.0) % 7}
    model = TuckerGPRegressor([Mode("a", SE(20.0)), Mode("b", SE(1.0))], rank=30, core="identity", inference=inference)
    monkeypatch.setattr(memory, "physical_memory", lambda: 10**6)  # 200 matrices of 30 x 30 numbers take 1.4 MB
    with pytest.raises(
        InputError, match=r"^A step of \w+ with rank 30 needs 0.00\d+ GB of memory, .* 0.001; take a lower"
    ):
        model.fit(X, np.sin(X["a"]))
