"""Tables of the lists of recommendations: names of contestants and splits, and rows made from finished cells."""

from __future__ import annotations

from itertools import product

import numpy as np

from tuckergp.paper.experiment import Cells, Rows
from tuckergp.paper.tables import median, starting, with_sd

__all__ = [
    "CONTESTANTS",
    "LIKED_ALONE",
    "PEERS",
    "SPLITS",
    "by_split_table",
    "choice_table",
    "decision_table",
    "parts_table",
    "tries_table",
    "with_new_users",
]

SPLITS = {"user": "a fifth of every user's ratings, at random", "time": "the last fifth of all ratings"}
CONTESTANTS = {
    "popularity": "popularity",
    "als": "ALS of `implicit`",
    "bpr": "BPR of `implicit`",
    "ials": "ALS with a penalty scaled by frequency",
    "ease": "EASE",
    "nearest_items": "nearest items",
    "als_liked": "ALS of `implicit`, 4 and 5 alone",
    "bpr_liked": "BPR of `implicit`, 4 and 5 alone",
    "ials_liked": "ALS with a penalty scaled by frequency, 4 and 5 alone",
    "ease_liked": "EASE, 4 and 5 alone",
    "nearest_items_liked": "nearest items, 4 and 5 alone",
    "lightfm": "LightFM (WARP, attributes)",
    "clicks": '`TuckerRecommender(likelihood="bernoulli")` on clicks',
    "pairs": "`TuckerRecommender(rank=32)` on clicks",
    "pairs_activity": "`TuckerRecommender(rank=32, likelihood=Clicks(activity=0.25))` on clicks",
    "pairs_alone": "`TuckerRecommender(rank=32, side_information=False)` on clicks",
    "pairs_liked": "`TuckerRecommender(rank=32)` on clicks, 4 and 5 alone",
    "pairs_alone_liked": "`TuckerRecommender(rank=32, side_information=False)` on clicks, 4 and 5 alone",
    "pairs_als": '`TuckerRecommender(rank=32, inference="als")` on clicks',
    "pairs_als_alone": '`TuckerRecommender(rank=32, inference="als", side_information=False)` on clicks',
    "mean": "mean of all ratings",
    "biases": "biases of users and items",
    "plain": "`TuckerRecommender(time=None, implicit=False)` on ratings",
    "none": "`TuckerRecommender(time=None)` on ratings",
    "week": '`TuckerRecommender(time="week")` on ratings',
    "value": '`TuckerRecommender(time=None, objective="value")`, lists by value',
    "auto": '`TuckerRecommender()` on ratings, which takes `time="auto"`',
}
WHOSE = (("users", "ndcg"), ("known", "ndcg_known"))
LIKED_ALONE = "_liked"
"""How names of contestants end that learn from the liked items of the training part alone."""
_CLICKS_PEERS = ("nearest_items", "ease", "als", "ials", "bpr")
PEERS = (*_CLICKS_PEERS, *(f"{name}{LIKED_ALONE}" for name in _CLICKS_PEERS), "lightfm")


def figures(cells: Cells, split: str, name: str, what: str) -> list[float]:
    """A figure for each seed; ``auto`` has the figures of the model it decided for, whose draws are the same."""
    names = [key for key in cells if key.startswith(f"{split}/{name}/")]
    if name == "auto":
        names = [key.replace("/auto/", f"/{cells[key]['time']}/") for key in names]
    return [cells[key][what] for key in names if what in cells.get(key, {})]


def by_split_table(columns: list[tuple[str, str, str]], names: tuple[str, ...], cells: Cells) -> Rows:
    """A table with one row per model; a column is given by split, figure and title."""
    rows = [["", *(title for _, _, title in columns)]]
    for name in names:
        values = [(what, figures(cells, split, name, what)) for split, what, _ in columns]
        if any(scores for _, scores in values):
            words = [f"{np.median(v):.0f}" if what == "seconds" and v else with_sd(v) for what, v in values]
            rows.append([CONTESTANTS[name], *words])
    return rows


