"""`tuckergp demo`: the benefit of side information, on synthetic ratings or on MovieLens 100K."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table as RichTable

from tuckergp.cli.tables import to_json
from tuckergp.data.datasets import load_movielens_100k, make_ratings
from tuckergp.data.splits import holdout
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import NotConvergedWarning, UnknownIdWarning
from tuckergp.evaluation.metrics import rmse
from tuckergp.files import check_writable, write_text
from tuckergp.recommender import TuckerRecommender

N_RECOMMENDED = 5
SYNTHETIC = "synthetic ratings"
RANK, DRAWS = 8, 200  # enough to show the point in seconds


@dataclass(frozen=True)
class Data:
    """Training and test ratings, attributes of users and items, and the best possible prediction if it is known."""

    name: str
    train: Table
    test: Table
    users: Table
    items: Table
    best: npt.NDArray[np.float64] | None


def run(*, data: Path | None, download: bool, seed: int, as_json: bool, output: Path | None) -> None:
    """Make or load ratings, train twice, and show errors and recommendations."""
    if output is not None:
        check_writable(output)
    ratings = movielens(data, download, seed) if data is not None or download else synthetic(seed)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", NotConvergedWarning)
        # what people choose is learned for the list alone, which the other model makes
        without = TuckerRecommender(side_information=False, objective="rating", **settings(seed)).fit(ratings.train)
        model = TuckerRecommender(**settings(seed)).fit(ratings.train, ratings.users, ratings.items)
        warnings.simplefilter("ignore", UnknownIdWarning)  # newcomers are what the demo is about
        plain, informed = (errors(ratings, each.predict(ratings.test)) for each in (without, model))
    result = {
        "seed": seed,
        "data": {
            "name": ratings.name,
            "train_ratings": len(ratings.train),
            "test_ratings": len(ratings.test),
            "users": len(ratings.users),
            "items": len(ratings.items),
        },
        "noise_floor": None if ratings.best is None else errors(ratings, ratings.best),
        "global_mean": errors(ratings, np.full(len(ratings.test), ratings.train["rating"].mean())),
        "without_side_information": plain,
        "with_side_information": informed,
        "recommendations": recommendations(model, ratings),
        "notes": [str(note.message) for note in notes],
    }
    text = to_json(result)
    if output is not None:
        write_text(output, text + "\n")
    if as_json:
        print(text)
    else:
        show(result)


def settings(seed: int) -> dict[str, Any]:
    """The settings of both models; without co-rating and drift, so that the difference is due to the attributes."""
    return {"rank": RANK, "draws": DRAWS, "implicit": False, "time": None, "random_state": seed}


def synthetic(seed: int) -> Data:
    """Synthetic ratings, with a known noise floor."""
    made = make_ratings(random_state=seed)
    return Data(SYNTHETIC, made.train, made.test, made.users, made.items, made.expected)


def movielens(directory: Path | None, download: bool, seed: int) -> Data:
    """MovieLens 100K with 15 % of the ratings, and 5 % of the users and items with all of theirs, held out."""
    loaded = load_movielens_100k(directory, download=download)
    train, test = holdout(loaded.ratings, test_size=0.15, new_users=0.05, new_items=0.05, seed=seed)
    return Data("MovieLens 100K", train, test, loaded.users, loaded.items, None)


def errors(data: Data, prediction: npt.NDArray[np.float64]) -> dict[str, float]:
    """Test RMSE of all ratings, of those by known users, and of those by new users."""
    trained_on = set(data.train["user_id"].tolist())
    known = np.array([user in trained_on for user in data.test["user_id"].tolist()])
    y = data.test["rating"]
    parts = {"all": np.ones(len(y), dtype=bool), "known": known, "new": ~known}
    return {name: rmse(y[part], prediction[part]) for name, part in parts.items()}


def recommendations(model: TuckerRecommender, data: Data) -> dict[str, Any]:
    """The items for the most active user of the test part, by what people choose and like, with predicted ratings."""
    ids, counts = np.unique(data.test["user_id"], return_counts=True)
    person = ids[np.argmax(counts)]
    best = as_table(model.recommend([person], n=N_RECOMMENDED), "recommendations")
    ratings = best.columns.get("rating", best["score"])  # without a model of choices the score is the rating
    place = {item: k for k, item in enumerate(data.items["item_id"].tolist())}
    row = int(np.flatnonzero(data.users["user_id"] == person)[0])
    facts = {name: values[row] for name, values in data.users.columns.items()}
    return {
        "user": facts,
        "items": [
            {
                "item_id": item,
                "title": str(data.items["title"][place[item]]),
                "genres": [str(genre) for genre in data.items["genres"][place[item]]],
                "predicted_rating": float(rating),
            }
            for item, rating in zip(best["item_id"].tolist(), ratings, strict=True)
        ],
    }


def show(result: dict[str, Any]) -> None:
    """Print the result as text."""
    console = Console()
    data = result["data"]
    console.print(
        f"\n[bold]{data['name']}[/bold]: {data['train_ratings']:,} ratings of {data['items']:,} items by "
        f"{data['users']:,} people to learn from, {data['test_ratings']:,} to test on\n"
    )
    table = RichTable("test RMSE", title_justify="left")
    for column in ("all", "known people", "new people"):
        table.add_column(column, justify="right")
    rows = {
        "noise_floor": "noise floor: the best any model can do",
        "global_mean": "global mean",
        "without_side_information": "without side information",
        "with_side_information": "[bold]with side information[/bold]",
    }
    for key, label in rows.items():
        figures = result[key]
        cells = ["unknown"] * 3 if figures is None else [f"{figures[part]:.4f}" for part in ("all", "known", "new")]
        table.add_row(label, *cells)
    console.print(table)
    chosen = result["recommendations"]
    facts = ", ".join(f"{name} {value}" for name, value in chosen["user"].items())
    listing = RichTable("", "title", "genres", title=f"\nFor {facts}", title_justify="left")
    listing.add_column("predicted rating", justify="right")
    for place, item in enumerate(chosen["items"], start=1):
        listing.add_row(str(place), item["title"], ", ".join(item["genres"]), f"{item['predicted_rating']:.2f}")
    console.print(listing)
    for note in result["notes"]:
        console.print(f"[dim]{note}[/dim]")
    if result["data"]["name"] == SYNTHETIC:
        seed = f" --seed {result['seed']}" if result["seed"] else ""
        console.print(
            f"\nSee this model in a browser: {program()} explore --demo{seed}", highlight=False, soft_wrap=True
        )


def program() -> str:
    """What to type to run this command again."""
    typed = sys.argv[0]
    return typed if Path(typed).name == "tuckergp" and os.sep in typed and not Path(typed).is_absolute() else "tuckergp"
