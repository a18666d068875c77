r"""Peers beside the experiments of `tuckergp reproduce`: more cells in the same results files, so in the same tables.

    python benchmarks/peers.py california_choice california columns -o benchmarks/results
    python benchmarks/peers.py movielens_gibbs_choice movielens_gibbs ranking_choice ranking \
        -o benchmarks/results --python peer/bin/python

Random forests on California, gradient boosting and ridge regression on many columns (scikit-learn); factorisation
machines on ratings (myFM) and ALS and BPR on lists of recommendations (`implicit`), and a hybrid (LightFM), run by the
Python that ``--python`` names, and left out where it does not have them; implicit ALS with a penalty scaled by
frequency (`ials.py`). Settings of forests, machines and models of lists were chosen on the validation parts, as those
of our own contestants.
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

import machines
import numpy as np

Options = dict[str, Any]


def grid(**values: tuple[Any, ...]) -> list[Options]:
    return [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]


GRIDS = {
    "als": grid(factors=(8, 16, 32), regularization=(1.0, 10.0, 100.0), alpha=(0.5, 1.0, 2.0, 4.0, 16.0)),
    "bpr": [
        *grid(factors=(16, 64), learning_rate=(0.003, 0.01), regularization=(0.003, 0.01, 0.1), iterations=(30, 100)),
        *grid(factors=(8,), learning_rate=(0.001, 0.003), regularization=(0.001, 0.003), iterations=(100, 300)),
        *grid(factors=(16, 32), learning_rate=(0.001, 0.003), regularization=(0.001,), iterations=(100, 300)),
    ],
    "ials": grid(factors=(16, 32, 64), unobserved=(0.1, 0.3, 1.0), regularization=(0.003, 0.01, 0.02, 0.04)),
    "lightfm": [
        *grid(
            no_components=(8, 16, 32),
            learning_rate=(0.005, 0.01, 0.02),
            epochs=(30, 60),
            alpha=(0.0, 1e-4),
            shares=(False,),
        ),
        *grid(no_components=(16, 32), learning_rate=(0.01, 0.02), epochs=(30,), alpha=(0.0,), shares=(True,)),
    ],
}
"""What is compared on validation parts; the defaults of `implicit` and LightFM where nothing is said."""
SCALED_CHOSEN: dict[str, dict[str, Options]] = {
    "user": {
        "ials": {"factors": 32, "unobserved": 0.3, "regularization": 0.02},
        "ials_liked": {"factors": 32, "unobserved": 0.3, "regularization": 0.01},
    },
    "time": {"ials": {"factors": 16, "unobserved": 1.0, "regularization": 0.003}},
}
CHOSEN: dict[str, dict[str, Options]] = {
    "user": {
        "als": {"factors": 16, "regularization": 10.0, "alpha": 1.0},
        "bpr": {"factors": 16, "learning_rate": 0.003, "regularization": 0.001, "iterations": 100},
        "als_liked": {"factors": 16, "regularization": 10.0, "alpha": 4.0},
        "bpr_liked": {"factors": 8, "learning_rate": 0.003, "regularization": 0.001, "iterations": 300},
    },
    "time": {
        "als": {"factors": 16, "regularization": 1.0, "alpha": 2.0},
        "bpr": {"factors": 8, "learning_rate": 0.003, "regularization": 0.001, "iterations": 300},
    },
}
HYBRID_CHOSEN: dict[str, dict[str, Options]] = {
    "user": {
        "lightfm": {"no_components": 32, "learning_rate": 0.02, "epochs": 60, "alpha": 0.0001, "shares": False},
    },
}
"""By split and contestant, for those of our own Python, of `implicit` and of LightFM: the best of the grid on the
validation part."""

FORESTS = [
    *grid(turns=(1, 2, 4), min_samples_leaf=(1, 2, 4), max_features=(0.25, 0.5, 1.0)),
    *grid(turns=(8,), min_samples_leaf=(1, 2, 4), max_features=(0.125, 0.25, 0.5)),
    *grid(turns=(16,), min_samples_leaf=(2,), max_features=(0.0625, 0.125, 0.25)),
]
"""Random forests that are compared on the held-out training rows of California, where our models are."""
CHOSEN_FOREST = {"turns": 16, "min_samples_leaf": 2, "max_features": 0.0625}
"""The best of them there."""

# Regression, with scikit-learn


def california(run: Any, python: str) -> Iterator[tuple[str, Callable[[], Options]]]:
    from tuckergp.paper.california_models import split_of

    split = split_of(run.load("california"), run.settings["rows"])
    for seed in run.settings["seeds"]:
        yield f"forest/seed {seed}", partial(forest, split, seed, **CHOSEN_FOREST)


def california_choice(run: Any, python: str) -> Iterator[tuple[str, Callable[[], Options]]]:
    from tuckergp.paper.california import held_out
    from tuckergp.paper.california_models import split_of

    split = held_out(split_of(run.load("california"), run.settings["rows"]))
    for options in FORESTS[: 1 if run.identity["quick"] else None]:
        yield f"forest/{json.dumps(options)}", partial(forest, split, 0, **options)


def forest(split: Any, seed: int, turns: int, **options: Any) -> Options:
    """A random forest on the coordinates along the axes of our models: each turn of them gives two more columns."""
    from sklearn.ensemble import RandomForestRegressor

    from tuckergp.evaluation.metrics import rmse
    from tuckergp.paper.california_models import turn

    parts = {"train_rmse": split.train, "test_rmse": split.test}
    angles = np.arange(turns) * (90.0 / turns)
    X = {
        name: np.stack([column for angle in angles for column in turn(part.X, angle).values()], axis=1)
        for name, part in parts.items()
    }
    trees = RandomForestRegressor(n_estimators=300, random_state=seed, **options)
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


# Models of ratings, with myFM


def movielens_gibbs(run: Any, python: str) -> Iterator[tuple[str, Callable[[], Options]]]:
    from tuckergp.paper.movielens_gibbs import SETTINGS

    movielens = run.load("ml-100k")
    for number, (key, rank) in product(run.settings["splits"], machines.CHOSEN.items()):
        lengths = {name: SETTINGS[key].options[name] for name in ("draws", "warmup")}
        given = (movielens, key, *movielens.split(number), 0, rank, python)
        yield f"myFM {key}/u{number}/seed 0", partial(machines.figures, *given, **lengths)


def movielens_gibbs_choice(run: Any, python: str) -> Iterator[tuple[str, Callable[[], Options]]]:
    from tuckergp.paper.movielens_data import carve
    from tuckergp.paper.movielens_gibbs import SETTINGS

    movielens = run.load("ml-100k")
    for number, (key, rank) in product(run.settings["splits"], product(machines.CHOSEN, machines.RANKS)):
        base, _ = movielens.split(number)
        parts = (base.take(rows) for rows in carve(len(base), run.settings["seed"], number))
        lengths = {name: SETTINGS[key].options[name] for name in ("draws", "warmup")}
        given = (movielens, key, *parts, 0, rank, python)
        yield f"myFM {key}/rank {rank}/u{number}", partial(machines.figures, *given, **lengths)


# Lists of recommendations, with implicit, LightFM and our own implicit ALS


def ranking(run: Any, python: str, chosen: dict[str, dict[str, Options]] = CHOSEN) -> Iterator[tuple[str, Any]]:
    from tuckergp.paper.ranking import SPLITS, contest_of

    for seed, split in product(run.settings["seeds"], SPLITS):
        contest = contest_of(run, split, seed)
        for name, options in chosen.get(split, {}).items():
            yield f"{split}/{name}/seed {seed}", partial(lists_of, contest, name, options, seed, python)


def ranking_choice(run: Any, python: str, chosen: dict[str, dict[str, Options]] = CHOSEN) -> Iterator[tuple[str, Any]]:
    from tuckergp.paper.ranking import LIKED_ALONE, validation

    for split in run.settings["splits"]:
        contest = validation(run.load("ml-100k"), split)
        for name in chosen.get(split, {}):
            for options in GRIDS[name.removesuffix(LIKED_ALONE)][: 1 if run.identity["quick"] else None]:
                yield f"{split}/{name}/{json.dumps(options)}", partial(lists_of, contest, name, options, 0, python)


def lists_of(contest: Any, name: str, options: Options, seed: int, python: str) -> Options:
    """Figures of a peer's lists; it has nothing to say of users without a training part: popularity for them."""
    from tuckergp.evaluation.metrics.intervals import numbered
    from tuckergp.paper.ranking import LIKED_ALONE, lists

    users, items, train = contest.rated.users, contest.rated.items, contest.learned(name)
    number: dict[Hashable, int] = {}
    user = numbered(train["user_id"].tolist(), number)
    item = numbered(train["item_id"].tolist(), {item: place for place, item in enumerate(items)})
    shape = (len(number), len(items))
    kind = name.removesuffix(LIKED_ALONE)
    if kind == "ials":
        found = scaled_scores(options, user, item, shape, seed)
    elif kind == "lightfm":
        found = hybrid_scores(contest.movielens, options, user, item, list(number), items, seed, python)
    else:
        found = scores_of(python, kind, options, user, item, shape, seed)
    row = np.array([number.get(value, -1) for value in users])
    return lists(contest, np.where(row[:, None] >= 0, found[row], contest.popularity))


