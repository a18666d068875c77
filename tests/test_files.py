"""Files are replaced at once, keep their mode, and nothing of a writer that was killed stays."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tuckergp import TuckerRecommender, load
from tuckergp.errors import InputError
from tuckergp.files import in_use, write_bytes, writing

RATINGS = {"user_id": [1, 2], "item_id": [1, 2], "rating": [1.0, 2.0]}


@pytest.fixture(scope="module")
def model():
    return TuckerRecommender(rank=1, inference="als", random_state=0).fit(RATINGS)


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("mask", "expected"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_new_files_follow_the_umask(mask, expected, model, umask, tmp_path):
    umask(mask)
    model.save(tmp_path / "model.tgp")
    assert mode(tmp_path / "model.tgp") == expected


@pytest.mark.parametrize("before", [0o600, 0o640, 0o666])
def test_existing_files_keep_their_mode(before, model, umask, tmp_path):
    path = tmp_path / "model.tgp"
    path.write_bytes(b"")
    path.chmod(before)
    model.save(path)
    assert mode(path) == before
    assert len(load(path).predict(RATINGS)) == 2


def test_what_replaces_a_private_file_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"")
    path.chmod(0o600)
    with writing(path):
        (temporary,) = tmp_path.glob(".secret.*.tmp")
        assert mode(temporary) == 0o600


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing yet"])
def test_links_stay_and_lead_to_the_new_file(there, model, tmp_path):
    (tmp_path / "store").mkdir()
    target, link = tmp_path / "store" / "model-7.tgp", tmp_path / "latest.tgp"
    if there:
        target.write_bytes(b"old")
    link.symlink_to(target)
    model.save(link)
    assert link.is_symlink()
    assert not target.is_symlink()
    np.testing.assert_array_equal(load(target).predict(RATINGS), model.predict(RATINGS))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["latest.tgp", "model-7.tgp", "store"]


def test_what_is_no_regular_file_is_refused_and_stays(model, tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link, Path(os.devnull)):
        with pytest.raises(InputError, match="is a device, a pipe or a socket; name a regular file"):
            model.save(path)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(InputError, match=r"leads to itself|Too many levels of symbolic links"):
        model.save(loop)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    write_bytes(path, b"old")
    with pytest.raises(TypeError), writing(path) as file:
        file.writelines([b"new", None])
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [b"old"]


KILLED = """
import os, signal, sys
from pathlib import Path
from tuckergp.files import writing
with writing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    path, other = tmp_path / "model[1]*.tgp", tmp_path / ".model[1]*.tgp.backup"
    other.write_bytes(b"not ours")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    with writing(tmp_path / "model1x.tgp"):  # of another file
        assert len(list(tmp_path.iterdir())) == 3
    with writing(path) as first:
        first.write(b"first")
        write_bytes(path, b"second")  # which leaves the one that is being written alone
        assert len(list(tmp_path.iterdir())) == 4
    assert path.read_bytes() == b"first"
    assert {found.name for found in tmp_path.iterdir()} == {path.name, other.name, "model1x.tgp"}


def test_a_folder_is_held_by_one_at_a_time(tmp_path):
    refused = pytest.raises(InputError, match="The folder is in use by another run")
    with in_use(tmp_path, "The folder"), refused, in_use(tmp_path, "The folder"):
        pass
    with in_use(tmp_path, "The folder"):
        pass
