"""fit, predict, recommend and similar on files, as a user would run them."""

import csv
import inspect
import io
import json

import numpy as np
import pytest
from pyarrow import parquet

from tests.cli.command import refuse, run, run_process, succeed
from tests.cli.conftest import SMALL
from tuckergp import TuckerRecommender, load
from tuckergp.cli.options import Settings
from tuckergp.data.tables import as_table


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def first_user(folder):
    return rows_of((folder / "ratings.csv").read_text())[0]["user_id"]


def test_options_have_the_defaults_of_the_library():
    library = {name: one.default for name, one in inspect.signature(TuckerRecommender).parameters.items()}
    model = Settings().recommender()
    ours = model.get_params(deep=False)
    assert ours.pop("random_state") == 0  # the same command gives the same model
    library.pop("random_state")
    assert ours == library


def test_fit_says_what_it_learned_from_and_how(fitted, folder):
    assert fitted["ratings"] == len(rows_of((folder / "ratings.csv").read_text()))
    assert fitted["model"] == "model.tgp"
    assert fitted["draws"] == 20
    used = {(row["table"], row["column"]): row["use"] for row in fitted["attributes"]}
    assert used["users", "age"] == "number"
    assert used["items", "genres"] == "bag"
    assert (folder / "model.tgp").is_file()


def test_fit_leaves_out_columns_and_reads_other_names(folder, tmp_path):
    text = (folder / "ratings.csv").read_text().replace("user_id,item_id,rating", "who,what,stars", 1)
    (tmp_path / "other.csv").write_text(text)
    items = folder / "items.csv"
    (tmp_path / "items.csv").write_text(items.read_text().replace("item_id", "what", 1))
    names = ("--user-column", "who", "--item-column", "what", "--rating-column", "stars")
    excluded = ("--items", "items.csv", "--exclude", "items.title")
    quick = ("--inference", "als", "--rank", "2")
    out = succeed("fit", "other.csv", *excluded, *names, "-o", "m.tgp", *quick, cwd=tmp_path)
    assert out.startswith("Learned from")
    assert "genres" in out
    assert "title" not in out
    listed = rows_of(succeed("recommend", "m.tgp", "--all", "-n", "1", cwd=tmp_path))
    assert list(listed[0]) == ["who", "what", "score", "std", "rank"]


def test_a_process_of_its_own_fits_and_predicts_the_same(ready, tmp_path):
    fit = ("fit", "ratings.csv", "-o", tmp_path / "model.tgp", "--inference", "als", "--rank", "2", "--json")
    for command in (fit, ("predict", "model.tgp", "test.csv", "--std")):
        here, there = run(*command, cwd=ready), run_process(*command, cwd=ready)
        assert (there.returncode, there.stderr) == (here.returncode, here.stderr)
        if command is fit:
            assert {**json.loads(there.stdout), "seconds": 0} == {**json.loads(here.stdout), "seconds": 0}
        else:
            assert there.stdout == here.stdout


def test_predict_adds_columns_to_the_pairs(ready):
    out = succeed("predict", "model.tgp", "test.csv", "--std", cwd=ready)
    rows = rows_of(out)
    given = rows_of((ready / "test.csv").read_text())
    assert [row["item_id"] for row in rows] == [row["item_id"] for row in given]
    mean, std = load(ready / "model.tgp").predict(ready / "test.csv", return_std=True)
    np.testing.assert_allclose([float(row["prediction"]) for row in rows], mean)
    np.testing.assert_allclose([float(row["std"]) for row in rows], std)


def test_predict_writes_parquet_and_json(ready, tmp_path):
    out = succeed(
        *("predict", "model.tgp", "test.csv", "--quantiles", "0.05,0.95", "--json", "-o", tmp_path / "out.parquet"),
        cwd=ready,
    )
    records = json.loads(out)
    table = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert table["prediction"] == [record["prediction"] for record in records]
    assert all(low <= high for low, high in zip(table["quantile_0.05"], table["quantile_0.95"], strict=True))


