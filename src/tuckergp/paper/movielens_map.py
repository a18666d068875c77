"""The paper's MovieLens 100K table: MAP estimates with W = I or learned, without and with side information.

Settings and the number of epochs are chosen on a tenth of each split's own training part; the model is then refitted
to all of that part for as many steps, and the test part is scored once. A quick run refits one split with settings
chosen before. On the first split, three further claims are tested: batch sizes, learning curves, hashed ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from tuckergp.paper.experiment import Cells, Experiment, Figures, Picture, Rows, Table, Text, Work
from tuckergp.paper.movielens_bpmf import PAPER as BPMF_PAPER
from tuckergp.paper.movielens_data import Split, split_of
from tuckergp.paper.movielens_gibbs import SETTINGS as SAMPLED
from tuckergp.paper.movielens_search import BATCH, RANK, VARIANTS, Fit, Settings, Variant, chosen, refit, search
from tuckergp.paper.pictures import COLOURS, figure
from tuckergp.paper.run import Run
from tuckergp.paper.tables import mean_and_sd, starting, with_sd, words

__all__ = ["MOVIELENS_MAP", "choose_and_score"]

CURVE_EPOCHS = 150
CHECKED = ("pmf", "learn_w")
# Cells of the paper's grids with U started at its prior, for learning curves beside those of the chosen small starts
PRIOR_STARTS = {"pmf": Settings(0.1, 0.01, 1e-6, None, 1.0), "learn_w": Settings(0.1, 0.75, 1e-5, 1e-6, 1.0)}


def epochs_of_refit(split: Split, epochs: int) -> int:
    """The epochs of the whole training part that have as many gradient steps as the chosen epochs.

    Validation within the training part supports this: the same number of epochs would overfit.
    """
    return max(1, round(epochs * len(split.learn) / len(split.train)))


def choose_and_score(split: Split, variant: Variant, seed: int, rank: int = RANK) -> Figures:
    """One cell of the table: search, refit, score."""

    def begin(settings: Settings) -> Fit:
        return Fit(split.entities, split.learn, settings, seed, rank=rank)

    choice = search(begin, split.choose, variant)
    figures = score(split, choice.settings, epochs_of_refit(split, choice.epochs), seed, rank=rank)
    return figures | {
        "chosen_epochs": choice.epochs,
        "validation_rmse": _figure(choice.score),
        "searched_epochs": choice.trained_epochs,
    }


def score(split: Split, settings: Settings, epochs: int, seed: int, **options: Any) -> Figures:
    """Refit to the whole training part, score the test part."""
    fit = refit(split, settings, epochs, seed, **options)
    return {
        "settings": asdict(settings),
        "epochs": epochs,
        "train_rmse": _figure(fit.train_rmse[-1]),
        "test_rmse": _figure(fit.score(split.test)),
    }


def _figure(value: float, digits: int = 5) -> float | None:
    """A figure rounded for JSON, which has no infinity: None stands for a fit that diverged."""
    return round(value, digits) if math.isfinite(value) else None


def cells(run: Run) -> Work:
    """The cells of the table, ``variant/u1`` and so on, and those of the further claims."""
    at, movielens = run.settings, run.load("ml-100k")
    work: dict[str, Callable[[], Figures]] = {}
    splits = [split_of(movielens, number, at["seed"]) for number in at["splits"]]
    for split in splits:
        for key, variant in VARIANTS.items():
            compute = partial(choose_and_score, split, variant, at["seed"])
            if not at["search"]:
                compute = partial(score, split, *chosen(key, split.number), at["seed"])
            work[f"{key}/u{split.number}"] = compute
    return work | {name: make for key in at["checked"] for name, make in checks(run, splits[0], key).items()}


def checks(run: Run, split: Split, key: str) -> Work:
    """Three claims of the paper, tested with the settings that were chosen for a variant on the split.

    ``batch/...``: how sensitive SGD is to the mini-batch size. The update weighs each rating by step N / m, so smaller
    batches with the same step sizes learn faster; ``batch_same_rate/...`` scales the step sizes with m. ``curve/...``:
    W = I soon overfits; does a learned W keep improving? ``buckets/...``: errors by the number of buckets of hashed
    ids.
    """
    at, name = run.settings, f"{key}/u{split.number}"

    def settings(rate: float = 1.0) -> Settings:
        known = Settings.from_json(run[name]["settings"])
        step_w = None if known.step_w is None else known.step_w * rate
        return replace(known, step_u=known.step_u * rate, step_w=step_w)

    stop = partial(_stop_and_score, split, VARIANTS[key], at["seed"])
    work: dict[str, Callable[[], Figures]] = {
        f"curve/{name}": partial(_curve, split, settings, at["seed"]),
        f"curve/{name}/prior start": partial(_curve, split, partial(PRIOR_STARTS.__getitem__, key), at["seed"]),
    }
    for size in at["batch_sizes"]:
        work[f"batch/{name}/{size}"] = partial(stop, settings, batch_size=size, pace=max(1, size // BATCH))
        work[f"batch_same_rate/{name}/{size}"] = partial(stop, partial(settings, size / BATCH), batch_size=size)
    for n in (*at["buckets"], None):
        work[f"buckets/{name}/{n or 'none'}"] = partial(stop, settings, buckets=n)
    return work


def _stop_and_score(
    split: Split, variant: Variant, seed: int, known: Callable[[], Settings], pace: int = 1, **options: Any
) -> Figures:
    """Early stopping on the validation part, ``pace`` times as patient, then refit and score as for the table."""
    settings = known()
    fit = Fit(split.entities, split.learn, settings, seed, **options)
    held = fit.watch(split.choose, pace * variant.rungs[-1].epochs, pace * variant.patience)
    epochs = epochs_of_refit(split, fit.best_epoch)
    test = refit(split, settings, epochs, seed, **options).score(split.test)
    return {
        "chosen_epochs": fit.best_epoch,
        "epochs": epochs,
        "validation_rmse": _figure(held),
        "test_rmse": _figure(test),
    }


def _curve(split: Split, known: Callable[[], Settings], seed: int) -> Figures:
    """Train and validation RMSE after every epoch, without stopping."""
    settings = known()
    fit = Fit(split.entities, split.learn, settings, seed)
    best = fit.watch(split.choose, CURVE_EPOCHS, CURVE_EPOCHS)
    return {
        "settings": asdict(settings),
        "best_epoch": fit.best_epoch,
        "best_validation_rmse": _figure(best),
        "last_validation_rmse": _figure(fit.held_rmse[-1]),
        "train_rmse": [_figure(value, 4) for value in fit.train_rmse],
        "validation_rmse": [_figure(value, 4) for value in fit.held_rmse],
    }


# What is shown


def of_variant(cells: Cells, key: str) -> dict[str, Figures]:
    """The table's cells of a variant by split."""
    return {name.partition("/")[2]: cell for name, cell in cells.items() if name.partition("/")[0] == key}


