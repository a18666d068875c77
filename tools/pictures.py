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


def fitted(films: MovieLens) -> TuckerRecommender:
    """The model of README's example."""
    return TuckerRecommender(rank=8, time=None, random_state=0).fit(films.ratings, films.users, films.items)


def draw(recommender: TuckerRecommender, films: MovieLens, path: Path) -> None:
    """Draw the list with ratings and choices on the left, the two explanations of its first film on the right."""
    top = recommender.recommend(USER, n=10, titles="title")
    pairs = {"user_id": [USER] * len(top), "item_id": top["item_id"]}
    rating, ends = recommender.predict(pairs, quantiles=[0.05, 0.95], include_noise=False)
    places = [["list", "liked"], ["list", "chosen"]]
    figure, panels = plt.subplot_mosaic(places, figsize=(12.5, 6), layout="constrained")
    left = panels["list"]
    rows = np.arange(len(top))
    left.barh(rows, rating, xerr=np.abs(ends.T - rating), color="tab:blue", alpha=0.6, capsize=3)
    for row, choice in zip(rows, top["choice"], strict=True):
        left.text(5.65, row, f"{choice:.0%}", va="center", ha="right")
    left.text(5.65, -0.7, "chosen", va="center", ha="right")
    left.set(yticks=rows, yticklabels=[shorten(title, 34, placeholder=" ...") for title in top["title"]])
    left.set(xlim=(2.9, 5.75), xlabel="expected rating, with 90 % credible interval")
    about = {name: films.users[name][films.users["user_id"] == USER][0] for name in ("age", "occupation")}
    left.set_title(f"Recommended to user {USER} ({about['occupation']}, {about['age']})", loc="left")
    left.invert_yaxis()
    recommender.explain(USER, top["item_id"][0]).plot(ax=(panels["liked"], panels["chosen"]))
    for why in ("liked", "chosen"):
        panels[why].set_title("")
        panels[why].set_title(f"Why {top['title'][0]} would be {why}", loc="left", fontsize="medium")
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    movielens = load_movielens_100k()
    draw(fitted(movielens), movielens, Path(sys.argv[1]))
