"""Lists of a recommender whose users Spark left in Parquet: a job makes them, and may write them where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuckergp.cli.ids import ids_of_file
from tuckergp.cli.tables import check_output, put_table
from tuckergp.data.names import KEYS
from tuckergp.errors import InputError

__all__ = ["check_stored", "is_stored", "put_stored_lists"]


def is_stored(model: str) -> bool:
    """Whether this is a folder, of this machine or of another file system, where a model is a file."""
    return "://" in model or Path(model).is_dir()


def put_stored_lists(
    path: str,
    master: str | None,
    user: list[str] | None,
    users: Path | None,
    files: Mapping[str, Path | None],
    choice: dict[str, Any],
    output: str | None,
    as_json: bool,
) -> None:
    """Print the lists of users, of all if none are named, or write them; Parquet is a folder that the workers write.

    Parameters
    ----------
    path : str
        The folder of the recommender.
    master : str or None
    user : list of str or None
    users : Path or None
        A table with user_id.
    files : mapping of str to Path or None
        Tables of items: ``items`` and ``exclude`` of `TuckerRecommender.recommend`.
    choice : dict
        Its further arguments.
    output : str or None
    as_json : bool
    """
    from tuckergp.spark import load, recommend, session

    by_workers = output is not None and output.endswith(".parquet")
    if not by_workers:
        check_output(None if output is None else Path(output))
    session(master)
    stored = load(path)
    sides, names = stored.model.layout_.sides, stored.model.columns_
    asked = user if users is None else ids_of_file(users, sides[0], names)
    given = {name: file for name, file in files.items() if file is not None}
    among: dict[str, Any] = {name: ids_of_file(file, sides[1], names) for name, file in given.items()}
    if by_workers:
        recommend(stored, output, users=asked, **among, **choice)
        return
    lists = recommend(stored, users=asked, **among, **choice).toPandas().sort_values([KEYS[0], "rank"])
    put_table({name: lists[name].tolist() for name in lists.columns}, Path(output) if output else None, as_json)


def check_stored(refused: Mapping[str, Any]) -> None:
    """Refuse options that need all users on this machine."""
    for option, value in refused.items():
        if value:
            raise InputError(f"{option} is for a model file; leave it out for a folder with users in Parquet.")
