"""Last.fm 2K: how often 1,892 people played 17,632 artists, who is friends with whom, and which tags artists have.

From the workshop HetRec 2011 (I. Cantador, P. Brusilovsky and T. Kuflik, RecSys 2011); GroupLens offers it for
non-commercial use. Some copies have 12 plays and a friendship that the release does not have, and they are left out.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tuckergp.data.datasets.download import zip_members
from tuckergp.data.datasets.files import Collection, Source, bad_line, find_folder, objects, read_lines, to_int
from tuckergp.data.datasets.shown import DataSet
from tuckergp.data.tables import Table

__all__ = ["LastFM", "load_lastfm_2k"]

_COLUMNS = {
    "user_artists.dat": ("userID", "artistID", "weight"),
    "artists.dat": ("id", "name", "url", "pictureURL"),
    "tags.dat": ("tagID", "tagValue"),
    "user_taggedartists.dat": ("userID", "artistID", "tagID", "day", "month", "year"),
    "user_friends.dat": ("userID", "friendID"),
}
_CHECKSUMS = {
    "user_artists.dat": "254272fa721c3935e8be286d28c051b206844307128698ab4eaa41d483379416",
    "artists.dat": "c173881362c6b28551368fecb3c0be5a6a30a6cd859e1f5775413dfe46d48648",
    "tags.dat": "c815d7216101fd0ba9b9c59fa2a011998d2fd076e0064d281ec4153d95ae8095",
    "user_taggedartists.dat": "c4a9ffae9ab47a9f9b2f0678ab1f7e5c1db4ca818837d8cddd1f5699c5bbf048",
    "user_friends.dat": "0360883a3557776e04fdebda851f2e5dd23e796cad7059b968acdebd528d13fa",
}
# Users of the release are numbered from 2 on and have up to 50 artists. Some copies have a user 1, who played the first
# ten artists once each, and a 51st artist of two users. Without these lines their numbers are those of the release.
_STRAY = frozenset({*(f"1\t{artist}\t1" for artist in range(1, 11)), "2\t101\t420", "515\t101\t421", "1\t2"})


def _plain(content: bytes) -> bytes:
    """A file with plain line ends and without stray lines."""
    lines = content.replace(b"\r\n", b"\n").split(b"\n")
    stray = {line.encode() for line in _STRAY}
    return b"\n".join(line for line in lines if line not in stray)


def _unpack(archive: Path) -> dict[str, bytes]:
    return zip_members(archive, {name: name for name in _COLUMNS})


COLLECTION = Collection(
    title="Last.fm 2K",
    folder="lastfm-2k",
    forms=(tuple(_COLUMNS),),
    cached=_CHECKSUMS,
    sources=(
        Source(
            "https://files.grouplens.org/datasets/hetrec2011/hetrec2011-lastfm-2k.zip",
            None,
            _unpack,
            by_hand="user_artists.dat",
        ),
    ),
    aliases=("hetrec2011-lastfm-2k",),
    plain=_plain,
)


@dataclass(frozen=True, repr=False)
class LastFM(DataSet):
    """The Last.fm 2K data set in memory.

    Attributes
    ----------
    plays : Table
        ``user_id`` and ``item_id`` (an artist; int), ``count`` (how often, from 1 on, int): up to 50 artists per user.
    users : Table
        ``user_id``, ``friends`` (a list of their ids as text, at least one).
    artists : Table
        ``item_id``, ``name``, ``tags`` (a list of names each, empty for many).
    """

    plays: Table
    users: Table
    artists: Table


def load_lastfm_2k(
    directory: str | os.PathLike[str] | None = None, download: bool = True, *, tag_users: int = 5
) -> LastFM:
    """Last.fm 2K, from disk or from GroupLens.

    Parameters
    ----------
    directory : path, optional
        The folder that holds ``user_artists.dat`` and the four others, or its parent. Where it is given, nothing else
        is tried, and files that differ from the published ones are taken as they are. By default ``TUCKERGP_DATA``,
        then the cache.
    download : bool
        Whether to download what is in neither.
    tag_users : int
        Only tags that at least this many people used; most of the others are used once.

    Returns
    -------
    LastFM

    Examples
    --------
    >>> from tuckergp.datasets import load_lastfm_2k
    >>> lastfm = load_lastfm_2k()  # doctest: +SKIP
    >>> len(lastfm.plays), len(lastfm.users), len(lastfm.artists)  # doctest: +SKIP
    (92834, 1892, 17632)
    """
    folder = find_folder(COLLECTION, directory, download)
    return LastFM(
        plays=_read_plays(folder / "user_artists.dat"),
        users=_read_users(folder / "user_friends.dat"),
        artists=_read_artists(folder, tag_users),
    )


def _rows(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, list[str]]]:
    """The number and the fields of each line after the header, without stray lines."""
    columns = _COLUMNS[path.name]
    lines = read_lines(path, encoding)
    if lines[0].split("\t") != list(columns):
        raise bad_line(path, 1, f"is not the header {', '.join(columns)}, with tabs between")
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        if len(fields) != len(columns):
            raise bad_line(path, number, f"has {len(fields)} fields instead of {len(columns)} ({', '.join(columns)})")
        if line not in _STRAY:
            yield number, fields


def _integers(path: Path, n_columns: int) -> npt.NDArray[np.int64]:
    """The first columns of a file of whole numbers, (rows, n_columns)."""
    names = _COLUMNS[path.name]
    rows = [
        [to_int(field, path, number, f"the {name}") for field, name in zip(fields[:n_columns], names, strict=False)]
        for number, fields in _rows(path)
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, n_columns)


def _read_plays(path: Path) -> Table:
    user, item, count = (np.ascontiguousarray(column) for column in _integers(path, 3).T)
    return Table({"user_id": user, "item_id": item, "count": count}, path.name, len(user))


def _read_users(path: Path) -> Table:
    friends: dict[int, list[str]] = defaultdict(list)
    for user, friend in _integers(path, 2).tolist():
        friends[user].append(str(friend))
    columns = {"user_id": np.array(list(friends), dtype=np.int64), "friends": objects(list(friends.values()))}
    return Table(columns, path.name, len(friends))


def _read_artists(folder: Path, tag_users: int) -> Table:
    path = folder / "tags.dat"
    # the only one of the files that is not UTF-8
    names = {to_int(tag, path, line, "the tagID"): name for line, (tag, name) in _rows(path, "latin-1")}
    people: dict[int, set[int]] = defaultdict(set)
    of_artist: dict[int, set[int]] = defaultdict(set)
    for user, artist, tag in _integers(folder / "user_taggedartists.dat", 3).tolist():
        people[tag].add(user)
        of_artist[artist].add(tag)
    known = {tag for tag, users in people.items() if len(users) >= tag_users and tag in names}
    path = folder / "artists.dat"
    ids, titles = [], []
    for line, (artist, name, *_) in _rows(path):
        ids.append(to_int(artist, path, line, "the id"))
        titles.append(name)
    tags = [[names[tag] for tag in sorted(of_artist[artist] & known)] for artist in ids]
    columns = {"item_id": np.array(ids, dtype=np.int64), "name": objects(titles), "tags": objects(tags)}
    return Table(columns, path.name, len(ids))
