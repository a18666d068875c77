"""California house prices of the 1990 census, by place: R. K. Pace and R. Barry, Sparse Spatial Autoregressions, 1997.

Kept on disk as ``houses.csv`` (longitude, latitude, median house value); the two forms in which the data are published
(scikit-learn's ``cal_housing.data`` and StatLib's ``cadata.txt``) are read as well.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tuckergp.data.datasets.download import tar_member, zip_members
from tuckergp.data.datasets.files import (
    Collection,
    Source,
    bad_line,
    find_folder,
    read_lines,
    split_lines,
    to_float,
    to_int,
)
from tuckergp.data.datasets.shown import DataSet
from tuckergp.data.tables import Table
from tuckergp.errors import InputError

__all__ = ["California", "load_california"]

_HEADER = "longitude,latitude,median_house_value"


@dataclass(frozen=True, repr=False)
class California(DataSet):
    """House prices in California, 1990: one row for each of 20,640 block groups.

    Attributes
    ----------
    table : Table
        ``longitude`` and ``latitude`` in degrees, ``house_value`` (median, in dollars).
    permutation : ndarray of int, shape (n_rows,), or None
        The order of the rows in the paper's experiment. Its authors' file, ``permutation.csv``, is not part of the
        published data, so it is None unless that file lies beside the data.
    """

    table: Table
    permutation: npt.NDArray[np.intp] | None

    @property
    def train(self) -> npt.NDArray[np.intp]:
        """Rows to train on: the first half of the paper's order, or, without it, of an order fixed in this library.

        Both halve the data at random. Errors on the two splits are comparable in size, not digit for digit.
        """
        return self._order[: len(self.table) // 2]

    @property
    def test(self) -> npt.NDArray[np.intp]:
        """Rows to test on: those that are not in `train`."""
        return self._order[len(self.table) // 2 :]

    @property
    def _order(self) -> npt.NDArray[np.intp]:
        if self.permutation is not None:
            return self.permutation
        # NumPy promises the raw stream of a bit generator for good, which it does not for Generator.permutation
        return np.argsort(np.random.PCG64(0).random_raw(len(self.table)), kind="stable")


def load_california(directory: str | os.PathLike[str] | None = None, download: bool = True) -> California:
    """California house prices with longitude and latitude, from disk or from the web.

    Parameters
    ----------
    directory : path, optional
        The folder that holds ``houses.csv``, ``cal_housing.data`` or ``cadata.txt`` (and perhaps
        ``permutation.csv``), or its parent. Where it is given, nothing else is tried, and files that differ from the
        published ones are taken as they are. By default ``TUCKERGP_DATA``, then the cache.
    download : bool
        Whether to download what is in neither.

    Returns
    -------
    California

    Examples
    --------
    >>> from tuckergp.datasets import load_california
    >>> california = load_california()  # doctest: +SKIP
    >>> train = california.table.take(california.train)  # doctest: +SKIP
    >>> len(train), list(train.columns)  # doctest: +SKIP
    (10320, ['longitude', 'latitude', 'house_value'])
    """
    folder = find_folder(COLLECTION, directory, download)
    path, read = next((folder / name, read) for name, read in _READERS.items() if (folder / name).is_file())
    columns, first_line = read(read_lines(path), path)
    table = Table(
        dict(zip(("longitude", "latitude", "house_value"), columns, strict=True)),
        path.name,
        len(columns[0]),
        first_line,
    )
    order = folder / "permutation.csv"
    return California(table, _read_permutation(order, len(table)) if order.is_file() else None)


_Columns = tuple[npt.NDArray[np.float64], int]  # (3, n_rows), and the line of the first row


def _read_houses(lines: list[str], path: Path) -> _Columns:
    """Our own form: a header and three columns."""
    if lines[0].strip() != _HEADER:
        raise bad_line(path, 1, f"is not the header {_HEADER}")
    return _numbers([line.split(",") for line in lines[1:]], path, 2, _HEADER.split(",")), 2


def _read_cal_housing(lines: list[str], path: Path) -> _Columns:
    """scikit-learn's form: longitude, latitude, six more, value, with commas."""
    names = ["longitude", "latitude", "age", "rooms", "bedrooms", "population", "households", "income", "value"]
    return _numbers([line.split(",") for line in lines], path, 1, names)[[0, 1, 8]], 1


