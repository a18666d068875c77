"""MovieLens 100K: 100,000 ratings of 1,682 films by 943 people, with what is known of both, and its official splits.

GroupLens does not allow the data to be passed on, so it is downloaded from there: F. M. Harper and J. A. Konstan,
The MovieLens Datasets: History and Context, ACM TiiS 5(4), 2015.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tuckergp.data.datasets.download import zip_members
from tuckergp.data.datasets.files import (
    Collection,
    Source,
    bad_line,
    find_folder,
    objects,
    read_lines,
    to_float,
    to_int,
)
from tuckergp.data.datasets.shown import DataSet
from tuckergp.data.tables import Table
from tuckergp.errors import InputError

__all__ = ["GENRES", "MovieLens", "load_movielens_100k"]

GENRES = (
    "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip

_SPLITS = {
    "u1.base": "ce253ec86c448b44fb3ba9a30d12dcfc2e9210cbde71efada3730c22e9ac212a",
    "u1.test": "18c6014a4b2c7324f250a63f8904a7b16b2b19f911129e346141507b0cbac950",
    "u2.base": "6c06f0b5df4b256da1a994f3ac66edc8da4d3f09bc9282df6b14d893366d703e",
    "u2.test": "4de658d1e04ed9104629509a2e2528fce833ac8e048280183f1df167632038c3",
    "u3.base": "afdc155c291c6edc41c0407e39d7462eb98d341e064f0b0a12175b80b3c4af5d",
    "u3.test": "0f548b51c78327de4c156461d3e430b7e5579fe2b5681586a59416e48fd35f6d",
    "u4.base": "219f0f4d40dfe9c5141d425f53fa91ee23ed275f14e280bbf1b50117afb064ca",
    "u4.test": "7c02ad0a1e7ab1083c8b9d4b627203a051dd7b5eab46d99fa44de33470de8db9",
    "u5.base": "a9574e59ce961eec2121627760b6e9b0974ce1637b3fe69ac32cb14a4bfab485",
    "u5.test": "351cc52e0d15b6c721466276fc24671d40936899e3d01fadeaf312915b8c5634",
}
_CHECKSUMS = {
    "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
    "u.user": "f120e114da2e8cf314fd28f99417c94ae9ddf1cb6db8ce0e4b5995d40e90e62c",
    "u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
}


def _unpack(archive: Path) -> dict[str, bytes]:
    return zip_members(archive, {name: f"ml-100k/{name}" for name in (*_CHECKSUMS, *_SPLITS)})


COLLECTION = Collection(
    title="MovieLens 100K",
    folder="ml-100k",
    forms=(tuple(_CHECKSUMS),),
    cached={**_CHECKSUMS, **_SPLITS},
    sources=(
        Source(
            "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
            "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
            _unpack,
            by_hand="u.data",
        ),
    ),
)


@dataclass(frozen=True, repr=False)
class MovieLens(DataSet):
    """The MovieLens 100K data set in memory.

    Attributes
    ----------
    ratings : Table
        ``user_id`` and ``item_id`` (int), ``rating`` (1 to 5, float), ``timestamp`` (seconds since 1970, int).
    users : Table
        ``user_id``, ``age`` (int), ``sex`` (M or F), ``occupation``, ``zip_code`` (text: some are Canadian).
    items : Table
        ``item_id``, ``title``, ``year`` of release (float, NaN where it is not known), ``genres`` (a list of names
        each, empty where the film is of unknown genre).
    directory : Path
        Where the files are.
    """

    ratings: Table
    users: Table
    items: Table
    directory: Path = field(repr=False)

    def split(self, k: int) -> tuple[Table, Table]:
        """One of the five official splits, whose test parts do not overlap and together are all the ratings.

        Parameters
        ----------
        k : int
            1 to 5.

        Returns
        -------
        train, test : Table
            80,000 and 20,000 rows with the columns of `ratings`. Some users and items are in one part only.
        """
        if k not in range(1, 6):
            raise InputError(f"MovieLens 100K has the splits 1 to 5; there is none called {k!r}.")
        parts = [self.directory / f"u{int(k)}.{ending}" for ending in ("base", "test")]
        for path in parts:
            if not path.is_file():
                raise InputError(f"There is no {path}. Unpack the whole of {COLLECTION.sources[0].url} there.")
        train, test = map(_read_ratings, parts)
        if len(train) + len(test) != len(self.ratings):
            raise InputError(
                f"{parts[0]} and {parts[1].name} have {len(train):,} and {len(test):,} ratings, together not the "
                f"{len(self.ratings):,} of u.data. Put the publisher's files in their place."
            )
        return train, test


def load_movielens_100k(directory: str | os.PathLike[str] | None = None, download: bool = True) -> MovieLens:
    """MovieLens 100K, from disk or from GroupLens.

    Parameters
    ----------
    directory : path, optional
        The folder that holds ``u.data``, ``u.user`` and ``u.item``, or its parent. Where it is given, nothing else is
        tried, and files that differ from the published ones are taken as they are. By default ``TUCKERGP_DATA``, then
        the cache.
    download : bool
        Whether to download what is in neither.

    Returns
    -------
    MovieLens

    Examples
    --------
    >>> from tuckergp.datasets import load_movielens_100k
    >>> movielens = load_movielens_100k()  # doctest: +SKIP
    >>> train, test = movielens.split(1)  # doctest: +SKIP
    >>> len(train), len(test)  # doctest: +SKIP
    (80000, 20000)
    """
    folder = find_folder(COLLECTION, directory, download)
    return MovieLens(
        ratings=_read_ratings(folder / "u.data"),
        users=_read_users(folder / "u.user"),
        items=_read_items(folder / "u.item"),
        directory=folder,
    )


def _read_ratings(path: Path) -> Table:
    lines = read_lines(path)
    ids = np.empty((len(lines), 3), dtype=np.int64)
    ratings = np.empty(len(lines))
    for row, line in enumerate(lines):
        fields = line.split("\t")
        if len(fields) != 4:
            raise bad_line(
                path, row + 1, f"has {len(fields)} fields instead of 4 (user, item, rating, time, with tabs between)"
            )
        user, item, rating, time = fields
        ids[row, 0] = to_int(user, path, row + 1, "the user")
        ids[row, 1] = to_int(item, path, row + 1, "the item")
        ids[row, 2] = to_int(time, path, row + 1, "the time")
        ratings[row] = to_float(rating, path, row + 1, "the rating")
    user_id, item_id, timestamp = (np.ascontiguousarray(column) for column in ids.T)
    columns = {"user_id": user_id, "item_id": item_id, "rating": ratings, "timestamp": timestamp}
    return Table(columns, path.name, len(lines), first_line=1)


def _read_users(path: Path) -> Table:
    lines = read_lines(path)
    numbers = np.empty((2, len(lines)), dtype=np.int64)
    texts: list[list[str]] = []
    for row, line in enumerate(lines):
        fields = line.split("|")
        if len(fields) != 5:
            raise bad_line(
                path, row + 1, f"has {len(fields)} fields instead of 5 (user, age, sex, occupation, zip code, with |)"
            )
        numbers[0, row] = to_int(fields[0], path, row + 1, "the user")
        numbers[1, row] = to_int(fields[1], path, row + 1, "the age")
        texts.append(fields[2:])
    sex, occupation, zip_code = (objects(column) for column in zip(*texts, strict=True))
    columns = {
        "user_id": numbers[0],
        "age": numbers[1],
        "sex": sex,
        "occupation": occupation,
        "zip_code": zip_code,
    }
    return Table(columns, path.name, len(lines), first_line=1)


def _read_items(path: Path) -> Table:
    lines = read_lines(path, encoding="latin-1")
    item_id = np.empty(len(lines), dtype=np.int64)
    year = np.empty(len(lines))
    titles, genres = [], []
    for row, line in enumerate(lines):
        fields = line.split("|")
        if len(fields) != 24:
            raise bad_line(path, row + 1, f"has {len(fields)} fields instead of 24 (5 and 19 genre flags, with |)")
        item_id[row] = to_int(fields[0], path, row + 1, "the item")
        titles.append(fields[1])
        # 01-Jan-1995
        date = fields[2]
        year[row] = to_int(date.rpartition("-")[2], path, row + 1, "the year of release") if date else math.nan
        flags = fields[5:]
        if not set(flags) <= {"0", "1"}:
            raise bad_line(path, row + 1, "has a genre flag that is neither 0 nor 1")
        # the first flag stands for an unknown genre
        genres.append([genre for genre, flag in zip(GENRES, flags[1:], strict=True) if flag == "1"])
    columns = {"item_id": item_id, "title": objects(titles), "year": year, "genres": objects(genres)}
    return Table(columns, path.name, len(lines), first_line=1)
