"""Peers beside the experiments of `tuckergp reproduce`: more cells in the same results files, so in the same tables.

    python benchmarks/peers.py california columns ranking_choice ranking -o benchmarks/results --python peer/bin/python

A random forest on California, gradient boosting and ridge regression on many columns (scikit-learn); ALS and BPR on
lists of recommendations (`implicit`), run by the Python that ``--python`` names, and left out where it does not have
it. The settings of `implicit` were chosen on the validation parts, as those of our own contestants.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

Options = dict[str, Any]


def grid(**values: tuple[Any, ...]) -> list[Options]:
    return [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]


GRIDS = {
    "als": grid(factors=(8, 16, 32), regularization=(1.0, 10.0, 100.0), alpha=(1.0, 4.0, 16.0)),
    "bpr": grid(factors=(16, 64), learning_rate=(0.003, 0.01), regularization=(0.003, 0.01, 0.1), iterations=(30, 100)),
}
"""What is compared on validation parts; the defaults of `implicit` where nothing is said."""
CHOSEN = {
    "user": {
        "als": {"factors": 16, "regularization": 10.0, "alpha": 1.0},
        "bpr": {"factors": 16, "learning_rate": 0.003, "regularization": 0.003, "iterations": 100},
    },
    "time": {
        "als": {"factors": 16, "regularization": 10.0, "alpha": 4.0},
        "bpr": {"factors": 64, "learning_rate": 0.01, "regularization": 0.01, "iterations": 100},
    },
}
"""By split and contestant: the best of the grid on the validation part."""

# Regression, with scikit-learn


def california(run: Any, python: str) -> Iterator[tuple[str, Callable[[], Options]]]:
    from tuckergp.paper.california_models import split_of

    yield "forest", partial(forest, split_of(run.load("california"), run.settings["rows"]))


def forest(split: Any) -> Options:
    """A random forest on the two columns."""
    from sklearn.ensemble import RandomForestRegressor

    from tuckergp.evaluation.metrics import rmse

    parts = {"train_rmse": split.train, "test_rmse": split.test}
    X = {name: np.stack([part.X["longitude"], part.X["latitude"]], axis=1) for name, part in parts.items()}
    trees = RandomForestRegressor(n_estimators=300, min_samples_leaf=2, random_state=0)
    trees.fit(X["train_rmse"], split.train.y)
    return {name: round(rmse(part.y, trees.predict(X[name])), 5) for name, part in parts.items()}


def columns(run: Any, python: str) -> Iterator[tuple[str, Callable[[], Options]]]:
    from tuckergp.paper.columns import DATA, compare

    for data, (name, make) in product(DATA, {"gradient boosting": boosting, "ridge": ridge}.items()):
        yield f"{data}/{name}", partial(on_one_thread, compare, data, make, run.settings)


def on_one_thread(work: Callable[..., Options], *given: Any) -> Options:
    """Threads of boosting that wait for each other on a busy machine take a hundred times as long."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return work(*given)