def compared(cells: Cells) -> list[tuple[str, dict[str, tuple[float, float | None]]]]:
    """All models with mean and sd over splits, by source: the paper and ours."""
    scored = [("Bayesian PMF", BPMF_PAPER, [c["test_rmse"] for c in starting(cells, "movielens_bpmf/")])]
    for key, variant in VARIANTS.items():
        scores = [cell["test_rmse"] for cell in of_variant(cells, key).values()]
        scored.append((variant.title, variant.paper, [math.inf if score is None else score for score in scores]))
    rows = [
        (title, {"paper": paper} | ({"ours": mean_and_sd(scores)} if scores else {})) for title, paper, scores in scored
    ]
    for key, setting in SAMPLED.items():
        by_split: dict[str, list[float]] = {}
        for name, cell in cells.items():
            if name.startswith(f"movielens_gibbs/{key}/"):
                by_split.setdefault(name.split("/")[2], []).append(cell["rmse"])
        if by_split:
            means = [float(np.mean(values)) for values in by_split.values()]
            rows.append((f"sampled: {setting.title}", {"ours": mean_and_sd(means)}))
    return rows


def compared_table(cells: Cells) -> Rows:
    """The paper's results beside ours, and sampled models."""
    sources = ("paper", "ours")
    rows = [[title, *(words(*by[one]) if one in by else "" for one in sources)] for title, by in compared(cells)]
    return [["model", *sources], *rows]


def map_table(cells: Cells) -> Rows:
    """The paper's table by split, with the settings that were chosen."""
    splits = sorted({split for key in VARIANTS for split in of_variant(cells, key)})
    rows = [["model", f"{', '.join(splits)}: mean ± sd", *splits, "chosen settings"]]
    for key, variant in VARIANTS.items():
        mine = of_variant(cells, key)
        scores = {split: math.inf if cell["test_rmse"] is None else cell["test_rmse"] for split, cell in mine.items()}
        if mine:
            each = [f"{scores[split]:.4f}" if split in scores else "" for split in splits]
            rows.append([variant.title, with_sd(list(scores.values())), *each, _settings_of(mine.values())])
    return rows