def hybrid_scores(
    movielens: Any, options: Options, user: Any, item: Any, users: list[Any], items: list[Any], seed: int, python: str
) -> Any:
    """Scores of all pairs by LightFM with age group, sex, occupation, genres and the decade of release."""
    import hybrids
    from scipy import sparse

    of_user, of_item = hybrids.words_of(movielens.users, movielens.items)
    attributes = [hybrids.flags([table[key] for key in ids]) for table, ids in ((of_user, users), (of_item, items))]
    clicks = sparse.csr_array((np.ones(len(user)), (user, item)), shape=(len(users), len(items)))
    return hybrids.scores_of(python, options, clicks, attributes, seed)


def scaled_scores(options: Options, user: Any, item: Any, shape: tuple[int, int], seed: int, weight: Any = 1.0) -> Any:
    """Scores of all pairs by implicit ALS with a penalty scaled by frequency, (n_users, n_items)."""
    from ials import factorised
    from scipy import sparse

    clicks = sparse.csr_array((np.broadcast_to(weight, len(user)), (user, item)), shape=shape)
    users, items = factorised(clicks, **options, seed=seed)
    return users @ items.T


def version_of(package: str, python: str) -> str | None:
    """The version that this Python has, or None."""
    ask = f"from importlib.metadata import version; print(version({package!r}))"
    found = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return found.stdout.strip() or None if found.returncode == 0 else None


