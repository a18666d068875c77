"""A folder with tables as files, and one model fitted by the command for all tests."""

import csv
import json

import pytest

from tests.cli.command import succeed
from tuckergp.data.datasets import make_ratings

SMALL = ("--rank", "3", "--draws", "20", "--warmup", "10", "--time", "none")


def write_csv(path, columns):
    """A CSV file, lists with bars between."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(["|".join(cell) if isinstance(cell, list | tuple) else cell for cell in row])


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """ratings.csv, test.csv, users.csv, items.csv; users are numbers, items are text."""
    here = tmp_path_factory.mktemp("tables")
    made = make_ratings(n_users=50, n_items=40, n_ratings=900, random_state=0)
    for name in ("train", "test", "users", "items"):
        columns = {key: values.tolist() for key, values in getattr(made, name).columns.items()}
        if "user_id" in columns:
            columns["user_id"] = [int(value.removeprefix("u")) for value in columns["user_id"]]
        write_csv(here / f"{'ratings' if name == 'train' else name}.csv", columns)
    return here


@pytest.fixture(scope="session")
def fitted(folder):
    """What fit prints as JSON; model.tgp is in the folder."""
    tables = ("ratings.csv", "--users", "users.csv", "--items", "items.csv")
    return json.loads(succeed("fit", *tables, "-o", "model.tgp", "--json", *SMALL, cwd=folder))


@pytest.fixture(scope="session")
def ready(folder, fitted):
    """The folder with the model in it."""
    return folder