def boosting(n_columns: int) -> dict[str, Callable[[], Any]]:
    """Gradient boosting of trees, stopped on rows of its own: rates and leaves among which to choose."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    fixed = {"max_iter": 1_000, "early_stopping": True, "random_state": 0}
    return {
        f"rate {rate:g}, {leaves} leaves": partial(
            HistGradientBoostingRegressor, learning_rate=rate, max_leaf_nodes=leaves, **fixed
        )
        for rate, leaves in product((0.03, 0.1), (4, 16))
    }


def ridge(n_columns: int) -> dict[str, Callable[[], Any]]:
    from sklearn.linear_model import RidgeCV

    return {"": partial(RidgeCV, np.logspace(-3, 3, 13))}


# Lists of recommendations, with implicit


def ranking(run: Any, python: str) -> Iterator[tuple[str, Callable[[], Options]]]:
    from tuckergp.paper.ranking import SPLITS, contest_of

    for seed, split in product(run.settings["seeds"], SPLITS):
        contest = contest_of(run, split, seed)
        for name, options in CHOSEN[split].items():
            yield f"{split}/{name}/seed {seed}", partial(lists_of, contest, name, options, seed, python)


def ranking_choice(run: Any, python: str) -> Iterator[tuple[str, Callable[[], Options]]]:
    from tuckergp.paper.ranking import validation

    for split in run.settings["splits"]:
        contest = validation(run.load("ml-100k"), split)
        for name, settings in GRIDS.items():
            for options in settings:
                yield f"{split}/{name}/{json.dumps(options)}", partial(lists_of, contest, name, options, 0, python)


def lists_of(contest: Any, name: str, options: Options, seed: int, python: str) -> Options:
    """Figures of a peer's lists; it has nothing to say of users without a training part: popularity for them."""
    from tuckergp.evaluation.metrics.intervals import numbered
    from tuckergp.paper.ranking import lists

    users, items = contest.rated.users, contest.rated.items
    number: dict[Hashable, int] = {}
    user = numbered(contest.train["user_id"].tolist(), number)
    item = numbered(contest.train["item_id"].tolist(), {item: place for place, item in enumerate(items)})
    found = scores_of(python, name, options, user, item, (len(number), len(items)), seed)
    row = np.array([number.get(value, -1) for value in users])
    return lists(contest, np.where(row[:, None] >= 0, found[row], contest.popularity))


def version_of_implicit(python: str) -> str | None:
    """The version that this Python has, or None."""
    ask = "import implicit; print(implicit.__version__)"
    found = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else None


def scores_of(
    python: str, kind: str, options: Options, user: Any, item: Any, shape: tuple[int, int], seed: int
) -> np.ndarray:
    """Learn from clicks, given as numbers of users and items, and score all pairs; shape (n_users, n_items)."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "clicks.npz", Path(folder) / "scores.npy"
        what = json.dumps({"kind": kind, "options": options, "seed": seed})
        np.savez(asked, user=user, item=item, shape=np.array(shape), what=np.array(what))
        subprocess.run([python, __file__, "--work", str(asked), str(answered)], check=True)
        return np.load(answered).astype(np.float64)


def work(asked: str, answered: str) -> None:
    """What the other Python runs, on one thread, so that a seed gives the same scores again."""
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.cpu.bpr import BayesianPersonalizedRanking
    from scipy import sparse

    data = np.load(asked)
    what, (n_users, n_items) = json.loads(str(data["what"])), map(int, data["shape"])
    ones = np.ones(len(data["user"]), dtype=np.float32)
    clicks = sparse.csr_matrix((ones, (data["user"], data["item"])), shape=(n_users, n_items))
    clicks.data[:] = 1.0  # a pair may be clicked more than once
    kind = AlternatingLeastSquares if what["kind"] == "als" else BayesianPersonalizedRanking
    model = kind(**what["options"], num_threads=1, random_state=what["seed"])
    model.fit(clicks, show_progress=False)
    np.save(answered, np.asarray(model.user_factors) @ np.asarray(model.item_factors).T)


PEERS = {"california": california, "columns": columns, "ranking": ranking, "ranking_choice": ranking_choice}


def main() -> None:
    from tuckergp.paper.experiments import EXPERIMENTS
    from tuckergp.paper.run import Run, fill

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(PEERS))
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the results files")
    parser.add_argument("--data", type=Path, help="folder that holds the data")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--python", default=sys.executable, help="a Python that has implicit")
    given = parser.parse_args()
    version = version_of_implicit(given.python) if {"ranking", "ranking_choice"} & set(given.names) else None
    runs = []
    for one in EXPERIMENTS:
        if one.name in given.names and (version or not one.name.startswith("ranking")):
            run = Run(one, given.output, given.data, given.quick)
            run.work = dict(PEERS[one.name](run, given.python))
            run.versions |= {"implicit": version} if one.name.startswith("ranking") else {}
            runs.append(run)
        elif one.name in given.names:
            print(f"{given.python} does not have implicit; {one.name} is left out.", file=sys.stderr)
    fill(runs, say=lambda line: print(line, file=sys.stderr))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
    else:
        main()