def _read_cadata(lines: list[str], path: Path) -> _Columns:
    """StatLib's form: a preamble in prose, then value, six more, latitude, longitude, with spaces."""
    names = ["value", "income", "age", "rooms", "bedrooms", "population", "households", "latitude", "longitude"]
    fields = [line.split() for line in lines]
    start = next((row for row, words in enumerate(fields) if len(words) == 9 and all(map(_is_number, words))), None)
    if start is None:
        raise InputError(f"{path} has no line of 9 numbers. Put the publisher's file in its place.")
    return _numbers(fields[start:], path, start + 1, names)[[8, 7, 0]], start + 1


_READERS = {"houses.csv": _read_houses, "cal_housing.data": _read_cal_housing, "cadata.txt": _read_cadata}


def _numbers(rows: list[list[str]], path: Path, first_line: int, names: list[str]) -> npt.NDArray[np.float64]:
    """Columns of numbers, shape (len(names), n_rows)."""
    if not rows:
        raise InputError(f"{path} has a header and no rows. Put the publisher's file in its place.")
    numbers = np.empty((len(names), len(rows)))
    for row, fields in enumerate(rows):
        if len(fields) != len(names):
            raise bad_line(
                path, first_line + row, f"has {len(fields)} fields instead of {len(names)} ({', '.join(names)})"
            )
        for column, text in enumerate(fields):
            numbers[column, row] = to_float(text, path, first_line + row, f"the {names[column]}")
    return numbers


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _read_permutation(path: Path, n_rows: int) -> npt.NDArray[np.intp]:
    lines = read_lines(path)
    if lines[0].strip() != "row":
        raise bad_line(path, 1, "is not the header row")
    seen: set[int] = set()
    for number, line in enumerate(lines[1:], start=2):
        row = to_int(line, path, number, "the row")
        if not 0 <= row < n_rows or row in seen:
            raise bad_line(path, number, f"holds {row}, which is a row twice or not among the {n_rows} of the data")
        seen.add(row)
    if len(seen) != n_rows:
        raise InputError(f"{path} orders {len(seen)} rows, but the data have {n_rows}. Remove it or complete it.")
    return np.array(lines[1:], dtype=np.intp)


def _render(columns: npt.NDArray[np.float64]) -> dict[str, bytes]:
    """``houses.csv`` as the cache keeps it."""
    rows = [f"{longitude:g},{latitude:g},{value:.0f}\n" for longitude, latitude, value in columns.T]
    return {"houses.csv": (_HEADER + "\n" + "".join(rows)).encode()}


def _unpack_mirror(archive: Path) -> dict[str, bytes]:
    member = "CaliforniaHousing/cal_housing.data"
    content = tar_member(archive, member)
    return {} if content is None else _render(_read_cal_housing(split_lines(content, Path(member)), Path(member))[0])


def _unpack_statlib(archive: Path) -> dict[str, bytes]:
    content = zip_members(archive, {"cadata.txt": "cadata.txt"}).get("cadata.txt")
    if content is None:
        return {}
    path = Path("cadata.txt")
    return _render(_read_cadata(split_lines(content, path, "latin-1"), path)[0])


def _convert(path: Path) -> dict[str, bytes]:
    return _render(_READERS[path.name](read_lines(path, "latin-1"), path)[0])


COLLECTION = Collection(
    title="California house prices",
    folder="california",
    forms=tuple((name,) for name in _READERS),
    convert=_convert,
    cached={"houses.csv": "71326909560b0800595e6d485ce1c58bc75f462f41c8800849a816086346f076"},
    sources=(
        Source(
            "https://ndownloader.figshare.com/files/5976036",
            "aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
            _unpack_mirror,
            by_hand="cal_housing.data",
        ),
        Source("http://lib.stat.cmu.edu/datasets/houses.zip", None, _unpack_statlib, by_hand="cadata.txt"),
    ),
    aliases=("CaliforniaHousing",),
)
