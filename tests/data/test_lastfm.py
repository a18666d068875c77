"""Last.fm 2K: the counts of the release, lines that do not belong to it, tags that several people used."""

import hashlib
import io
import shutil
import zipfile
from collections import Counter, defaultdict

import numpy as np
import pytest

from tuckergp.data.datasets import lastfm as module
from tuckergp.data.datasets import load_lastfm_2k
from tuckergp.data.datasets.files import find_folder
from tuckergp.errors import InputError

HEADERS = {name: "\t".join(columns) for name, columns in module._COLUMNS.items()}
LINES = {
    "user_artists.dat": ["1\t7\t1", "2\t51\t13", "2\t101\t420", "2\t101\t421", "3\t51\t2"],
    "artists.dat": ["51\tDuran Duran\thttp://a\t", "101\tBjörk\thttp://b\thttp://c"],
    "tags.dat": ["1\tmetal", "2\tpop", "9\tcaf\xe9"],
    "user_taggedartists.dat": [
        "2\t51\t1\t1\t4\t2009",
        "2\t51\t2\t1\t4\t2009",
        "3\t51\t2\t1\t4\t2009",
        "3\t101\t1\t1\t4\t2009",
        "2\t101\t9\t1\t4\t2009",
        "2\t77\t9\t1\t4\t2009",
    ],
    "user_friends.dat": ["1\t2", "2\t3", "2\t8", "3\t2"],
}


@pytest.fixture
def folder(tmp_path):
    """A folder with a few lines of each file, with the line ends and encodings of the publisher."""
    for name, lines in LINES.items():
        text = "\r\n".join([HEADERS[name], *lines, ""])
        (tmp_path / name).write_bytes(text.encode("latin-1" if name == "tags.dat" else "utf-8"))
    return tmp_path


@pytest.fixture(scope="module")
def real(data_dir):
    if not (data_dir / "lastfm-2k").is_dir():
        pytest.skip(f"no Last.fm here: unpack hetrec2011-lastfm-2k.zip in {data_dir / 'lastfm-2k'}")
    return data_dir / "lastfm-2k"


def test_stray_lines_are_left_out_and_others_like_them_are_not(folder):
    plays = load_lastfm_2k(folder).plays
    rows = list(zip(*(plays[name].tolist() for name in ("user_id", "item_id", "count")), strict=True))
    assert rows == [(2, 51, 13), (2, 101, 421), (3, 51, 2)]
    assert [plays[name].dtype.kind for name in plays.columns] == ["i"] * 3


def test_friends_are_bags_of_ids(folder):
    users = load_lastfm_2k(folder).users
    assert users["user_id"].tolist() == [2, 3]
    assert users["friends"].tolist() == [["3", "8"], ["2"]]


@pytest.mark.parametrize(
    ("tag_users", "tags"),
    [(1, [["metal", "pop"], ["metal", "café"]]), (2, [["metal", "pop"], ["metal"]]), (3, [[], []])],
)
def test_tags_are_those_that_enough_people_used(folder, tag_users, tags):
    artists = load_lastfm_2k(folder, tag_users=tag_users).artists
    assert artists["name"].tolist() == ["Duran Duran", "Björk"]
    assert artists["tags"].tolist() == tags


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("user_artists.dat", "2\t3", "has 2 fields instead of 3"),
        ("user_artists.dat", "2\t3\tmany", "holds 'many' where the weight should be a whole number"),
        ("artists.dat", "x\tBjörk\thttp://b\t", "holds 'x' where the id should be"),
        ("tags.dat", "x\tpop", "holds 'x' where the tagID should be"),
        ("user_taggedartists.dat", "2\t5\tpop\t1\t1\t2001", "holds 'pop' where the tagID should be"),
        ("user_friends.dat", "2 3", "has 1 fields instead of 2"),
    ],
)
def test_a_malformed_line_is_named(folder, name, line, message):
    (folder / name).write_text("\n".join([HEADERS[name], line]), encoding="utf-8")
    with pytest.raises(InputError, match=f"{name} line 2 {message}"):
        load_lastfm_2k(folder)


def test_a_missing_header_is_named(folder):
    (folder / "user_artists.dat").write_text("2\t51\t13\n")
    with pytest.raises(InputError, match="line 1 is not the header userID, artistID, weight"):
        load_lastfm_2k(folder)


def test_the_real_files_have_the_counts_of_the_release(real):
    data = load_lastfm_2k(real)
    assert (len(data.plays), len(data.users), len(data.artists)) == (92_834, 1_892, 17_632)
    assert sum(map(len, data.users["friends"])) == 2 * 12_717
    assert set(data.plays["user_id"]) == set(data.users["user_id"])
    assert set(data.plays["item_id"]) == set(data.artists["item_id"])
    pairs = set(zip(data.plays["user_id"].tolist(), data.plays["item_id"].tolist(), strict=True))
    assert len(pairs) == 92_834
    assert data.plays["count"].min() == 1
    assert np.bincount(data.plays["user_id"]).max() == 50
    friends = {(user, int(other)) for user, them in zip(*data.users.columns.values(), strict=True) for other in them}
    assert friends == {(other, user) for user, other in friends}


def test_tags_of_the_real_files_have_been_used_by_five_people(real):
    data = load_lastfm_2k(real)
    names = dict(line.split("\t") for line in (real / "tags.dat").read_text(encoding="latin-1").splitlines()[1:])
    people = defaultdict(set)
    for line in (real / "user_taggedartists.dat").read_text().splitlines()[1:]:
        user, _, tag, *_ = line.split("\t")
        people[tag].add(user)
    used = Counter(tag for tags in data.artists["tags"] for tag in tags)
    expected = {names[tag] for tag, users in people.items() if len(users) >= 5}
    assert set(used) <= expected
    assert len(used) > 0.95 * len(expected)


def test_the_real_files_are_sound_with_either_line_ends_and_with_stray_lines_or_without(real, tmp_path, monkeypatch):
    monkeypatch.delenv("TUCKERGP_DATA", raising=False)
    monkeypatch.setenv("TUCKERGP_CACHE", str(tmp_path))
    where = tmp_path / "lastfm-2k"
    shutil.copytree(real, where)
    where.chmod(0o755)
    assert find_folder(module.COLLECTION, None, download=False) == where
    for name in module._COLUMNS:
        content = module._plain((real / name).read_bytes())
        assert hashlib.sha256(content).hexdigest() == module.COLLECTION.cached[name]
        (where / name).chmod(0o644)
        (where / name).write_bytes(content.replace(b"\n", b"\r\n"))
    assert find_folder(module.COLLECTION, None, download=False) == where
    (where / "tags.dat").write_bytes(b"tagID\ttagValue\n1\tmetal\n")
    with pytest.raises(InputError, match="nor whole in the cache"):
        find_folder(module.COLLECTION, None, download=False)


def test_the_archive_has_its_files_at_the_top(folder):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        for name in [*LINES, "readme.txt"]:
            opened.writestr(name, b"content")
    (folder / "archive").write_bytes(archive.getvalue())
    assert module.COLLECTION.sources[0].unpack(folder / "archive") == dict.fromkeys(LINES, b"content")
