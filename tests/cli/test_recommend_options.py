"""Options of recommend that choose among items and rearrange lists."""

from collections import Counter

import pytest

from tests.cli.command import refuse, run, succeed
from tests.cli.test_model_commands import first_user, rows_of
from tuckergp import load
from tuckergp.data.tables import as_table


@pytest.fixture(scope="module")
def items(ready):
    return rows_of((ready / "items.csv").read_text())


def listed(ready, *options):
    """The rows for one user among all items."""
    command = ("recommend", "model.tgp", "--user", first_user(ready), "-n", "40", "--include-seen")
    return rows_of(succeed(*command, *options, cwd=ready))


def ids(rows):
    return {row["item_id"] for row in rows}


def test_where_takes_values_and_ranges(ready, items):
    options = ("--where", "genres=Comedy", "--where", "genres=Drama", "--where", "year=1980..1999")
    expected = [
        r for r in items if {"Comedy", "Drama"} & set(r["genres"].split("|")) and 1980 <= float(r["year"]) < 2000
    ]
    assert expected
    assert ids(listed(ready, *options)) == ids(expected)
    assert ids(listed(ready, "--where", "year=..1990.5")) == ids(r for r in items if float(r["year"]) <= 1990)
    assert ids(listed(ready, "--where", "year=1990..")) == ids(r for r in items if float(r["year"]) >= 1990)
    title = items[7]["title"]
    assert ids(listed(ready, "--where", f"title={title}")) == ids(r for r in items if r["title"] == title)


def test_a_wrong_where_is_refused_and_an_empty_one_is_announced(ready):
    command = ("recommend", "model.tgp", "--user", first_user(ready), "--where")
    assert "such as genre=Comedy or year=1980..1999, not 'Comedy'" in refuse(*command, "Comedy", cwd=ready)
    assert "columns of the item table are title, year, genres." in refuse(*command, "genre=Comedy", cwd=ready)
    done = run(*command, "year=2500..", cwd=ready)
    assert done.returncode == 0
    assert rows_of(done.stdout) == []
    assert "no item is left by where: 'year' is from" in done.stderr


def test_items_with_few_ratings_are_left_out(ready):
    counts = Counter(row["item_id"] for row in rows_of((ready / "ratings.csv").read_text()))
    found = ids(listed(ready, "--min-ratings", "20"))
    assert found == {item for item, count in counts.items() if count >= 20}
    assert 0 < len(found) < len(counts)


def test_diverse_lists_begin_with_the_best_item(ready):
    command = ("recommend", "model.tgp", "--all", "-n", "3")
    best, diverse = (rows_of(succeed(*command, "--diversity", d, cwd=ready)) for d in ("0", "0.9"))
    assert best == rows_of(succeed(*command, cwd=ready))
    assert [row for row in best if row["rank"] == "1"] == [row for row in diverse if row["rank"] == "1"]
    assert best != diverse


def test_a_group_gets_one_list(ready):
    users = list(dict.fromkeys(row["user_id"] for row in rows_of((ready / "ratings.csv").read_text())))[:2]
    group = ("recommend", "model.tgp", "--user", users[0], "--user", users[1], "-n", "4", "--titles", "title")
    model = load(ready / "model.tgp")
    for how in ("mean", "least"):
        rows = rows_of(succeed(*group, "--together", how, "--where", "year=1980..", cwd=ready))
        options = {"n": 4, "titles": "title", "where": {"year": (1980, None)}, "how": how}
        expected = model.recommend_together([int(user) for user in users], **options)
        assert [row["item_id"] for row in rows] == as_table(expected, "list")["item_id"].tolist()
        assert list(rows[0]) == ["item_id", "title", "score", "std", "rank"]
    assert "takes no --all, --strategy and --diversity" in refuse(
        "recommend", "model.tgp", "--all", "--together", "mean", cwd=ready
    )
