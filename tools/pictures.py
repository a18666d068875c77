"""Draw the picture of README and of the home page: one user's list on MovieLens 100K, and why its first film is there.

`python tools/pictures.py docs/figures/movielens.png` fits the model of README's example and draws it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import shorten

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from tuckergp.datasets import MovieLens, load_movielens_100k

from tuckergp import TuckerRecommender

USER = 1
NORMAL_90 = 1.645  # standard deviations on either side that hold 90 % of a normal distribution


def fitted(films: MovieLens) -> TuckerRecommender:
    """The model of README's example."""
    return TuckerRecommender(rank=8, time=None, random_state=0).fit(films.ratings, films.users, films.items)


def draw(recommender: TuckerRecommender, films: MovieLens, path: Path) -> None:
    """Draw the list with intervals on the left, the explanation on the right."""
    top = recommender.recommend(USER, n=8, titles="title")
    about = {name: films.users[name][films.users["user_id"] == USER][0] for name in ("age", "occupation")}
    figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 4), layout="constrained")
    rows = np.arange(len(top["title"]))
    left.barh(rows, top["score"], xerr=NORMAL_90 * np.asarray(top["std"]), color="tab:blue", alpha=0.6, capsize=3)
    left.set(yticks=rows, yticklabels=[shorten(title, 34, placeholder=" ...") for title in top["title"]])
    left.set(xlim=(3.5, 5.75), xlabel="expected rating, with 90 % credible interval")
    left.set_title(f"Recommended to user {USER} ({about['occupation']}, {about['age']})", loc="left")
    left.invert_yaxis()
    recommender.explain(USER, top["item_id"][0]).plot(ax=right)
    right.set_title("")
    right.set_title(f"Why {top['title'][0]}", loc="left")
    right.set(xlim=(2.9, 5.75), xlabel="expected rating")
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    movielens = load_movielens_100k()
    draw(fitted(movielens), movielens, Path(sys.argv[1]))
