"""A fit is the same, bit for bit, on any number of threads."""

import numba
import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from tests.helpers import model_of
from tuckergp import TuckerRecommender
from tuckergp.compute.rows import PIECE
from tuckergp.inference.base import Problem
from tuckergp.inference.gibbs import Gibbs
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import make_core
from tuckergp.running import loop


def ratings(rng, kind):
    """Enough rows to share, one of them long enough to be shared itself."""
    n = 2 * PIECE
    rows = np.where(rng.random(n) < 0.6, 0, rng.integers(400, size=n))
    index = np.stack([rows, rng.integers(300, size=n)], axis=1).astype(np.int32)
    modes = tuple(ModeTable(np.ones((size, 1)), sparse.csr_array(sparse.eye_array(size)), size) for size in (400, 300))
    return Problem(model_of(make_core(kind, (5, 5))), Design(modes, index), rng.standard_normal(n))


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
@pytest.mark.parametrize(("kind", "noise"), [("identity", "rows"), ("full", "shared")])
def test_a_gibbs_fit_does_not_depend_on_the_number_of_threads(kind, noise, monkeypatch):
    monkeypatch.setattr(loop, "SHARED_WORK", 0.0)
    problem = ratings(np.random.default_rng(0), kind)
    assert len(problem.sorted[0].shares) > 3
    assert problem.sorted[0].pieces[-1] > 1
    before = numba.get_num_threads()
    runs = []
    try:
        for threads in (1, 2):
            numba.set_num_threads(threads)
            runs.append(loop.sample(Gibbs(draws=2, warmup=1, noise=noise), problem, seed=1))
    finally:
        numba.set_num_threads(before)
    (one, history_one), (two, history_two) = runs
    for a, b in zip(one, two, strict=True):
        for x, y in zip(
            (*a.parameters.U, a.parameters.W, *a.covariance),
            (*b.parameters.U, b.parameters.W, *b.covariance),
            strict=True,
        ):
            np.testing.assert_array_equal(x, y)
        assert a.alpha == b.alpha
    np.testing.assert_array_equal(one.traces[0], two.traces[0])
    assert [info.figures for info in history_one] == [info.figures for info in history_two]


@pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")
@pytest.mark.parametrize("options", [{"draws": 4, "warmup": 2}, {"inference": "als"}], ids=["gibbs", "als"])
def test_clicks_and_their_link_do_not_depend_on_the_threads_of_blas(options):
    rng = np.random.default_rng(0)
    clicks = {"user_id": rng.integers(200, size=3_000), "item_id": rng.integers(200, size=3_000)}
    likelihoods = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            likelihoods.append(TuckerRecommender(rank=8, **options, random_state=0).fit(clicks).fit_.likelihood)
    assert likelihoods[0] == likelihoods[1]
