"""Draws are read where they lie in the file, shared, and compared with their checksums when they are first used."""

from __future__ import annotations

import copy
import mmap
import os
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors

from tests.store.files import flip, rewrite, starts
from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender, load
from tuckergp.errors import InputError
from tuckergp.kernels import Identity, Matern32
from tuckergp.residuals.grown import GrownRows, grown, rows_in_place
from tuckergp.store import archive, stored_rows
from tuckergp.store.stored_rows import StoredRows

PSI = "fit_.draws.modes.0.rows.psi"
USERS, ITEMS = [f"u{k}" for k in range(12)], list(range(6))


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    user, item = np.repeat(USERS, 4).astype(object), rng.integers(len(ITEMS), size=48)
    return {"user_id": user, "item_id": item, "rating": rng.integers(1, 6, 48).astype(float)}


@pytest.fixture(scope="module")
def model(ratings):
    users = {"user_id": USERS, "town": ["a", "b", "c"] * 4}
    return TuckerRecommender(rank=2, draws=6, warmup=2, chains=2, random_state=0).fit(ratings, users)


@pytest.fixture
def path(model, tmp_path, monkeypatch):
    """A file with a checksum for every two users: 2 x 12 draws x rank 2 x 4 bytes."""
    monkeypatch.setattr(stored_rows, "PIECE", 192)
    model.save(tmp_path / "model.tgp")
    return tmp_path / "model.tgp"


def psi_of(model, d=0):
    return model.fit_.draws.modes[d].rows["psi"]


def pair(user, item=0):
    return {"user_id": [user], "item_id": [item]}


# Where things lie


def test_draws_are_mapped_and_not_read(path):
    rows = psi_of(load(path))
    assert isinstance(rows, StoredRows)
    assert isinstance(rows.array.base, mmap.mmap)
    assert not rows.array.flags.writeable
    assert not rows.checked.any()


def test_tensors_lie_at_multiples_of_64_bytes_as_in_memory(path, model):
    found, content = starts(path), path.read_bytes()
    assert all(start % 64 == 0 for start in found.values())
    mode = model.fit_.draws.modes[0]
    for name, values in {"rows.psi": mode.rows["psi"], "B": mode.B, "row_noise": mode.row_noise}.items():
        member = f"rows/fit_.draws.modes.0.{name}.safetensors"
        start = found[member]
        size = 8 + int.from_bytes(content[start : start + 8], "little")
        assert size % 64 == 0
        assert values.dtype == np.float32
        assert content[start + size : start + size + values.nbytes] == values.tobytes()
    assert psi_of(load(path)).array.ctypes.data % 64 == 0


def test_a_second_process_maps_the_same_file(path, model, ratings):
    code = (
        "import sys, tuckergp\n"
        "model = tuckergp.load(sys.argv[1])\n"
        "print(type(model.fit_.draws.modes[0].rows['psi'].array.base).__name__)\n"
        "print(any(sys.argv[1] in line and ' r--s ' in line for line in open('/proc/self/maps')))\n"
        "print(model.predict({'user_id': ['u3'], 'item_id': [0]})[0])"
    )
    if not Path("/proc/self/maps").exists():
        pytest.skip("needs /proc")
    arguments = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout.split() == ["mmap", "True", str(model.predict(pair("u3"))[0])]


def test_saving_and_loading_take_little_memory(model, tmp_path):
    """20 MB of draws; memory that is mapped is not taken."""
    draws, S = model.fit_.draws, 50_000
    modes = tuple(
        replace(
            mode,
            B=np.zeros((len(mode.B), S, 2), np.float32),
            covariance=np.tile(np.eye(2), (S, 1, 1)),
            rows={"psi": np.ones((len(mode.rows["psi"]), S, 2), np.float32)},
            values={name: np.repeat(values[:1], S, axis=0) for name, values in mode.values.items()},
            row_noise=None,
        )
        for mode in draws.modes
    )
    more = replace(draws, modes=modes, W=np.zeros((S, 0)), unknowns={"alpha": np.ones(S)}, lengths=(S,), names=None)
    large = TuckerRecommender(rank=2)
    vars(large).update(vars(model))
    large.fit_ = replace(model.fit_, draws=more)
    by_rows = sum(mode.B.nbytes + mode.rows["psi"].nbytes for mode in modes)
    besides = large.fit_.draws.size - by_rows
    assert by_rows > 10_000_000
    tracemalloc.start()
    try:
        large.save(tmp_path / "large.tgp")
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
        tracemalloc.reset_peak()
        again = load(tmp_path / "large.tgp")
        assert tracemalloc.get_traced_memory()[1] < besides + 5_000_000
    finally:
        tracemalloc.stop()
    assert psi_of(again).nbytes == psi_of(large).nbytes