def test_ids_that_look_like_numbers_are_still_text_ids(tmp_path):
    users = ["01", "02", "x"] * 8
    items = [f"{number:03d}" for number in range(8) for _ in range(3)]
    lines = [f"{user},{item},{1 + j % 5}" for j, (user, item) in enumerate(zip(users, items, strict=True))]
    (tmp_path / "ratings.csv").write_text("\n".join(["user_id,item_id,rating", *lines]) + "\n")
    succeed("fit", "ratings.csv", "-o", "m.tgp", "--inference", "als", "--rank", "1", cwd=tmp_path)
    model = load(tmp_path / "m.tgp")
    (tmp_path / "pairs.csv").write_text("user_id,item_id\n01,001\n02,002\n01,1\n")
    done = run("predict", "m.tgp", "pairs.csv", "--on-unknown", "nan", cwd=tmp_path)
    assert [row["item_id"] for row in rows_of(done.stdout)] == ["001", "002", "1"]
    values = [row["prediction"] for row in rows_of(done.stdout)]
    known = as_table({"user_id": ["01", "02"], "item_id": model.history_.ids[1][1:3]}, "pairs")
    np.testing.assert_allclose([float(value) for value in values[:2]], model.predict(known))
    assert values[2] == ""
    listed = rows_of(succeed("recommend", "m.tgp", "--user", "01", "-n", "2", "--include-seen", cwd=tmp_path))
    assert {row["user_id"] for row in listed} == {"01"}
    done = run("recommend", "m.tgp", "--user", "1", cwd=tmp_path)
    assert done.returncode == 0
    assert "user_id '1' has neither ratings nor attributes here" in done.stderr
    assert "did you mean '01'?" in done.stderr


def test_columns_of_common_names_are_taken_and_named(tmp_path):
    lines = [f"{user},{item},{1 + (user * item) % 5}" for user in range(6) for item in range(8)]
    (tmp_path / "ratings.csv").write_text("\n".join(["userId,movieId,stars", *lines]) + "\n")
    (tmp_path / "movies.csv").write_text("movieId,title\n" + "".join(f"{k},Film {k}\n" for k in range(8)))
    fast = ("--inference", "als", "--rank", "1", "--items", "movies.csv")
    assert "Columns: userId as user_id, movieId as item_id, stars as rating." in succeed(
        "fit", "ratings.csv", "-o", "m.tgp", *fast, cwd=tmp_path
    )
    (tmp_path / "pairs.csv").write_text("user,movieId\n1,2\n")
    assert list(rows_of(succeed("predict", "m.tgp", "pairs.csv", cwd=tmp_path))[0])[:2] == ["user", "movieId"]
    listed = rows_of(
        succeed(
            "recommend", "m.tgp", "--all", "-n", "1", "--include-seen", "--titles", "movies.csv:title", cwd=tmp_path
        )
    )
    assert (listed[0]["userId"], listed[0]["title"]) == ("0", f"Film {listed[0]['movieId']}")
    assert "userId as user_id" in succeed("data", "describe", "ratings.csv", "--items", "movies.csv", cwd=tmp_path)
    (tmp_path / "pairs.csv").write_text("kunde,movieId\n1,2\n")
    assert "Say which it is" in refuse("predict", "m.tgp", "pairs.csv", cwd=tmp_path)


