"""Ratings larger than memory: one pass over a Parquet file numbers its ids and leaves the rest in scratch files.

What is learned from them then is what is learned from the same file in memory, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tuckergp.data.filed_history import FiledHistory
from tuckergp.data.frames import backend_of
from tuckergp.data.names import KEYS, RATING, USUAL, missing_column, taken_names
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.likelihoods.standardised import LARGEST
from tuckergp.recommender.choosing import inference_of
from tuckergp.recommender.entities import read_attributes
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.layout import SIDES
from tuckergp.recommender.learning import Material, Run, learn_from
from tuckergp.recommender.reading import Given, attribute_tables
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.running.fit import seed_for
from tuckergp.scratch import empty, in_files

__all__ = ["learn_in_files"]

# What "auto" means here; another value would need the ratings in memory, or a second fit.
HERE: dict[str, Any] = {"implicit": False, "time": None, "objective": "rating"}
SETTLED: dict[str, tuple[Any, ...]] = {
    "likelihood": ("auto", "gaussian"),
    "context": ((), []),
    "duplicates": ("keep",),
    "n_jobs": (None, 1),
}
# Rows that are read at a time.
ROWS = 2**20


def learn_in_files(settings: RecommenderSettings, given: Given, run: Run, folder: str | Path) -> FittedRecommender:
    """Fit a recommender to a Parquet file larger than memory; see `TuckerRecommender.fit`."""
    settings = _settled(settings)
    inference = inference_of(settings)
    if getattr(inference, "sigma_u", None) == "auto" or not inference.any_residual:
        raise InputError(
            "With scratch files it is learned by inference='gibbs' or a tuckergp.inference.ALS with a sigma_u, because "
            "trials and other methods need the ratings in memory."
        )
    with in_files(folder):
        history, names = _read(given.ratings, settings, Path(folder))
        seed = seed_for(settings.random_state, run.control.checkpoint)
        sources = zip(attribute_tables(given, settings, names), SIDES, KEYS, history.ids, strict=True)
        users, items = (read_attributes(source, name, key, ids) for source, name, key, ids in sources)
        names = {**(settings.columns or {}), **names}
        material = Material(history, (users, items), None, seed, backend_of(None), names)
        return learn_from(settings.decided(True), inference, material, run)


def _settled(settings: RecommenderSettings) -> RecommenderSettings:
    """The settings with what "auto" means here; refuses what needs the ratings in memory."""
    for name, meaning in HERE.items():
        if getattr(settings, name) not in ("auto", meaning):
            raise InputError(
                f"{name}={getattr(settings, name)!r} needs the ratings in memory; with scratch files use "
                f"{name}={meaning!r}."
            )
    for name, allowed in SETTLED.items():
        if getattr(settings, name, allowed[0]) not in allowed:
            raise InputError(
                f"{name}={getattr(settings, name)!r} needs the ratings in memory; leave scratch out, or "
                f"use {name}={allowed[-1]!r}."
            )
    return replace(settings, **HERE)


def _read(path: Any, settings: RecommenderSettings, folder: Path) -> tuple[FiledHistory, dict[str, str]]:
    """The ratings of a Parquet file in scratch files, with ids by first appearance, and the names of its columns."""
    from pyarrow import ArrowInvalid, parquet

    if not isinstance(path, str | Path):
        raise InputError(f"scratch is for the path of a Parquet file, not for a {type(path).__name__}.")
    if not Path(path).exists():
        raise InputError(f"There is no file {path}.")
    try:
        file = parquet.ParquetFile(path, memory_map=True, pre_buffer=False)  # the file would be in memory whole
    except ArrowInvalid:
        raise InputError(f"{path} is no Parquet file, and only those are read in pieces; convert it.") from None
    existing, given = list(file.schema_arrow.names), settings.columns or {}
    taken = taken_names(existing, str(path), given, USUAL[:3])
    columns = {usual: taken.get(usual, given.get(usual, usual)) for usual in (*KEYS, RATING)}
    for usual, name in columns.items():
        if name not in existing:
            raise missing_column(str(path), usual, existing, given)
    n = file.metadata.num_rows
    if not n:
        raise InputError(f"{path} is empty; there is nothing to learn from.")
    index, rating, numbers = empty((n, 2), np.int32), empty(n), [dict[Any, int](), dict[Any, int]()]
    begin = 0
    for batch in _batches(file, list(columns.values()), str(path)):
        rows = slice(begin, begin + len(batch))
        for d, key in enumerate(KEYS):
            index[rows, d] = _coded(batch.column(columns[key]), numbers[d])
        rating[rows] = _ratings(batch.column(columns[RATING]), str(path), settings)
        begin += len(batch)
    ids = list(numbers[0]), list(numbers[1])
    codes = (index[:, 0], index[:, 1])
    return FiledHistory(ids, codes, rating, Table({}, "ratings", n), folder=folder.absolute()), taken


def _batches(file: Any, columns: list[str], name: str) -> Iterator[Any]:
    for batch in file.iter_batches(ROWS, columns=columns):
        for column in columns:
            if batch.column(column).null_count:
                raise InputError(f"{name} column {column!r} has rows without a value; leave them out.")
        yield batch


def _coded(values: Any, numbers: dict[Any, int]) -> Any:
    """The numbers of ids, of which new ones are added."""
    encoded = values.dictionary_encode()
    distinct = [numbers.setdefault(value, len(numbers)) for value in encoded.dictionary.to_pylist()]
    return np.array(distinct, dtype=np.int32)[encoded.indices.to_numpy()]


def _ratings(values: Any, name: str, settings: RecommenderSettings) -> Any:
    import pyarrow as pa

    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise InputError(f"{name}: ratings are of type {values.type}, and numbers are needed.")
    y = values.cast(pa.float64()).to_numpy()
    low, high = settings.rating_scale or (-LARGEST, LARGEST)
    if not (np.isfinite(y) & (y >= low) & (y <= high)).all():
        raise InputError(f"{name} has ratings that are no numbers from {low:g} to {high:g}; leave them out.")
    return y