def with_new_users(cells: Cells) -> Cells:
    """The cells with NDCG@10 of new users, ``ndcg_new``, which that of all and that of known ones tell together."""
    found = {}
    for key, cell in cells.items():
        split, _, seed = key.split("/")
        counts = cells.get(f"{split}/counts/{seed}", {})
        new = counts.get("ranked_users", 0) - counts.get("ranked_known", 0)
        if new and "ndcg_known" in cell:
            of_all, of_known = (counts[f"ranked_{of}"] * cell[name] for of, name in WHOSE)
            cell = {**cell, "ndcg_new": (of_all - of_known) / new}
        found[key] = cell
    return found


def parts_table(cells: Cells) -> Rows:
    """Sizes of the parts of the first seed, and how many test users and items are new."""
    rows = [["split", "training ratings", "test ratings", "test users (new)", "test items (new)"]]
    rows[0].append("users with lists (known)")
    for split, title in SPLITS.items():
        for n in starting(cells, f"{split}/counts/")[:1]:
            pairs = [("test_users", "new_users"), ("test_items", "new_items"), ("ranked_users", "ranked_known")]
            sizes = [f"{n['train']:,}", f"{n['test']:,}", *(f"{n[a]:,} ({n[b]:,})" for a, b in pairs)]
            rows.append([title, *sizes])
    return rows


def decision_table(cells: Cells) -> Rows:
    """The decisions of ``time="auto"`` by seed, the gains of weeks, and the seconds of deciding and of a fit."""
    rows = [["split", "decides", "RMSE with weeks - without, seed by seed", "seconds to decide"]]
    rows[0].append("seconds for a fit with weeks")
    for split, title in SPLITS.items():
        auto, week, none = (starting(cells, f"{split}/{name}/") for name in ("auto", "week", "none"))
        if auto and week and none:
            gains = ", ".join(f"{a['rmse'] - b['rmse']:+.4f}" for a, b in zip(week, none, strict=False))
            decided = ", ".join("weeks" if cell["time"] == "week" else "no weeks" for cell in auto)
            rows.append([title, decided, gains, median(auto, "seconds"), median(week, "seconds")])
    return rows


def choice_table(cells: Cells) -> Rows:
    """Validation NDCG@10: the number of settings compared, the best one, which was chosen, the worst and the median."""
    rows = [["split", "contestant", "compared", "chosen", "its NDCG@10", "the least, the median"]]
    for split, name in product(SPLITS, (*PEERS, "clicks")):
        start = f"{split}/{name}/"
        scores = {key.removeprefix(start): cell["ndcg"] for key, cell in cells.items() if key.startswith(start)}
        if scores:
            best = max(scores, key=scores.__getitem__)
            rest = f"{min(scores.values()):.4f}, {np.median(list(scores.values())):.4f}"
            words = [SPLITS[split], CONTESTANTS[name], str(len(scores)), f"`{best}`", f"{scores[best]:.4f}", rest]
            rows.append(words)
    return rows


def tries_table(cells: Cells) -> Rows:
    """Validation NDCG@10 of each setting for clicks, on both splits, best first."""
    tried = dict.fromkeys(key.split("/", 2)[2] for key in cells if key.split("/")[1] == "clicks")
    by_options = {name: [cells.get(f"{split}/clicks/{name}") for split in SPLITS] for name in tried}
    rows = [["settings", *SPLITS.values(), "seconds for a fit"]]
    for name, both in sorted(by_options.items(), key=lambda pair: -(pair[1][0] or {"ndcg": 0.0})["ndcg"]):
        seconds = next(cell["seconds"] for cell in both if cell is not None)
        rows.append([f"`{name}`", *("" if cell is None else f"{cell['ndcg']:.4f}" for cell in both), f"{seconds:.0f}"])
    return rows