def test_a_file_that_cannot_be_mapped_is_read(path, model, ratings, monkeypatch):
    def cannot(*_, **__):
        raise OSError("no such device")

    monkeypatch.setattr(archive.mmap, "mmap", cannot)
    again = load(path)
    assert np.array_equal(again.predict(ratings), model.predict(ratings))
    flip(path, starts(path)[f"rows/{PSI}.safetensors"] + 130)
    with pytest.raises(InputError, match="is damaged"):
        load(path, verify=True)


@pytest.mark.parametrize("shift", range(4))
def test_a_file_whose_members_are_not_aligned_is_read(shift, path, model, ratings):
    rewrite(path, **{"a" * (shift + 1): b"a"})
    with zipfile.ZipFile(path) as members:
        order = [*members.namelist()[-1:], *members.namelist()[:-1]]
        content = {name: members.read(name) for name in order}
    with zipfile.ZipFile(path, "w") as members:
        for name, value in content.items():
            members.writestr(name, value)
    again = load(path, verify=True)
    assert np.array_equal(again.predict(ratings), model.predict(ratings))


# Checksums


def damage(path, row):
    """Change one number of the factors of one of the users."""
    with zipfile.ZipFile(path) as members:
        name = f"rows/{PSI}.safetensors"
        size = members.getinfo(name).file_size
        (psi,) = load_tensors(members.read(name)).values()
    flip(path, starts(path)[name] + size - psi.nbytes + row * psi[0].nbytes + 5)


def test_a_flipped_bit_is_noticed_when_its_rows_are_used(path, model):
    damage(path, row=5)
    again = load(path)
    ids = again.layout_.sides[0].base.values
    for place, user in enumerate(ids):
        if place in (4, 5):
            with pytest.raises(InputError, match=rf"^model\.tgp is damaged .*rows 4 to 5 of {PSI} differ"):
                again.predict(pair(user))
            with pytest.raises(InputError, match="is damaged"):
                again.recommend(user, n=2)
        else:
            assert np.array_equal(again.predict(pair(user)), model.predict(pair(user)))
            assert again.recommend(user, n=2).equals(model.recommend(user, n=2))
    with pytest.raises(InputError, match="is damaged"):
        again.embeddings()


def test_verify_notices_a_flipped_bit_at_once(path):
    load(path, verify=True)
    damage(path, row=11)
    load(path)
    with pytest.raises(InputError, match=rf"^model\.tgp is damaged .*rows 10 to 11 of {PSI} differ"):
        load(path, verify=True)


def test_ratings_are_compared_with_their_checksums_when_they_are_used(path):
    flip(path, starts(path)["rows/history_.item.safetensors"] + 130)
    again = load(path)
    assert len(again.recommend("u3", n=2, exclude_seen=False)) == 2
    for use in (lambda: again.recommend(USERS, n=1), lambda: again.history_.codes, lambda: load(path, verify=True)):
        with pytest.raises(InputError, match=r"^model\.tgp is damaged .*of history_.item differ"):
            use()


def test_what_one_has_seen_is_read_without_the_ratings_of_others(path):
    again = load(path)
    item = again.history_.item
    assert len(item.checksums) == 1
    checksums = np.array([zlib.crc32(item.array[k : k + 4].copy()) for k in range(0, 48, 4)])
    vars(again.history_)["item"] = replace(item, step=4, checksums=checksums, checked=None)
    again.recommend(again.layout_.sides[0].base.values[5], n=2)
    assert np.flatnonzero(again.history_.item.checked).tolist() == [5]
    assert not again.history_.value.checked.any()


def test_an_answer_looks_at_the_pieces_of_its_user_alone(path):
    again = load(path)
    user = again.layout_.sides[0].base.values[7]
    again.predict(pair(user))
    assert np.flatnonzero(psi_of(again).checked).tolist() == [3]
    again.recommend(user, n=2)
    assert np.flatnonzero(psi_of(again).checked).tolist() == [3]
    assert psi_of(again, 1).checked.all()  # of items all are compared
    again.predict(pair("nobody"))
    assert np.flatnonzero(psi_of(again).checked).tolist() == [3]


def test_a_piece_is_compared_once(path, monkeypatch):
    again = load(path)
    again.predict(pair("u3"))
    monkeypatch.setattr(stored_rows.zlib, "crc32", None)
    assert len(again.predict(pair("u3"))) == 1


def test_damage_is_not_saved_again(path, tmp_path):
    damage(path, row=5)
    again = load(path)
    with pytest.raises(InputError, match=r"^model\.tgp is damaged"):
        again.save(tmp_path / "two.tgp")
    assert [file.name for file in tmp_path.iterdir()] == ["model.tgp"]


