"""Draws as stacked arrays: what they take, told beforehand and afterwards."""

from dataclasses import replace

import numpy as np
import pytest

from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender, load
from tuckergp.data.datasets import make_ratings
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError, SizeWarning
from tuckergp.kernels import SE, Identity, Matern32
from tuckergp.model.draw import Draw, ModeDraw
from tuckergp.posterior.draws import Stack, bytes_of_draw
from tuckergp.random import stream
from tuckergp.running import loop


def test_the_size_told_beforehand_is_the_size():
    rng = np.random.default_rng(0)
    X = {"day": rng.permutation(60) / 10.0, "place": rng.uniform(-2, 2, 60), "station": rng.choice(list("abc"), 60)}
    modes = [Mode("day", Matern32(2.0)), Mode("place", SE(1.0)), Mode("station", Identity())]
    model = TuckerGPRegressor(modes, rank=(2, 3, 2), noise="rows", draws=7, warmup=1, random_state=0)
    draws = model.fit(X, rng.standard_normal(60)).fit_.draws
    own = sum(mode.values["lengthscale"].nbytes for mode in draws.modes if "lengthscale" in mode.values)
    own += sum(values.nbytes for values in draws.unknowns.values())
    design = model._inputs(X)
    assert draws.size == 7 * bytes_of_draw(design, draws.model.core) + own


def test_a_large_size_is_told_before_the_fit(monkeypatch):
    data = make_ratings(n_users=30, n_items=25, n_ratings=350, random_state=0)
    model = TuckerRecommender(rank=2, draws=10, warmup=1, noise="shared", implicit=False, time=None, random_state=0)
    monkeypatch.setattr(loop, "MUCH", 2_000.0)
    with pytest.warns(SizeWarning, match=r"will take 0.0 GB of memory.*: 10 of 0.0 MB each. keep=\d+ would keep 1 GB"):
        model.fit(data.train)
    with pytest.warns(SizeWarning, match=": 6 of"):
        model.fit(data.train, keep=6)


def test_more_draws_than_there_is_memory_for_are_refused_in_a_sentence():
    draw = Draw((ModeDraw(np.zeros((1, 1)), np.eye(1), {"psi": np.zeros((10**6, 1))}, {}),), np.zeros(0), {})
    with pytest.raises(InputError, match=r"no memory for 1,000,000,000,000 draws; keep fewer"):
        Stack(10**12).add(draw)


@pytest.mark.parametrize(
    ("keep", "message"), [(-1, "keep must be"), (2.5, "keep must be"), (0, "keep=0 leaves nothing")]
)
def test_numbers_of_draws_that_make_no_sense_are_refused(keep, message):
    with pytest.raises(InputError, match=message):
        TuckerGPRegressor(draws=5, warmup=1).fit([[0.0], [1.0]], [0.0, 1.0], keep=keep)
    with pytest.raises(InputError, match="leave one of them out"):
        TuckerGPRegressor(draws=5, warmup=1).fit([[0.0], [1.0]], [0.0, 1.0], keep=2, keep_draws=False)


def test_a_most_probable_point_keeps_double_precision():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 2))
    point = TuckerGPRegressor(rank=2, inference="als", random_state=0).fit(X, X[:, 0]).fit_.draws
    assert {mode.B.dtype for mode in point.modes} == {np.dtype(np.float64)}


def test_a_selection_of_draws_keeps_their_random_numbers(tmp_path):
    data = make_ratings(n_users=30, n_items=25, n_ratings=350, random_state=0)
    model = TuckerRecommender(rank=2, draws=6, warmup=2, chains=2, implicit=False, time=None, random_state=0)
    model.fit(data.train)
    pairs = as_table({"user_id": ["a stranger", data.train["user_id"][0]], "item_id": ["x", "y"]}, "pairs")
    design = model.layout_.pairs(pairs)

    def values(draws):
        at = draws.predicted(design, stream(3))
        return np.stack([at.f, at.factors])

    draws = model.fit_.draws
    every = values(draws)
    assert len(np.unique(every[0, :, 0])) == 12
    np.testing.assert_array_equal(values(draws.thinned(5)), every[:, [0, 3, 6, 8, 11]])
    np.testing.assert_array_equal(values(draws.last_of_chains()), every[:, [5, 11]])
    np.testing.assert_array_equal(values(draws.thinned(5).only(3)), every[:, [8]])
    np.testing.assert_array_equal(values(draws.only(-1)), every[:, [11]])
    path = tmp_path / "few.tgp"
    model.fit_ = replace(model.fit_, draws=draws.thinned(5))
    model.save(path)
    np.testing.assert_array_equal(load(path).fit_.draws.names, [(0, 0), (0, 3), (1, 0), (1, 2), (1, 5)])
