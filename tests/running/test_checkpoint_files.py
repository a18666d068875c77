"""Checkpoint files of other runs are refused, full disks end no run, and a folder serves one run at a time."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import warnings

import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from tests.helpers import fingerprint
from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.errors import CheckpointWarning, InputError
from tuckergp.running import checkpoint


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=30, n_items=25, n_ratings=350, random_state=0)


def recommender(seed=3, **settings):
    return TuckerRecommender(rank=2, draws=8, warmup=4, chains=2, random_state=seed, time=None, **settings)


@pytest.fixture(scope="module")
def runs(data, tmp_path_factory):
    """Folders of two runs that differ in their seeds alone."""
    folders = [tmp_path_factory.mktemp("runs") / str(seed) for seed in (3, 4)]
    for seed, folder in zip((3, 4), folders, strict=True):
        recommender(seed).fit(data.train, checkpoint=folder)
    return folders


@pytest.mark.parametrize("name", ["chain-0.safetensors", "chain-0-draws-0.safetensors"])
def test_files_of_other_runs_are_refused(name, runs, data, tmp_path):
    folder = shutil.copytree(runs[0], tmp_path / "run")
    shutil.copy(runs[1] / name, folder / name)
    with pytest.raises(InputError, match=f"{name} (belongs to another run|is of other data or settings)"):
        recommender().fit(data.train, checkpoint=folder)


@pytest.mark.parametrize("name", ["chain-{}.safetensors", "chain-{}-draws-0.safetensors"])
def test_files_of_other_chains_are_refused(name, runs, data, tmp_path):
    folder = shutil.copytree(runs[0], tmp_path / "run")
    first, second = (folder / name.format(chain) for chain in (0, 1))
    kept = first.read_bytes()
    shutil.copy(second, first)
    second.write_bytes(kept)
    with pytest.raises(InputError, match=f"{first.name} belongs to another run or another chain"):
        recommender().fit(data.train, checkpoint=folder)


def test_draws_in_place_of_a_chain_are_refused(runs, data, tmp_path):
    folder = shutil.copytree(runs[0], tmp_path / "run")
    shutil.copy(folder / "chain-0-draws-0.safetensors", folder / "chain-0.safetensors")
    with pytest.raises(InputError, match=r"chain-0\.safetensors is damaged or no checkpoint"):
        recommender().fit(data.train, checkpoint=folder)


def test_files_that_say_nonsense_about_themselves_are_refused(runs, data, tmp_path):
    folder = shutil.copytree(runs[0], tmp_path / "run")
    path = folder / "chain-0.safetensors"
    with safe_open(path, framework="numpy") as file:
        metadata, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(arrays, path, {**metadata, "seed": "three"})
    with pytest.raises(InputError, match=r"chain-0\.safetensors is damaged or no checkpoint"):
        recommender(None).fit(data.train, checkpoint=folder)


def test_a_run_without_a_seed_goes_on_from_whatever_chain_was_saved(runs, data, tmp_path):
    folder = shutil.copytree(runs[0], tmp_path / "run")
    for path in folder.glob("chain-0*"):
        path.unlink()
    again = recommender(None).fit(data.train, checkpoint=folder)
    assert fingerprint(again.fit_.draws) == fingerprint(recommender().fit(data.train).fit_.draws)


def test_a_full_disk_after_the_trial_of_drift_ends_no_run(tmp_path, monkeypatch):
    def full(path, text):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(checkpoint, "write_text", full)
    with pytest.warns(CheckpointWarning, match="What was chosen by trial cannot be saved .* No space left on device"):
        checkpoint.store_choice(tmp_path / "run", "mine", True)


def full_disk(monkeypatch, fails):
    """Let the writes of some numbers fail, counted from 0."""
    write, count = checkpoint.write_bytes, iter(range(10**6))

    def or_not(path, content):
        if fails(next(count)):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(path, content)

    monkeypatch.setattr(checkpoint, "write_bytes", or_not)


@pytest.mark.parametrize("fails", [lambda k: True, lambda k: k % 3 == 1, lambda k: k < 9], ids=["all", "some", "first"])
def test_a_full_disk_ends_no_run_and_is_tried_again(fails, data, tmp_path, monkeypatch):
    whole = recommender().fit(data.train)
    full_disk(monkeypatch, fails)
    with pytest.warns(CheckpointWarning, match="No space left on device. Sampling goes on without"):
        kept = recommender().fit(data.train, checkpoint=tmp_path / "run", checkpoint_minutes=0)
    assert fingerprint(kept.fit_.draws) == fingerprint(whole.fit_.draws)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckpointWarning)
        again = recommender().fit(data.train, checkpoint=tmp_path / "run")
    assert fingerprint(again.fit_.draws) == fingerprint(whole.fit_.draws)


def test_a_folder_that_is_gone_ends_no_run_in_several_processes(data, tmp_path):
    folder = tmp_path / "run"

    def remove(info):
        shutil.rmtree(folder, ignore_errors=True)

    with pytest.warns(CheckpointWarning, match="There is no folder"):
        kept = recommender(n_jobs=2).fit(data.train, checkpoint=folder, checkpoint_minutes=0, callback=remove)
    assert fingerprint(kept.fit_.draws) == fingerprint(recommender().fit(data.train).fit_.draws)


SECOND = """
import sys
from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
data = make_ratings(n_users=30, n_items=25, n_ratings=350, random_state=0)
TuckerRecommender(rank=2, draws=8, warmup=4, chains=2, random_state=3, time=None).fit(
    data.train, checkpoint=sys.argv[1])
"""


def test_two_processes_do_not_share_a_folder(data, tmp_path):
    said = []

    def second(info):
        if not said:
            arguments = [sys.executable, "-c", SECOND, str(tmp_path / "run")]
            said.append(subprocess.run(arguments, capture_output=True, text=True, env=dict(os.environ)).stderr)

    recommender().fit(data.train, checkpoint=tmp_path / "run", callback=second)
    assert f"InputError: The checkpoint {tmp_path / 'run'} is in use by another run; wait until" in said[0]
    recommender().fit(data.train, checkpoint=tmp_path / "run")


def test_what_a_killed_run_left_is_removed(runs, data, tmp_path):
    folder = shutil.copytree(runs[0], tmp_path / "run")
    (folder / ".chain-0-draws-5.safetensors.0123abcd.tmp").write_bytes(b"half")
    recommender().fit(data.train, checkpoint=folder)
    assert not list(folder.glob(".*"))