def test_a_damaged_header_is_noticed_by_load(path):
    start = starts(path)[f"rows/{PSI}.safetensors"]
    before = path.read_bytes()
    for place in range(start, start + 100):
        path.write_bytes(before)
        flip(path, place)
        with suppress(InputError):
            assert psi_of(load(path)).shape == (12, 12, 2)


# Members of others


def test_members_of_others_are_left_alone(path, model, ratings):
    """A link that leads elsewhere, and a name that does: nothing is unpacked."""
    before = sorted(path.parent.rglob("*"))
    link = zipfile.ZipInfo("rows/link.safetensors")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(path, "a") as members:
        members.writestr(link, "/etc/passwd")
        members.writestr("../escaped", "here")
    assert np.array_equal(load(path, verify=True).predict(ratings), model.predict(ratings))
    assert sorted(path.parent.rglob("*")) == before

    def astray(known):
        draws = known["state"]["fit_"]["fields"]["draws"]["fields"]
        draws["modes"]["tuple"][0]["fields"]["B"] = {"rows": {"key": "link", "shape": [1], "below": None}}
        known["members"]["rows/link.safetensors"] = {"size": 11, "crc32": 0, "piece": 1, "pieces": [0]}

    rewrite(path, astray)
    with pytest.raises(InputError, match="is damaged"):
        load(path)


# Models whose draws are in a file


def test_a_model_is_saved_to_the_file_that_it_reads_from(path, model, ratings):
    before, again = path.read_bytes(), load(path)
    again.save(path)
    assert path.read_bytes() == before
    assert np.array_equal(again.predict(ratings), model.predict(ratings))
    assert np.array_equal(load(path).predict(ratings), model.predict(ratings))


CHOICES = [
    lambda draws: draws.thinned(5),
    lambda draws: draws.thinned(7).only(2),
    lambda draws: draws.only(-1),
    lambda draws: draws.last_of_chains(),
]


def test_draws_are_chosen_without_reading_the_others(path, model):
    mine, theirs = model.fit_.draws, load(path).fit_.draws
    for choose in CHOICES:
        chosen, kept = choose(theirs), choose(mine)
        rows = chosen.modes[0].rows["psi"]
        assert isinstance(rows, StoredRows)
        assert rows.array is theirs.modes[0].rows["psi"].array
        assert not rows.checked.any()
        assert rows.shape == kept.modes[0].rows["psi"].shape
        assert chosen.size == kept.size
    for choose in CHOICES:
        for own, expected in zip(choose(theirs).modes, choose(mine).modes, strict=True):
            assert np.array_equal(own.rows["psi"], expected.rows["psi"])
            assert np.array_equal(own.B, expected.B)
            assert np.array_equal(own.row_noise, expected.row_noise)


def test_ratings_are_folded_in_behind_what_lies_in_the_file(path, model, ratings):
    again, same = load(path), TuckerRecommender(**model.get_params())
    vars(same).update(vars(model))
    new = {"user_id": ["new", "new", "u3"], "item_id": [0, 77, 1], "rating": [5.0, 1.0, 3.0]}
    for one in (again, same):
        one.fold_in(new)
    rows = psi_of(again)
    assert isinstance(rows, GrownRows)
    assert isinstance(rows.base, StoredRows)
    assert rows.base.checked.sum() <= 1  # not those of others
    asked = {"user_id": ["new", "u3", "u5", "nobody"], "item_id": [77, 77, 0, 77]}
    for options in ({"return_std": True}, {"quantiles": [0.2]}):
        for mine, theirs in zip(same.predict(asked, **options), again.predict(asked, **options), strict=True):
            assert np.array_equal(mine, theirs)
    for strategy in ("mean", "ucb", "thompson"):
        lists = [one.recommend(["new", "u3", "u5"], n=3, strategy=strategy, random_state=0) for one in (again, same)]
        assert lists[0].equals(lists[1])
    again.save(path)
    saved = load(path, verify=True)
    assert np.array_equal(saved.predict(asked), same.predict(asked))
    assert isinstance(psi_of(saved), StoredRows)


def test_every_answer_is_that_of_the_model_in_memory(path, model):
    again = load(path)
    assert again.similar_items(0, n=3).equals(model.similar_items(0, n=3))
    assert again.similar_users("u1", n=3).equals(model.similar_users("u1", n=3))
    assert repr(again.explain("u1", 2)) == repr(model.explain("u1", 2))
    assert repr(again.feature_importance()) == repr(model.feature_importance())
    assert np.array_equal(again.scores(USERS[:3], ITEMS), model.scores(USERS[:3], ITEMS))
    mine, theirs = model.embeddings(), again.embeddings()
    assert np.array_equal(mine.users, theirs.users)
    assert np.array_equal(mine.items, theirs.items)