COMPARED = (("side", "pmf"), ("learn_w_side", "learn_w"), ("learn_w", "pmf"), ("learn_w_side", "side"))
"""What side information does, and what learning W does."""


def differences_table(cells: Cells) -> Rows:
    """By how much errors of one model exceed those of another, split by split, on test and validation parts."""
    splits = sorted({split for key in VARIANTS for split in of_variant(cells, key)})
    rows = [["RMSE of", "less that of", "part", *splits, "mean"]]
    for one, other in COMPARED:
        for part in ("test", "validation"):
            ours, theirs = (_errors(cells, key, f"{part}_rmse") for key in (one, other))
            by = {at: ours[at] - theirs[at] for at in ours if at in theirs}
            if by:
                each = [f"{by[split]:+.4f}" if split in by else "" for split in splits]
                rows.append(
                    [VARIANTS[one].title, VARIANTS[other].title, part, *each, f"{np.mean([*by.values()]):+.4f}"]
                )
    return rows


def _errors(cells: Cells, key: str, what: str) -> dict[str, float]:
    """A figure of a variant by split, where it is there."""
    found = {split: cell.get(what) for split, cell in of_variant(cells, key).items()}
    return {split: value for split, value in found.items() if value is not None}


def _settings_of(figures: Iterable[Figures]) -> str:
    """The chosen values of each setting as text, a single one where all splits agree."""
    figures = list(figures)
    names = {"sigma_u": "σ_u", "noise": "σ²", "step_u": "ε_u", "step_w": "ε_w", "init_scale": "U starts at"}
    columns = {label: [cell["settings"][key] for cell in figures] for key, label in names.items()}
    sides = [cell["settings"]["side"] or (None,) * 3 for cell in figures]
    columns |= dict(zip("abc", map(list, zip(*sides, strict=True)), strict=True))
    learned = [cell for cell in figures if cell["settings"]["step_w"] is not None]
    columns["W starts at"] = [cell["settings"]["core_start"] for cell in learned]
    columns["epochs"] = [cell["epochs"] for cell in figures]
    said = []
    for label, values in columns.items():
        if distinct := sorted({value for value in values if value is not None}):
            said.append(f"{label} {', '.join(v if isinstance(v, str) else f'{v:g}' for v in distinct)}")
    return "; ".join(said)


def curves(cells: Cells) -> dict[str, Figures]:
    """The cells of learning curves, by their titles."""
    by_title = {}
    for name, cell in cells.items():
        kind, *rest = name.split("/")
        if kind == "curve":
            start = rest[2] if len(rest) > 2 else "chosen settings"
            by_title[f"{VARIANTS[rest[0]].title}, {start} (sigma_u {cell['settings']['sigma_u']:g})"] = cell
    return by_title


def curves_table(cells: Cells) -> Rows:
    """Validation RMSE along the learning curves: best epoch, and what comes after it."""
    rows = [["", "best at epoch", "best", "at epoch 30", "last epoch", "at the last"]]
    for title, cell in curves(cells).items():
        curve = cell["validation_rmse"]
        errors = [f"{value:.4f}" for value in (min(curve), curve[29], curve[-1])]
        rows.append([title, str(cell["best_epoch"]), *errors[:2], str(len(curve)), errors[2]])
    return rows


def by_column_table(corner: str, lines: Sequence[tuple[str, str, str]], cells: Cells) -> Rows:
    """A table with one column per ending of cell names; a line has the beginning of names, a title and a figure."""
    kinds = [
        (kind, title, what, [n.split("/") for n in cells if n.startswith(f"{kind}/")]) for kind, title, what in lines
    ]
    columns = list(dict.fromkeys(name[-1] for *_, names in kinds for name in names))
    rows = [[corner, *("unhashed" if column == "none" else column for column in columns)]]
    for kind, title, what, names in kinds:
        for variant, split in dict.fromkeys((name[1], name[2]) for name in names):
            values = [cells[f"{kind}/{variant}/{split}/{column}"][what] for column in columns]
            shown = ["diverges" if value is None else f"{value:.4f}" for value in values]
            rows.append([f"{VARIANTS[variant].title}, {title}", *shown])
    return rows


