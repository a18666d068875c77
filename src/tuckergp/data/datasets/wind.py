"""Daily mean wind speed at 12 Irish stations, 1961 to 1978: J. Haslett and A. E. Raftery, Applied Statistics 38, 1989.

Kept on disk as ``wind.csv`` (a line per day, a column per station); StatLib's ``wind.data`` is read as well.
"""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tuckergp.data.datasets.files import (
    Collection,
    Source,
    bad_line,
    find_folder,
    objects,
    read_lines,
    split_lines,
    to_float,
    to_int,
)
from tuckergp.data.datasets.shown import DataSet
from tuckergp.data.tables import Table
from tuckergp.errors import InputError

__all__ = ["Wind", "load_wind"]

# code, name, latitude, longitude
_STATIONS = (
    ("VAL", "Valentia", 51.933333, -10.25),
    ("BEL", "Belmullet", 54.233333, -10.0),
    ("CLA", "Claremorris", 53.716667, -8.983333),
    ("SHA", "Shannon", 52.7, -8.916667),
    ("RPT", "Roche's Point", 51.8, -8.25),
    ("BIR", "Birr", 53.083333, -7.883333),
    ("MUL", "Mullingar", 53.533333, -7.366667),
    ("MAL", "Malin Head", 55.366667, -7.333333),
    ("KIL", "Kilkenny", 52.666667, -7.266667),
    ("CLO", "Clones", 54.183333, -7.233333),
    ("DUB", "Dublin", 53.433333, -6.25),
    ("ROS", "Roslare", 52.282442, -6.35696),
)
_CODES = ["RPT", "VAL", "ROS", "KIL", "SHA", "BIR", "DUB", "CLA", "MUL", "CLO", "BEL", "MAL"]
_DATE = ["year", "month", "day"]
_FIRST_DAY = np.datetime64("1961-01-01")


@dataclass(frozen=True, repr=False)
class Wind(DataSet):
    """Wind speed in Ireland.

    Attributes
    ----------
    values : Table
        One row for each day and station, days first: ``station`` (its code), ``date`` (datetime64), ``day`` (days
        since 1961-01-01, int), ``speed`` (daily mean in knots).
    stations : Table
        ``station`` (its code), ``name``, ``latitude`` and ``longitude`` in degrees.
    """

    values: Table
    stations: Table


def load_wind(directory: str | os.PathLike[str] | None = None, download: bool = True) -> Wind:
    """Daily mean wind speed at 12 Irish stations over 18 years, from disk or from StatLib.

    Parameters
    ----------
    directory : path, optional
        The folder that holds ``wind.csv`` or ``wind.data`` (and perhaps ``stations.csv``, for other stations than the
        published ones), or its parent. Where it is given, nothing else is tried, and files that differ from the
        published ones are taken as they are. By default ``TUCKERGP_DATA``, then the cache.
    download : bool
        Whether to download what is in neither.

    Returns
    -------
    Wind

    Examples
    --------
    >>> from tuckergp.datasets import load_wind
    >>> wind = load_wind()  # doctest: +SKIP
    >>> len(wind.values), len(wind.stations)  # doctest: +SKIP
    (78888, 12)
    """
    folder = find_folder(COLLECTION, directory, download)
    path = folder / "wind.csv"
    if path.is_file():
        codes, dates, speeds = _read_csv(read_lines(path), path)
    else:
        path = folder / "wind.data"
        codes, dates, speeds = _read_statlib(read_lines(path), path)
    table = folder / "stations.csv"
    stations = _read_stations(table) if table.is_file() else _station_table(_STATIONS, "stations", None)
    unknown = [code for code in codes if code not in stations["station"]]
    if unknown:
        raise InputError(
            f"{path} has the station {unknown[0]}, of which {table} says nothing. Add a line for it there."
        )
    n_days, n_stations = speeds.shape
    date = np.repeat(dates, n_stations)
    values = {
        "station": np.tile(objects(codes), n_days),
        "date": date,
        "day": (date - _FIRST_DAY).astype(np.int64),
        "speed": speeds.ravel(),
    }
    return Wind(Table(values, path.name, speeds.size), stations)


