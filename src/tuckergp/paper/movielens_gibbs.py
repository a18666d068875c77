"""MovieLens 100K by Gibbs sampling: ratings alone, side information, co-rating, weeks, ordinal levels.

`MOVIELENS_GIBBS_CHOICE` compares ranks on a tenth of each split's own training part. Its choice is recorded in
`SETTINGS`; `MOVIELENS_GIBBS` learns from the whole training part with it and scores the test part once per seed.
Predictions are clipped to 1..5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import MovieLens
from tuckergp.data.tables import Table as Data
from tuckergp.evaluation.metrics import rmse
from tuckergp.paper.experiment import Cells, Experiment, Figures, Rows, Table, Work
from tuckergp.paper.movielens_data import attribute_tables, carve, entities_of
from tuckergp.paper.run import Run, quietly
from tuckergp.paper.tables import median, starting, with_sd

__all__ = ["MOVIELENS_GIBBS", "MOVIELENS_GIBBS_CHOICE", "PROTOCOL", "SETTINGS", "Setting", "learned", "score"]


@dataclass(frozen=True)
class Setting:
    """One row of the table: the data that the model uses, its options, and a result to compare with.

    Attributes
    ----------
    title : str
    tables : str
        Which attribute tables: none, the paper's, or all.
    options : dict
        Parameters of `TuckerRecommender`, including the chosen rank.
    ranks : tuple of int
        The ranks compared on validation parts.
    quoted : str
        The result of a peer on the same splits that no script here has measured.
    """

    title: str
    tables: str
    options: dict[str, Any]
    ranks: tuple[int, ...]
    quoted: str = ""


MACHINES = "myFM "
"""The beginning of the names of cells of factorisation machines, which `benchmarks/peers.py` adds."""
_PLAIN: dict[str, Any] = {"implicit": False, "time": None, "draws": 250, "warmup": 50}
_LONG: dict[str, Any] = {"implicit": True, "draws": 300, "warmup": 60}

SETTINGS: dict[str, Setting] = {
    "ratings": Setting(
        "ratings alone", "none", {**_PLAIN, "rank": 10}, (5, 10, 15, 24, 32, 64),
        "0.8963 SMURFF BPMF, noise set by hand",
    ),
    "side": Setting(
        "+ the paper's side information", "paper", {**_PLAIN, "rank": 32}, (10, 15, 24, 32, 64),
        "0.8887 SMURFF Macau, noise set by hand",
    ),
    "implicit": Setting(
        "+ release year and co-rating", "all", {**_LONG, "time": None, "rank": 64}, (12, 20, 32, 64, 128),
        "0.8803 myFM",
    ),
    "week": Setting(
        "+ the week of the rating", "all", {**_LONG, "time": "week", "rank": 64}, (12, 20, 32, 64, 128), "0.8778 myFM"
    ),
    "ordinal": Setting(
        "the same, ordinal likelihood", "all", {**_LONG, "time": "week", "likelihood": "ordinal", "rank": 64}, (),
        "0.8767 myFM",
    ),
}  # fmt: skip
"""The settings by key; ranks are the smallest within 0.0005, about the spread over seeds, of the best of them."""


def learned(movielens: MovieLens, setting: Setting, train: Data, seed: int, options: dict[str, Any]) -> Any:
    """A recommender fitted to ratings and to the attribute tables of the setting."""
    users, items = None, None
    if setting.tables == "paper":
        entities = entities_of(movielens)
        users, items = entities.users, entities.items
    elif setting.tables == "all":
        users, items = attribute_tables(movielens)
    model = TuckerRecommender(**setting.options | options, objective="rating", random_state=seed)
    return quietly(model.fit, train, users, items)


def score(movielens: MovieLens, key: str, train: Data, held: Data, seed: int, options: dict[str, Any]) -> Figures:
    """Learn from ``train`` and score ``held``: RMSE, coverage of 90 % intervals, diagnostics."""
    model = learned(movielens, SETTINGS[key], train, seed, options)
    mean, band = model.predict(held, interval=0.9)
    truth = held.numeric("rating")
    diagnostics = model.fit_.draws.diagnostics()
    return {
        "options": SETTINGS[key].options | options,
        "rmse": round(rmse(truth, mean), 5),
        "coverage": round(float(((band[:, 0] <= truth) & (truth <= band[:, 1])).mean()), 4),
        "worst_rhat": round(float(np.nanmax(diagnostics.rhat)), 3),
        "median_ess": round(float(np.nanmedian(diagnostics.ess_bulk)), 1),
    }


def cells(run: Run) -> Work:
    """Test RMSE with the chosen ranks, cells ``key/u1/seed 0``."""
    at, movielens = run.settings, run.load("ml-100k")
    splits = {number: movielens.split(number) for number in at["splits"]}
    work: dict[str, Callable[[], Figures]] = {}
    for seed, (number, (train, held)), key in product(at["seeds"], splits.items(), SETTINGS):
        work[f"{key}/u{number}/seed {seed}"] = partial(score, movielens, key, train, held, seed, at["options"])
    return work


def choice_cells(run: Run) -> Work:
    """Validation RMSE of each rank of each setting, cells ``key/rank 12/u1``; one seed."""
    at, movielens = run.settings, run.load("ml-100k")
    work: dict[str, Callable[[], Figures]] = {}
    for number in at["splits"]:
        base, _ = movielens.split(number)
        learn, held = (base.take(rows) for rows in carve(len(base), at["seed"], number))
        for key in at["keys"]:
            for rank in SETTINGS[key].ranks:
                compute = partial(score, movielens, key, learn, held, at["seed"], {**at["options"], "rank": rank})
                work[f"{key}/rank {rank}/u{number}"] = compute
    return work


def gibbs_table(cells: Cells) -> Rows:
    """Test RMSE of each setting: mean and sd over splits, sd over seeds, u1; intervals, mixing, time.

    Mixing is that of f at 100 training ratings: means over the cells, and the worst of all.
    """
    rows = [["setting", "rank", "mean of u1..u5 ± sd over splits", "sd over seeds", "u1", "90 % intervals cover"]]
    rows[0] += ["median ESS of f", "worst R-hat: mean, worst", "seconds for a fit", "peers"]
    for key, setting in SETTINGS.items():
        scores = by_split_and_seed(cells, key)
        runs = starting(cells, f"{key}/")
        if scores is not None:
            by_split, by_seed = scores.mean(axis=1), scores.mean(axis=0)
            spread = f"{by_seed.std(ddof=1):.4f}" if len(by_seed) > 1 else ""
            cover = f"{np.mean([cell['coverage'] for cell in runs]):.1%}"
            errors = [with_sd(by_split), spread, f"{by_split[0]:.4f}", cover]
            rhat = [cell["worst_rhat"] for cell in runs]
            mixing = [f"{np.mean([cell['median_ess'] for cell in runs]):.0f}", f"{np.mean(rhat):.2f}, {max(rhat):.2f}"]
            end = [median(runs, "seconds"), peers_of(cells, key)]
            rows.append([setting.title, str(setting.options["rank"]), *errors, *mixing, *end])
    return rows


def peers_of(cells: Cells, key: str) -> str:
    """What peers reach: as `benchmarks/peers.py` measured them, and figures that are quoted."""
    said = [f"quoted, not run here: {SETTINGS[key].quoted}"] if SETTINGS[key].quoted else []
    if runs := {name.split("/")[1]: cell for name, cell in cells.items() if name.startswith(f"{MACHINES}{key}/")}:
        errors, rank = with_sd([cell["rmse"] for cell in runs.values()]), next(iter(runs.values()))["options"]["rank"]
        said.insert(0, f"{errors} myFM on {', '.join(runs)}, rank {rank}")
    return "; ".join(said)


def by_split_and_seed(cells: Cells, key: str) -> Any:
    """RMSE, shape (splits, seeds), or None where a cell is missing."""
    names = [name.split("/") for name in cells if name.split("/")[0] == key]
    splits, seeds = (sorted({name[k] for name in names}) for k in (1, 2))
    wanted = [[f"{key}/{split}/{seed}" for seed in seeds] for split in splits]
    if not names or not all(name in cells for line in wanted for name in line):
        return None
    return np.array([[cells[name]["rmse"] for name in line] for line in wanted])


def choice_table(cells: Cells) -> Rows:
    """Validation RMSE of each rank, mean over the splits, with the chosen rank in bold; of myFM the best."""
    rows = [["setting", "rank: mean validation RMSE"]]
    for key, setting in SETTINGS.items():
        for start, title in {"": setting.title, MACHINES: f"myFM: {setting.title}"}.items():
            errors = errors_by_rank(cells, f"{start}{key}/rank ")
            chosen = min(errors, key=errors.__getitem__) if start and errors else setting.options["rank"]
            words = [f"**{r}: {e:.4f}**" if r == chosen else f"{r}: {e:.4f}" for r, e in sorted(errors.items())]
            if words:
                rows.append([title, ", ".join(words)])
    return rows


def errors_by_rank(cells: Cells, start: str) -> dict[int, float]:
    """Mean RMSE over splits by rank, of cells such as ``side/rank 15/u1``; of ranks that have all of them."""
    errors: dict[int, list[float]] = {}
    for name, cell in cells.items():
        if name.startswith(start):
            errors.setdefault(int(name.removeprefix(start).split("/")[0]), []).append(cell["rmse"])
    most = max(map(len, errors.values()), default=0)
    return {rank: float(np.mean(found)) for rank, found in errors.items() if len(found) == most}


PROTOCOL = (
    "rank chosen on a tenth of the training parts, then learned from the whole training part, the test part scored "
    "once for each seed; predictions clipped to 1..5"
)

MOVIELENS_GIBBS = Experiment(
    name="movielens_gibbs",
    title="Models that are sampled",
    group="movielens",
    protocol=PROTOCOL,
    data=("ml-100k",),
    settings={"seeds": (0, 1, 2), "splits": (1, 2, 3, 4, 5), "options": {}},
    quick={"seeds": (0,), "splits": (1,), "options": {"rank": 4, "draws": 4, "warmup": 2}},
    cells=cells,
    blocks=(Table("movielens_gibbs", "Sampled models, and peers", gibbs_table),),
)

MOVIELENS_GIBBS_CHOICE = Experiment(
    name="movielens_gibbs_choice",
    title="MovieLens 100K: ranks on validation parts",
    group="choices",
    protocol=PROTOCOL,
    data=("ml-100k",),
    settings={"seed": 0, "splits": (1, 3), "keys": tuple(SETTINGS), "options": {}},
    quick={"splits": (1,), "keys": ("ratings",), "options": {"draws": 10, "warmup": 5}},
    cells=choice_cells,
    blocks=(Table("movielens_gibbs_choice", "Ranks of sampled models", choice_table),),
)
