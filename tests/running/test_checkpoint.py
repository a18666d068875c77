"""A run that was stopped and goes on draws exactly what one that was not stopped draws."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

from tests.helpers import fingerprint
from tuckergp import TuckerGPRegressor, TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.errors import InputError
from tuckergp.files import write_bytes
from tuckergp.inference import ALS, Gibbs
from tuckergp.inference.gibbs import GibbsState
from tuckergp.kernels import SE
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Parameters
from tuckergp.residuals import NoResidual, Rows
from tuckergp.residuals.base import ModeState
from tuckergp.running import checkpoint
from tuckergp.store.trees import contiguous, decode, digest, encode


class Stop(Exception):
    pass


def stop_at(chain, step):
    def callback(info):
        if (info.chain, info.step) == (chain, step):
            raise Stop

    return callback


def ctrl_c_at(chain, step):
    def callback(info):
        if (info.chain, info.step) == (chain, step):
            os.kill(os.getpid(), signal.SIGINT)

    return callback


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=30, n_items=25, n_ratings=350, random_state=0)


def recommender(**settings):
    return TuckerRecommender(rank=2, draws=12, warmup=6, random_state=3, **settings)


def assert_same(a, b):
    """The same draws, traces and history, to the last bit."""
    assert fingerprint(a.fit_.draws) == fingerprint(b.fit_.draws)
    assert digest(a.fit_.draws.watched) == digest(b.fit_.draws.watched)
    assert a.fit_.steps == b.fit_.steps


SETTINGS = [{"noise": "rows"}, {"likelihood": "ordinal"}, {"core": "full", "noise": "shared"}]


@pytest.mark.parametrize("settings", SETTINGS, ids=["rows", "ordinal", "full"])
@pytest.mark.parametrize("where", [(0, 4), (0, 10), (1, 1), (1, 18)])
def test_a_run_stopped_by_an_error_goes_on_exactly(settings, where, data, tmp_path):
    whole = recommender(chains=2, **settings).fit(data.train, data.users)
    with pytest.raises(Stop):
        recommender(chains=2, **settings).fit(
            data.train, data.users, checkpoint=tmp_path / "run", callback=stop_at(*where)
        )
    seen = []
    resumed = recommender(chains=2, **settings).fit(
        data.train, data.users, checkpoint=tmp_path / "run", callback=seen.append
    )
    assert len(seen) == 36 - 18 * where[0] - where[1]
    assert_same(whole, resumed)
    np.testing.assert_array_equal(whole.predict(data.test), resumed.predict(data.test))


@pytest.mark.parametrize("stopped_by", ["ctrl-c", "max_time"])
def test_a_run_stopped_with_what_there_is_goes_on_exactly(stopped_by, data, tmp_path):
    folder = str(tmp_path / "run")
    whole = recommender(chains=3).fit(data.train)
    if stopped_by == "ctrl-c":
        part = recommender(chains=3).fit(data.train, checkpoint=folder, callback=ctrl_c_at(1, 4))
        assert part.fit_.draws.lengths == (12, 1)  # the one is for now, and never stored
    else:
        part = recommender(chains=3).fit(data.train, checkpoint=folder, max_time=0)
        assert part.fit_.draws.lengths == (1, 1, 1)
        assert len(part.fit_.steps) == 3
    assert np.isfinite(part.predict(data.test)).all()
    assert_same(whole, recommender(chains=3).fit(data.train, checkpoint=folder))


def test_chains_of_the_checkpoint_are_there_when_a_continued_run_is_stopped(data, tmp_path):
    recommender(chains=3).fit(data.train, checkpoint=tmp_path / "run", max_time=0)
    part = recommender(chains=3).fit(data.train, checkpoint=tmp_path / "run", callback=ctrl_c_at(0, 10))
    assert part.fit_.draws.lengths == (4, 1, 1)


KILLED = """
import os, signal, sys
from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
data = make_ratings(n_users=30, n_items=25, n_ratings=350, random_state=0)
def kill(info):
    if (info.chain, info.step) == (1, 13):
        os.kill(os.getpid(), signal.SIGKILL)