def test_unknown_ids_are_predicted_with_a_note_or_refused(ready, tmp_path):
    (tmp_path / "pairs.csv").write_text("user_id,item_id\n99999,i0001\n")
    done = run("predict", ready / "model.tgp", "pairs.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert "user_id 99999 has neither ratings nor attributes here, and the average is taken" in done.stderr
    line = refuse("predict", ready / "model.tgp", "pairs.csv", "--on-unknown", "raise", cwd=tmp_path)
    assert "line 2" in line


def test_recommend_prints_csv_with_titles_and_without_what_was_seen(ready):
    user = first_user(ready)
    out = succeed("recommend", "model.tgp", "--user", user, "-n", "4", "--titles", "items.csv:title", cwd=ready)
    rows = rows_of(out)
    assert succeed("recommend", "model.tgp", "--user", user, "-n", "4", "--titles", "title", cwd=ready) == out
    assert "no column 'name'" in refuse("recommend", "model.tgp", "--user", user, "--titles", "name", cwd=ready)
    alike = ("similar", "model.tgp", "--item", rows[0]["item_id"], "--titles")
    assert succeed(*alike, "title", cwd=ready) == succeed(*alike, "items.csv:title", cwd=ready)
    assert [row["rank"] for row in rows] == ["1", "2", "3", "4"]
    title = {row["item_id"]: row["title"] for row in rows_of((ready / "items.csv").read_text())}
    assert all(row["title"] == title[row["item_id"]] for row in rows)
    rated = {row["item_id"] for row in rows_of((ready / "ratings.csv").read_text()) if row["user_id"] == user}
    assert not rated & {row["item_id"] for row in rows}


def test_recommend_for_new_users_among_some_items(ready, tmp_path):
    (tmp_path / "new.csv").write_text("user_id,age,sex,occupation\n777,30,F,doctor\n778,60,M,doctor\n")
    (tmp_path / "some.csv").write_text("item_id\ni0001\ni0002\ni0003\n")
    (tmp_path / "never.csv").write_text("item_id\ni0003\n")
    out = succeed(
        *("recommend", ready / "model.tgp", "--users", "new.csv", "-n", "2", "--items", "some.csv"),
        *("--exclude", "never.csv", "--strategy", "ucb", "--json"),
        cwd=tmp_path,
    )
    found = [(record["user_id"], record["item_id"]) for record in json.loads(out)]
    assert {user for user, _ in found} == {777, 778}
    assert {item for _, item in found} == {"i0001", "i0002"}


def test_similar_items_and_users(ready, tmp_path):
    succeed("similar", "model.tgp", "--item", "i0001", "-n", "3", "-o", tmp_path / "alike.csv", cwd=ready)
    rows = rows_of((tmp_path / "alike.csv").read_text())
    assert len(rows) == 3
    assert "i0001" not in [row["item_id"] for row in rows]
    user = first_user(ready)
    records = json.loads(succeed("similar", "model.tgp", "--user", user, "-n", "2", "--json", cwd=ready))
    assert all(isinstance(record["user_id"], int) for record in records)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("similar", "model.tgp", "--item", "I0001"), "The model knows no item 'I0001'. Did you mean 'i0001'?"),
        (("recommend", "damaged.tgp", "--all"), "damaged.tgp is damaged or no tuckergp model"),
        (("predict", "nowhere.tgp", "test.csv"), "There is no model file nowhere.tgp"),
    ],
)
def test_what_the_model_cannot_answer_is_one_line(ready, arguments, message):
    damaged = ready / "damaged.tgp"
    if not damaged.exists():
        damaged.write_bytes((ready / "model.tgp").read_bytes()[:5000])
    assert message in refuse(*arguments, cwd=ready)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "There is no file ratings.csv."),
        ("", "ratings.csv is empty; its first line must name the columns."),
        ("user_id,item_id,rating\n", "ratings.csv is empty; there is nothing to learn from."),
        (
            "kunde,item_id,rating\n1,2,3\n",
            "its columns are kunde, item_id, rating. Say which it is: columns={'user_id': 'kunde'}, or --user-column",
        ),
        ("user_id,item_id,rating\n1,2,3\n1,2\n", "ratings.csv line 3 has 2 values"),
        ("user_id,item_id,rating\n1,2,3\n1,3,good\n", "line 3 holds 'good'"),
        ("user_id,item_id,rating\n1,2,3\n,3,4\n", "ratings.csv column 'user_id' is missing at line 3"),
    ],
)
def test_ratings_that_cannot_be_learned_from_are_one_line(tmp_path, content, message):
    if content is not None:
        (tmp_path / "ratings.csv").write_text(content)
    assert message in refuse("fit", "ratings.csv", "-o", "model.tgp", *SMALL, cwd=tmp_path)
    assert not (tmp_path / "model.tgp").exists()