def scores_of(
    python: str,
    kind: str,
    options: Options,
    user: Any,
    item: Any,
    shape: tuple[int, int],
    seed: int,
    weight: Any = None,
) -> np.ndarray:
    """Learn from clicks, given as numbers of users and items, and score all pairs; shape (n_users, n_items).

    ``weight`` has the confidence of each click where it is not 1; then no pair is clicked twice.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "clicks.npz", Path(folder) / "scores.npy"
        what = json.dumps({"kind": kind, "options": options, "seed": seed})
        confidence = np.zeros(0) if weight is None else np.asarray(weight)
        np.savez(asked, user=user, item=item, shape=np.array(shape), what=np.array(what), weight=confidence)
        subprocess.run([python, __file__, "--work", str(asked), str(answered)], check=True)
        return np.load(answered).astype(np.float64)


def work(asked: str, answered: str) -> None:
    """What the other Python runs, on one thread, so that a seed gives the same scores again."""
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.cpu.bpr import BayesianPersonalizedRanking
    from scipy import sparse

    data = np.load(asked)
    what, (n_users, n_items) = json.loads(str(data["what"])), map(int, data["shape"])
    weighted = len(data["weight"]) > 0
    weight = data["weight"].astype(np.float32) if weighted else np.ones(len(data["user"]), dtype=np.float32)
    clicks = sparse.csr_matrix((weight, (data["user"], data["item"])), shape=(n_users, n_items))
    if not weighted:
        clicks.data[:] = 1.0  # a pair may be clicked more than once
    kind = AlternatingLeastSquares if what["kind"] == "als" else BayesianPersonalizedRanking
    model = kind(**what["options"], num_threads=1, random_state=what["seed"])
    model.fit(clicks, show_progress=False)
    np.save(answered, np.asarray(model.user_factors) @ np.asarray(model.item_factors).T)


PEERS: dict[str, dict[str, Callable[..., Any]]] = {
    "california_choice": {"scikit-learn": california_choice},
    "california": {"scikit-learn": california},
    "columns": {"scikit-learn": columns},
    "movielens_gibbs_choice": {"myfm": movielens_gibbs_choice},
    "movielens_gibbs": {"myfm": movielens_gibbs},
    "ranking_choice": {
        "scipy": partial(ranking_choice, chosen=SCALED_CHOSEN),
        "implicit": ranking_choice,
        "lightfm-next": partial(ranking_choice, chosen=HYBRID_CHOSEN),
    },
    "ranking": {
        "scipy": partial(ranking, chosen=SCALED_CHOSEN),
        "implicit": ranking,
        "lightfm-next": partial(ranking, chosen=HYBRID_CHOSEN),
    },
}
"""By experiment, then by the package that they need: its cells."""
CELLS: dict[str, dict[str, dict[str, int]]] = {
    "california_choice": {"scikit-learn": {"forest/": len(FORESTS)}},
    "california": {"scikit-learn": {"forest/seed ": 3}},
    "columns": {
        "scikit-learn": dict.fromkeys((f"{d}/{m}" for d in ("made", "diabetes") for m in ("gradient", "ridge")), 1)
    },
    "movielens_gibbs_choice": {"myfm": {"myFM ratings/": 3, "myFM side/": 3}},
    "movielens_gibbs": {"myfm": {"myFM ratings/": 5, "myFM side/": 5}},
    "ranking_choice": {
        "scipy": {f"{split}/{name}/": len(GRIDS["ials"]) for split, some in SCALED_CHOSEN.items() for name in some},
        "implicit": {
            f"{split}/{name}/": len(GRIDS[name.removesuffix("_liked")])
            for split, some in CHOSEN.items()
            for name in some
        },
        "lightfm-next": {
            f"{split}/{name}/": len(GRIDS[name]) for split, some in HYBRID_CHOSEN.items() for name in some
        },
    },
    "ranking": {
        package: {f"{split}/{name}/": 3 for split, some in chosen.items() for name in some}
        for package, chosen in {"scipy": SCALED_CHOSEN, "implicit": CHOSEN, "lightfm-next": HYBRID_CHOSEN}.items()
    },
}
"""How many cells the results files have of them at the least, by the beginnings of their names."""
HERE = ("scikit-learn", "scipy")
"""Packages that this Python has."""


def main() -> None:
    from tuckergp.paper.experiments import EXPERIMENTS
    from tuckergp.paper.run import Run, fill

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(PEERS))
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the results files")
    parser.add_argument("--data", type=Path, help="folder that holds the data")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="beginnings of names of cells, separated by commas")
    parser.add_argument("--again", action="store_true", help="compute cells of another commit again")
    parser.add_argument("--python", default=sys.executable, help="a Python that has implicit or myFM")
    given = parser.parse_args()
    runs = []
    for one in (one for one in EXPERIMENTS if one.name in given.names):
        run = Run(one, given.output, given.data, given.quick)
        run.work = {}
        for package, cells in PEERS[one.name].items():
            python = sys.executable if package in HERE else given.python
            if version := version_of(package, python):
                run.work, run.versions = {**run.work, **dict(cells(run, python))}, run.versions | {package: version}
            else:
                print(f"{python} does not have {package}; its part of {one.name} is left out.", file=sys.stderr)
        runs.append(run)
    fill(runs, given.only, lambda line: print(line, file=sys.stderr), given.again)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
    else:
        main()