def test_a_loaded_model_can_be_copied_and_sent_to_other_processes(path, model, ratings):
    for again in (copy.deepcopy(load(path)), pickle.loads(pickle.dumps(load(path)))):
        assert np.array_equal(again.predict(ratings), model.predict(ratings))
        assert again.recommend("u3", n=2).equals(model.recommend("u3", n=2))


def test_lines_are_read_from_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_rows, "PIECE", 192)
    rng = np.random.default_rng(0)
    X = {"day": rng.permutation(20).astype(float), "place": ["a", "b"] * 10}
    modes = [Mode("day", Matern32(2.0)), Mode("place", Identity())]
    model = TuckerGPRegressor(modes, rank=2, draws=6, warmup=2, random_state=0).fit(X, rng.standard_normal(20))
    model.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    states = again.fit_.draws.modes[0].rows["states"]
    assert isinstance(states, StoredRows)
    assert len(states.checksums) > 5
    asked = {"day": [3.0, 2.5, 40.0], "place": ["a", "b", "c"]}
    for options in ({"return_std": True}, {"return_cov": True}):
        for mine, theirs in zip(model.predict(asked, **options), again.predict(asked, **options), strict=True):
            assert np.array_equal(mine, theirs)
    assert again.fit_.draws.modes[0].rows["states"].checked.all()


# Rows as arrays


@pytest.fixture(params=["stored", "grown", "stored and grown"])
def rows(request):
    array = np.random.default_rng(0).standard_normal((10, 4, 3)).astype(np.float32)
    base = array if request.param == "stored" else array[:7]
    if request.param != "grown":
        checksums = np.array([stored_rows.zlib.crc32(base[k : k + 2].copy()) for k in range(0, len(base), 2)])
        base = StoredRows(base, checksums, 2, "model.tgp", "psi")
    return (base if request.param == "stored" else grown(base, array[7:])), array


KEYS = [
    np.array([3, 9, 0, 3]),
    np.zeros(0, dtype=int),
    slice(2, 8),
    slice(None, None, 3),
    (slice(None), 2),
    (slice(None), slice(1, 3)),
    (slice(None), np.array([3, 0])),
    (np.array([8, 1, 8]), 2),
    np.arange(10) % 3 == 0,
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_rows_are_read_as_from_an_array(key, rows):
    ours, array = rows
    assert np.array_equal(ours[key], array[key])
    assert ours[key].shape == array[key].shape


def test_rows_look_like_an_array(rows):
    ours, array = rows
    assert (ours.shape, ours.dtype, ours.nbytes, len(ours)) == (array.shape, array.dtype, array.nbytes, len(array))
    assert np.array_equal(np.asarray(ours), array)
    assert np.asarray(ours, dtype=np.float64).dtype == np.float64
    some = ours[:, np.array([2, 0, 3])][:, 1:]
    assert (some.shape, some.nbytes) == ((10, 2, 3), 10 * 2 * 3 * 4)
    assert np.array_equal(some[np.array([9, 2])], array[[9, 2]][:, [0, 3]])
    assert np.array_equal(some, array[:, [0, 3]])


def test_what_lies_in_one_piece_is_no_copy(rows):
    ours, array = rows
    assert np.shares_memory(rows_in_place(ours), array)
    assert np.array_equal(rows_in_place(ours), array[: len(rows_in_place(ours))])


def test_more_rows_come_after_those_that_were_added(rows):
    ours, array = rows
    more = grown(grown(ours, array[:1]), array[1:3])
    assert np.array_equal(more, np.concatenate([array, array[:3]]))
    assert np.shares_memory(rows_in_place(more), array)


@pytest.mark.parametrize(("first", "last", "pieces"), [(0, 7, [0, 1, 2, 3]), (2, 5, [1, 2]), (3, 4, [1]), (6, 99, [3])])
def test_every_piece_of_a_part_is_compared_the_last_too(first, last, pieces):
    """Seven rows in pieces of two: the last piece has one row, and a part may end within a piece."""
    array = np.arange(14.0).reshape(7, 2)
    checksums = np.array([stored_rows.zlib.crc32(array[k : k + 2].copy()) for k in range(0, 7, 2)])
    whole = StoredRows(array, checksums, 2, "model.tgp", "psi")
    np.testing.assert_array_equal(whole.part(first, last), array[first:last])
    assert np.flatnonzero(whole.checked).tolist() == pieces
    for piece in range(4):
        wrong = checksums.copy()
        wrong[piece] += 1
        rows = StoredRows(array, wrong, 2, "model.tgp", "psi")
        if piece in pieces:
            with pytest.raises(InputError, match=f"rows {2 * piece} to {min(2 * piece + 1, 6)} of psi differ"):
                rows.part(first, last)
        else:
            assert len(rows.part(first, last)) == min(last, 7) - first