def test_where_to_write_is_checked_first(folder):
    assert "There is no folder" in refuse("fit", "ratings.csv", "-o", "no/such/model.tgp", cwd=folder)
    assert "must end in .csv" in refuse("predict", "model.tgp", "test.csv", "-o", "out.xls", cwd=folder)


def test_recommend_takes_new_ratings_into_account(ready, tmp_path):
    (tmp_path / "new.csv").write_text("user_id,item_id,rating\n900,i0001,5\n900,i0002,1\n")
    command = ("recommend", ready / "model.tgp", "--ratings", "new.csv", "-n", "38", "--json")
    found = json.loads(succeed(*command, cwd=tmp_path))
    assert {record["user_id"] for record in found} == {900}
    assert not {"i0001", "i0002"} & {record["item_id"] for record in found}


def test_explain_adds_up_to_the_prediction(ready, tmp_path):
    user = first_user(ready)
    command = ("explain", "model.tgp", "--user", user, "--item", "i0001", "--json")
    found = json.loads(succeed(*command, "-o", tmp_path / "parts.csv", cwd=ready))
    parts = [float(row["contribution"]) for row in rows_of((tmp_path / "parts.csv").read_text())]
    pair = {"user_id": [int(user)], "item_id": ["i0001"]}
    np.testing.assert_allclose(sum(parts), load(ready / "model.tgp").predict(pair, clip=False)[0])
    assert found["item"] == "i0001"
    assert "age" in succeed("explain", "model.tgp", cwd=ready)


def test_a_model_of_both_explains_and_lists_by_value(ready, tmp_path):
    fit = ("fit", ready / "ratings.csv", "-o", "both.tgp", "--rank", "2", "--draws", "5", "--warmup", "5")
    succeed(*fit, "--objective", "value", cwd=tmp_path)
    command = ("explain", "both.tgp", "--user", first_user(ready), "--item", "i0001")
    both = json.loads(succeed(*command, "--json", "-o", "parts.csv", cwd=tmp_path))
    parts = rows_of((tmp_path / "parts.csv").read_text())
    for explains, total in (("rating", both["total"]), ("probability of a choice", both["choice"]["total"])):
        own = [float(row["contribution"]) for row in parts if row["explains"] == explains]
        np.testing.assert_allclose(sum(own), total)
    assert both["choice"]["words"] in succeed(*command, "--by", "value", cwd=tmp_path)
    assert json.loads(succeed(*command, "--by", "rating", "--json", cwd=tmp_path))["choice"] is None
    group = ("recommend", "both.tgp", "--user", first_user(ready), "--together", "least", "-n", "2", "--json")
    for by, columns in {"value": {"rating", "choice"}, "rating": set()}.items():
        found = json.loads(succeed(*group, "--by", by, cwd=tmp_path))
        assert set(found[0]) == {"item_id", "score", "std", "rank"} | columns


def test_titles_are_shown_for_ratings_without_names_of_columns(tmp_path):
    (tmp_path / "r.dat").write_text("1::10::4\n1::20::3\n2::10::1\n2::30::5\n")
    (tmp_path / "movies.csv").write_text("movieId,title\n10,Heat\n20,Big\n30,Up\n")
    succeed("fit", "r.dat", "-o", "m.tgp", "--rank", "1", "--inference", "als", cwd=tmp_path)
    out = succeed("recommend", "m.tgp", "--user", "1", "--titles", "movies.csv:title", cwd=tmp_path)
    assert [(row["user_id"], row["item_id"], row["title"]) for row in rows_of(out)] == [("1", "30", "Up")]