_Days = tuple[list[str], npt.NDArray[np.datetime64], npt.NDArray[np.float64]]  # codes, dates, speeds (days x stations)


def _read_csv(lines: list[str], path: Path) -> _Days:
    """Our own form: a header with the stations' codes, years with four digits."""
    header = lines[0].split(",")
    codes = header[3:]
    if header[:3] != _DATE or not codes or len(set(codes)) < len(codes):
        raise bad_line(path, 1, "is not a header of year,month,day and different station codes")
    return _days([line.split(",") for line in lines[1:]], path, 2, codes)


def _read_statlib(lines: list[str], path: Path) -> _Days:
    """StatLib's form: no header, spaces, years with two digits."""
    return _days([line.split() for line in lines], path, 1, _CODES)


def _days(rows: list[list[str]], path: Path, first_line: int, codes: list[str]) -> _Days:
    if not rows:
        raise InputError(f"{path} has a header and no days. Put the publisher's file in its place.")
    dates = np.empty(len(rows), dtype="datetime64[D]")
    speeds = np.empty((len(rows), len(codes)))
    for row, fields in enumerate(rows):
        line = first_line + row
        if len(fields) != 3 + len(codes):
            raise bad_line(
                path,
                line,
                f"has {len(fields)} fields instead of {3 + len(codes)} (year, month, day, {len(codes)} speeds)",
            )
        year, month, day = (to_int(fields[part], path, line, f"the {_DATE[part]}") for part in range(3))
        try:
            dates[row] = datetime.date(year + 1900 if year < 100 else year, month, day)
        except ValueError:
            raise bad_line(path, line, f"holds {year}, {month}, {day}, which is no date") from None
        for column, text in enumerate(fields[3:]):
            speeds[row, column] = to_float(text, path, line, f"the speed at {codes[column]}")
    late = np.flatnonzero(np.diff(dates) <= np.timedelta64(0, "D"))
    if late.size:
        raise bad_line(path, first_line + int(late[0]) + 1, "does not come after the day of the line before")
    return codes, dates, speeds


def _read_stations(path: Path) -> Table:
    lines = read_lines(path)
    if lines[0].strip() != "code,station,latitude,longitude":
        raise bad_line(path, 1, "is not the header code,station,latitude,longitude")
    stations = []
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split(",")
        if len(fields) != 4:
            raise bad_line(path, number, f"has {len(fields)} fields instead of 4 (code, station, latitude, longitude)")
        latitude = to_float(fields[2], path, number, "the latitude")
        longitude = to_float(fields[3], path, number, "the longitude")
        stations.append((fields[0], fields[1], latitude, longitude))
    return _station_table(tuple(stations), path.name, 2)


def _station_table(stations: tuple[tuple[str, str, float, float], ...], name: str, first_line: int | None) -> Table:
    columns = {
        "station": objects([station[0] for station in stations]),
        "name": objects([station[1] for station in stations]),
        "latitude": np.array([station[2] for station in stations]),
        "longitude": np.array([station[3] for station in stations]),
    }
    return Table(columns, name, len(stations), first_line)


def _unpack(downloaded: Path) -> dict[str, bytes]:
    """``wind.csv`` as the cache keeps it."""
    path = Path("wind.data")
    codes, dates, speeds = _read_statlib(split_lines(downloaded.read_bytes(), path), path)
    lines = [",".join(_DATE + codes)]
    for date, row in zip(dates.tolist(), speeds.tolist(), strict=True):
        lines.append(",".join(map(str, (date.year, date.month, date.day, *row))))
    return {"wind.csv": ("\n".join(lines) + "\n").encode()}


COLLECTION = Collection(
    title="Irish wind",
    folder="wind",
    forms=(("wind.csv",), ("wind.data",)),
    convert=_unpack,
    cached={"wind.csv": "860bdc12d6062cb60444aae92089db47704021491c8fa9be13db5c5952abb5ce"},
    sources=(Source("http://lib.stat.cmu.edu/datasets/wind.data", None, _unpack, by_hand="wind.data"),),
)