TuckerRecommender(rank=2, draws=12, warmup=6, random_state=3, chains=2).fit(
    data.train, checkpoint=sys.argv[1], checkpoint_minutes=0, callback=kill)
"""


def test_a_killed_run_loses_one_interval_at_the_most(data, tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    ended = subprocess.run([sys.executable, script, tmp_path / "run"], check=False)
    assert ended.returncode == -signal.SIGKILL
    seen = []
    resumed = recommender(chains=2).fit(data.train, checkpoint=tmp_path / "run", callback=seen.append)
    assert [info.step for info in seen] == [13, 14, 15, 16, 17, 18]
    assert_same(recommender(chains=2).fit(data.train), resumed)


def test_a_run_that_dies_between_two_files_goes_on_exactly(data, tmp_path, monkeypatch):
    written = []

    def write_once_too_often(path, content):
        if len(written) == 23:
            raise Stop
        written.append(path.name)
        write_bytes(path, content)

    monkeypatch.setattr(checkpoint, "write_bytes", write_once_too_often)
    with pytest.raises(Stop):
        recommender().fit(data.train, checkpoint=tmp_path / "run", checkpoint_minutes=0)
    assert written[-2:] == ["chain-0.safetensors", "chain-0-draws-8.safetensors"]  # the second is not counted yet
    monkeypatch.undo()
    seen = []
    resumed = recommender().fit(data.train, checkpoint=tmp_path / "run", callback=seen.append)
    assert seen[0].step == 15
    assert_same(recommender().fit(data.train), resumed)


def test_an_error_inside_a_sweep_leaves_the_last_whole_record(data, tmp_path, monkeypatch):
    keep, calls = Gibbs.watch, []

    def fail_the_third_time(self, *args):
        calls.append(args)
        if len(calls) == 3:
            raise MemoryError
        return keep(self, *args)

    monkeypatch.setattr(Gibbs, "watch", fail_the_third_time)
    with pytest.raises(MemoryError):
        recommender().fit(data.train, checkpoint=tmp_path / "run", checkpoint_minutes=0)
    monkeypatch.undo()
    assert_same(recommender().fit(data.train), recommender().fit(data.train, checkpoint=tmp_path / "run"))


def test_a_finished_run_is_returned_at_once_and_may_be_made_longer(data, tmp_path):
    whole = recommender().fit(data.train, checkpoint=tmp_path / "run")
    seen = []
    again = recommender().fit(data.train, checkpoint=tmp_path / "run", callback=seen.append)
    assert seen == []
    assert_same(whole, again)
    longer = recommender(chains=2).set_params(draws=20)
    continued = longer.fit(data.train, checkpoint=tmp_path / "run", callback=seen.append)
    assert len(seen) == 8 + 26
    assert_same(longer.fit(data.train), continued)
    with pytest.raises(
        InputError, match=r"chain-0.safetensors holds 26 sweeps, more than the 18 asked for; raise draws"
    ):
        recommender().fit(data.train, checkpoint=tmp_path / "run")


def test_without_a_random_state_the_seed_is_that_of_the_checkpoint(tmp_path):
    # Fourier features are drawn from the seed, before sampling begins
    from tuckergp import Mode
    from tuckergp.features import Fourier

    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(40, 2))
    model = TuckerGPRegressor(
        [Mode("x0", SE(1.0), Fourier(10)), Mode("x1", SE(1.0))], rank=2, draws=10, warmup=5, random_state=None
    )
    first = model.fit(X, X[:, 0], checkpoint=tmp_path / "run").predict(X)
    np.testing.assert_array_equal(model.fit(X, X[:, 0], checkpoint=tmp_path / "run").predict(X), first)
    assert (model.fit(X, X[:, 0]).predict(X) != first).any()


def test_moments_go_on_exactly_too(data, tmp_path):
    settings = {"moments_of": data.test, "keep_draws": False}
    whole = recommender(chains=2).fit(data.train, **settings)
    with pytest.raises(Stop):
        recommender(chains=2).fit(data.train, **settings, checkpoint=tmp_path / "run", callback=stop_at(1, 11))
    assert not list((tmp_path / "run").glob("*draws*"))
    resumed = recommender(chains=2).fit(data.train, **settings, checkpoint=tmp_path / "run")
    assert digest(whole.moments_) == digest(resumed.moments_)


@pytest.fixture(scope="module")
def stored(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored") / "run"
    recommender().fit(data.train, data.users, checkpoint=folder)
    return folder


@pytest.mark.parametrize(
    "change",
    [
        {"random_state": 4},
        {"rank": 3},
        {"warmup": 5},
        {"noise": "shared"},
        {"implicit": False},
        {"likelihood": "ordinal"},
        {"inference": Gibbs(draws=12, warmup=6, noise="rows", dof=59.0)},
        {"side_information": False},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_settings_are_refused(change, stored, data):
    model = recommender().set_params(**change)
    if "inference" in change:
        model.set_params(draws=250, warmup=50)
    with pytest.raises(InputError, match=r"chain-0.safetensors is of other data or settings; give those") as caught:
        model.fit(data.train, data.users, checkpoint=stored)
    assert "\n" not in str(caught.value)


def test_other_data_are_refused(stored, data):
    changed = {key: data.train[key].copy() for key in data.train.columns}
    changed["rating"][7] = 6 - changed["rating"][7] + (changed["rating"][7] == 3)
    for train, users, more in (
        (changed, data.users, {}),
        (data.train, data.users.take(np.arange(20)), {}),
        (data.train, data.users, {"moments_of": data.test}),
    ):
        with pytest.raises(InputError, match="is of other data or settings"):
            recommender().fit(train, users, checkpoint=stored, **more)


DAMAGE = {
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "flipped": lambda content: content[:-20] + bytes([content[-20] ^ 1]) + content[-19:],
    "text": lambda content: b"hello, world",
}


@pytest.mark.parametrize("name", ["chain-0.safetensors", "chain-0-draws-0.safetensors"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_refused_by_name(name, damage, stored, data, tmp_path):
    folder = shutil.copytree(stored, tmp_path / "run")
    (folder / name).write_bytes(DAMAGE[damage]((folder / name).read_bytes()))
    with pytest.raises(InputError, match=f"{name} is damaged or no checkpoint; delete its folder") as caught:
        recommender().fit(data.train, data.users, checkpoint=folder)
    assert "\n" not in str(caught.value)


def test_a_missing_file_of_draws_is_named(stored, data, tmp_path):
    folder = shutil.copytree(stored, tmp_path / "run")
    (folder / "chain-0-draws-0.safetensors").unlink()
    with pytest.raises(InputError, match=r"lacks its file .*chain-0-draws-0.safetensors; delete the folder"):
        recommender().fit(data.train, data.users, checkpoint=folder)


def test_places_that_cannot_be_written_and_other_inferences_are_refused(data, tmp_path):
    (tmp_path / "file").write_text("")
    for place, message in (
        (tmp_path / "file", "is a file; name a folder"),
        (tmp_path / "none" / "run", "There is no folder"),
        (7, "checkpoint must be the path of a folder or None, not 7"),
    ):
        with pytest.raises(InputError, match=message):
            recommender().fit(data.train, checkpoint=place)
    with pytest.raises(InputError, match="checkpoint is an argument for samplers, such as inference='gibbs'"):
        TuckerRecommender(inference=ALS()).fit(data.train, checkpoint=tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_time": -1}, "max_time must be a number from 0 on, not -1"),
        ({"checkpoint_minutes": "often"}, "checkpoint_minutes must be a number from 0 on, not 'often'"),
        ({"callback": 3}, "callback must be a function"),
        ({"keep_draws": False}, "keep=0 leaves nothing without moments_of"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, message, data):
    with pytest.raises(InputError, match=message):
        recommender().fit(data.train, **arguments)


class Wider(NamedTuple):
    """A state with a field more, as others may add."""

    psi: np.ndarray
    more: dict
    none: None = None


def test_states_of_any_fields_come_back_as_they_were():
    psi = np.arange(6.0).reshape(2, 3)
    mode = ModeState(psi, psi.T, np.eye(3), np.ones(1), (np.float32(2.5), 1 / 3))
    state = GibbsState(3, (mode, mode._replace(own=(np.inf,))), np.zeros((0, 2)), float("nan"))
    tree = {"state": state, "list": [True, None, "text", 2**60], "number": np.array(3, dtype=np.int32)}
    structure, arrays = encode(tree)
    back = decode(structure, {key: np.array(value) for key, value in arrays.items()})
    assert digest(back) == digest(tree)
    assert type(back["state"].modes[0].own[0]) is np.float32
    assert back["number"].shape == ()
    assert all(array.flags.c_contiguous for array in arrays.values())
    assert contiguous(state).modes[0].B.flags.c_contiguous
    assert type(contiguous(state)) is GibbsState
    assert contiguous((Parameters((psi.T,), psi[0]),))[0].U[0].flags.c_contiguous


def test_files_cannot_name_what_is_not_a_value_of_this_package():
    for name in ("os:system", "builtins:eval", "tuckergp.files:write_text", "tuckergp.nothing:State"):
        with pytest.raises(ValueError):
            decode({"type": name, "fields": {}}, {})
    structure, arrays = encode(Wider(np.zeros(2), {}))
    with pytest.raises(ValueError, match="not of this package"):
        decode(structure, arrays)
    with pytest.raises(TypeError, match="cannot be stored"):
        encode(object())


def test_fingerprints_tell_tables_apart():
    features = sparse.csr_array(np.eye(3))
    table = ModeTable(features, Rows.of(3, 0.5))
    same = ModeTable(features.copy(), Rows.of(3, 0.5))
    assert digest(table) == digest(same)
    others = [
        replace(table, residual=NoResidual()),
        replace(table, features=2 * features),
        replace(table, constant=0),
        replace(table, blocks=(slice(0, 1), slice(1, 3))),
    ]
    assert len({digest(other) for other in [table, *others]}) == 5
    assert digest(("ab", "c")) != digest(("a", "bc"))
    assert digest(SE(1.0)) != digest(SE(2.0))


def test_no_temporary_files_are_left(stored):
    assert sorted(path.name for path in Path(stored).iterdir()) == [
        "chain-0-draws-0.safetensors",
        "chain-0.safetensors",
        "choice.json",
    ]


def test_some_draws_are_kept_evenly_and_a_stopped_run_goes_on_with_the_same(data, tmp_path):
    whole = recommender(chains=2).fit(data.train)
    some = recommender(chains=2).fit(data.train, keep=8)
    assert some.fit_.draws.lengths == (4, 4)
    every_third = whole.fit_.draws.modes[0].rows["psi"][:, 2::3]
    np.testing.assert_array_equal(some.fit_.draws.modes[0].rows["psi"], every_third)
    # convergence is judged by all draws
    assert digest(some.fit_.draws.traces) == digest(whole.fit_.draws.traces)
    folder = tmp_path / "run"
    stopped = recommender(chains=2).fit(data.train, keep=8, checkpoint=folder, callback=ctrl_c_at(0, 8))
    assert stopped.fit_.draws.lengths == (1,)  # none was due yet, so the last state stands for a draw
    assert_same(some, recommender(chains=2).fit(data.train, keep=8, checkpoint=folder))
    with pytest.raises(InputError, match="is of other data or settings"):
        recommender(chains=2).fit(data.train, keep=7, checkpoint=folder)