def draw_compared(cells: Cells) -> Any:
    """One row per model, with a dot and error bar per source."""
    rows = compared(cells)
    made, axes = figure(1, 1, 8.0, 0.7 + 0.38 * len(rows))
    ax = axes[0, 0]
    for k, source in enumerate(("paper", "ours")):
        points = [(at, *values[source]) for at, (_, values) in enumerate(rows) if source in values]
        place = [at + 0.16 * (k - 0.5) for at, _, _ in points]
        mean, sd = [mean for _, mean, _ in points], [sd or 0.0 for _, _, sd in points]
        ax.errorbar(mean, place, xerr=sd, fmt="o", markersize=5, capsize=3, color=COLOURS[k], label=source)
    ax.set_yticks(range(len(rows)), [title for title, _ in rows])
    ax.invert_yaxis()
    ax.grid(axis="x", alpha=0.2)
    ax.set_xlabel("test RMSE")
    ax.legend(loc="best", fontsize="small")
    return made


def draw_curves(cells: Cells) -> Any:
    """Training and validation RMSE after each epoch."""
    if not curves(cells):
        return None
    made, axes = figure(1, 1, 8.0, 5.0)
    for (title, cell), colour in zip(curves(cells).items(), COLOURS, strict=False):
        for part, line in (("train", "--"), ("validation", "-")):
            values = cell[f"{part}_rmse"]
            axes[0, 0].plot(range(1, 1 + len(values)), values, line, color=colour, label=f"{title}, {part}")
    axes[0, 0].set(xlabel="epoch", ylabel="RMSE")
    axes[0, 0].grid(alpha=0.2)
    made.legend(loc="outside lower center", fontsize="x-small", ncols=2)
    return made


MOVIELENS_MAP = Experiment(
    name="movielens_map",
    title="The paper's table, and MAP estimates",
    group="movielens",
    protocol=(
        "choose on a tenth of the split's training part (successive halving over the paper's grids, early stopping), "
        "refit to the whole training part for the chosen number of gradient steps, score the test part once"
    ),
    data=("ml-100k",),
    settings={
        "search": True, "seed": 0, "splits": (1, 2, 3, 4, 5), "rank": RANK, "batch_size": BATCH, "checked": CHECKED,
        "batch_sizes": (10, 50, 100, 500, 1000), "buckets": (50, 100, 200, 400, 800, 1600, 3200, 6400, 12800),
    },
    quick={"search": False, "splits": (1,), "checked": ()},
    beside=("movielens_bpmf", "movielens_gibbs"),
    cells=cells,
    blocks=(
        Text(
            "Test RMSE of ratings from 1 to 5 on the five official splits, mean and sd over splits. The first five "
            "rows are the paper's; settings are chosen on a tenth of each split's own training part, not by "
            "cross-validation, and the test part is scored once. The other rows are models that are sampled, which the "
            "paper does not have; their means are over splits and seeds. Predictions are clipped to 1..5."
        ),
        Table("movielens_paper", "Test RMSE on MovieLens 100K", compared_table),
        Picture(
            "movielens_paper",
            "Test RMSE with the sd over splits.",
            "A row for each model, a dot for the paper's test RMSE and one for ours; sampled models have the least.",
            draw_compared,
        ),
        Text(
            "Where we differ: PMF is better here than in the paper, and the mean test error of a learned W is not "
            "lower than that of W = I. Side information helps, as the paper says."
        ),
        Table("movielens_map", "MAP estimates split by split", map_table),
        Table("movielens_differences", "What side information and a learned W change", differences_table),
        Picture(
            "movielens_curves",
            "RMSE after every epoch of the paper's SGD, first split.",
            "With W = I validation error turns up after some ten epochs; with a learned W it falls for longer.",
            draw_curves,
        ),
        Table("movielens_curves", "Along the learning curves, first split, validation RMSE", curves_table),
        Table(
            "movielens_batch",
            "Test RMSE by the size of mini-batches",
            partial(
                by_column_table,
                "batch size",
                [
                    ("batch", "same step", "test_rmse"),
                    ("batch_same_rate", "step in proportion to the batch", "test_rmse"),
                ],
            ),
        ),
        Table(
            "movielens_buckets",
            "Ids hashed into m buckets",
            partial(
                by_column_table,
                "m",
                [("buckets", "validation", "validation_rmse"), ("buckets", "test", "test_rmse")],
            ),
        ),
    ),
)  # fmt: skip
