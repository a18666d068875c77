"""California house prices by longitude and latitude: the paper's figure and tables, and better models.

The first half of the authors' row order is for training, the rest for testing; RMSE is of the log price.
`CALIFORNIA_CHOICE` compares models that are not in the paper on a fifth of the training rows. Its choice is recorded in
`BEYOND`; `CALIFORNIA` learns from all training rows and scores the test rows once. The models are in
`tuckergp.paper.california_models`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from tuckergp.features import Fourier
from tuckergp.inference import NUTS, Gibbs
from tuckergp.paper.california_models import GIVEN, Chains, cholesky, exact, full_rank, modes_of, split_of, tucker_of
from tuckergp.paper.experiment import Cells, Experiment, Figures, Picture, Rows, Table, Text, Work
from tuckergp.paper.pictures import figure
from tuckergp.paper.regression import Split, choice_table, choices, fit_and_cover, hold_out, tucker
from tuckergp.paper.run import Run
from tuckergp.paper.tables import mean_and_sd, median, shown, starting

__all__ = ["BEYOND", "CALIFORNIA", "CALIFORNIA_CHOICE", "held_out"]

SIZES, RANKS = (25, 50, 100, 200), (2, 5, 10)
CANDIDATES = {
    f"turns={turns}/r={rank}": Chains(turns, rank)
    for turns, ranks in {1: (5, 10, 20), 2: (5, 10, 20), 4: (5, 10)}.items()
    for rank in ranks
}
BEYOND = ("turns=1/r=10", "turns=1/r=20", "turns=4/r=10")
"""The last has the smallest error on held-out training rows."""

RECORDS = {"full": "0.2979", "r=2": "0.3299", "r=5": "0.2866", "r=10": "0.2778"}
"""The authors' test RMSE at n = 200."""
PAPER_RHAT = {
    2: ("2.67 ± 1.34", "2.55 ± 1.37", "2.10 ± 0.70", "1.92 ± 0.67"),
    5: ("1.06 ± 0.27", "1.06 ± 0.19", "1.15 ± 0.11", "1.11 ± 0.11"),
    10: ("1.00 ± 0.03", "1.02 ± 0.04", "1.01 ± 0.02", "1.06 ± 0.03"),
}
PAPER_ESS = {
    2: ("230 ± 459", "5 ± 17", "11 ± 81", "12 ± 74"),
    5: ("244 ± 118", "121 ± 70", "34 ± 64", "42 ± 79"),
    10: ("692 ± 152", "196 ± 93", "310 ± 111", "96 ± 165"),
}
VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "california_components": ("coloured by percentile", {}),
    "california_components_uniform": ("evenly coloured", {"colour": "uniform"}),
    "california_components_la": ("Los Angeles", {"extent": (-119.0, -117.0, 33.4, 34.5)}),
    "california_components_bay": ("the Bay area", {"extent": (-123.2, -121.4, 36.8, 38.4)}),
}
"""Plots of the summands of f: a description, and how they are drawn."""
BEHIND = "0.85"
"""A grey background, on which the pale middle of the colours is visible."""
# Key of the random stream that holds rows out.
held_out = partial(hold_out, key=2_000_001)


def cells(run: Run) -> Work:
    """All cells of the tables, quick ones first."""
    at, work = run.settings, dict[str, Callable[[], Figures]]()
    split = split_of(run.load("california"), at["rows"])
    work["gp/given"] = partial(exact, split, False)
    for seed in at["seeds"]:
        work |= {f"full/n={n}/seed {seed}": partial(full_rank, split, n, seed) for n in at["sizes"]}
        for name in at["beyond"]:
            setting = replace(CANDIDATES[name], **at["chain_lengths"])
            work[f"beyond/{name}/seed {seed}"] = partial(fit_and_cover, split, setting, seed)
        gibbs = Gibbs(**at["gibbs_lengths"])  # noise and prior scales are drawn along with the rest
        for n, r in product(at["sizes"], at["ranks"]):
            work[f"gibbs/n={n}/r={r}/seed {seed}"] = partial(tucker_of, split, n, r, gibbs, seed)
    for r in at["cholesky_ranks"]:
        work[f"cholesky/r={r}/seed 0"] = partial(cholesky, split, r, 0, at["cholesky_lengths"])
    # the paper's sampler: prior scales and noise as the GP has them
    nuts = NUTS(noise=GIVEN.noise, sigma_w=GIVEN.scale**0.5, **at["nuts_lengths"])
    for n, r in at["nuts_sizes"]:
        work[f"nuts/n={n}/r={r}/seed 0"] = partial(tucker_of, split, n, r, nuts, 0)
    work["gp/learned"] = partial(exact, split, True, at["max_iter"])
    work["pictures"] = partial(draw_models, run, split)
    return work


def choice_cells(run: Run) -> Work:
    """Validation errors of models with chains, on held-out training rows."""
    at = run.settings
    settings = {name: replace(CANDIDATES[name], **at["chain_lengths"]) for name in at["candidates"]}
    return choices(settings, held_out(split_of(run.load("california"), at["rows"])))


def curves_table(cells: Cells) -> Rows:
    """Train and test RMSE by the number of features: the paper's figure as numbers."""
    patterns = {"full rank": ("full/n={n}/", "full")}
    for title, kind in {"Gibbs": "gibbs", "NUTS": "nuts"}.items():
        patterns |= {f"TGP r = {r}, {title}": (f"{kind}/n={{n}}/r={r}/", f"r={r}") for r in RANKS}
    patterns |= {"GP, the authors' numbers": ("gp/given", ""), "GP, type-II ML": ("gp/learned", "")}
    rows = [["train / test RMSE", *(f"n = {n}" for n in SIZES), "paper, n = 200"]]
    for title, (pattern, record) in patterns.items():
        by_size = [starting(cells, pattern.format(n=n)) for n in SIZES]
        if any(by_size):
            errors = [f"{shown(one, 'train_rmse')} / {shown(one, 'test_rmse')}" if one else "" for one in by_size]
            rows.append([title, *errors, RECORDS.get(record, "")])
    return rows


def gp_table(cells: Cells) -> Rows:
    """The two exact GPs: log marginal likelihood, errors, hyperparameters."""
    rows = [["GP", "log likelihood", "train RMSE", "test RMSE", "signal sd", "noise sd", "latitude", "longitude"]]
    for title, name in {"the authors' numbers": "gp/given", "type-II maximum likelihood": "gp/learned"}.items():
        for cell in starting(cells, name):
            numbers = cell["hyperparameters"]
            roots = [f"{numbers[key] ** 0.5:.4f}" for key in ("scale", "noise")]
            scales = [f"{numbers[f'{key}__lengthscale']:.4f}" for key in ("latitude", "longitude")]
            errors = [f"{cell[key]:.4f}" for key in ("train_rmse", "test_rmse")]
            rows.append([title, f"{cell['log_marginal_likelihood']:.1f}", *errors, *roots, *scales])
    return rows


def mixing_table(cells: Cells) -> Rows:
    """R-hat and ESS of parameters and of f, beside those of the paper."""
    kinds = {"nuts": "NUTS", "gibbs": "Gibbs"}
    rows = [["", "paper: R-hat, parameters", "paper: ESS, parameters"]]
    rows[0] += [f"{title}: {what}" for title in kinds.values() for what in ("parameters", "f")]
    for r in RANKS:
        for i, n in enumerate(SIZES):
            row = [f"r = {r}, n = {n}", PAPER_RHAT[r][i], PAPER_ESS[r][i]]
            for kind in kinds:
                cell = cells.get(f"{kind}/n={n}/r={r}/seed 0")
                row += [_mixing(cell[what]) if cell else "" for what in ("parameters", "f")]
            rows.append(row)
    return rows


def _mixing(figures: Figures) -> str:
    return "{:.2f} ± {:.2f}; {:.0f} ± {:.0f}".format(*figures["rhat"], *figures["ess"])


def claims_table(cells: Cells) -> Rows:
    """The paper's claims about its figure, and whether they hold here, by means over the seeds that both have."""
    rows = [["claim", "", "ours and the other"]]
    gp = cells.get("gp/given", {}).get("test_rmse")
    for kind, title in {"gibbs": "Gibbs", "nuts": "NUTS"}.items():
        pairs = {
            (r, part): [pair for n in SIZES for pair in _on_common_seeds(cells, kind, n, r, f"{part}_rmse")]
            for r in RANKS
            for part in ("train", "test")
        }
        said, verdict = _below(pairs[5, "test"])
        rows.append([f"r = 5 below full rank for all n ({title})", verdict, said])
        ten = [(n, starting(cells, f"{kind}/n={n}/r=10/")) for n in SIZES if n >= 100]
        said, verdict = _below([(n, np.mean([c["test_rmse"] for c in runs]), gp) for n, runs in ten if runs and gp])
        rows.append([f"r = 10 below the GP for n >= 100 ({title})", verdict, said])
        for r in RANKS:
            (train, _), (test, lower) = _below(pairs[r, "train"]), _below(pairs[r, "test"])
            _, higher = _below([(n, b, a) for n, a, b in pairs[r, "train"]])
            verdict = lower and ("pass" if lower == higher == "pass" else "fail")
            claim = f"r = {r}: higher training and lower test error than full rank ({title})"
            rows.append([claim, verdict, f"train: {train}; test: {test}"])
    return [row for row in rows if row[1] or row is rows[0]]


def _on_common_seeds(cells: Cells, kind: str, n: int, r: int, what: str) -> list[tuple[int, Any, Any]]:
    """n with the mean figures of a Tucker model and of full rank, over the seeds that both were run with."""
    ours, theirs = (
        {name.removeprefix(start): cell[what] for name, cell in cells.items() if name.startswith(start)}
        for start in (f"{kind}/n={n}/r={r}/", f"full/n={n}/")
    )
    common = [seed for seed in ours if seed in theirs]
    return [(n, *(np.mean([side[seed] for seed in common]) for side in (ours, theirs)))] if common else []


def _below(pairs: list[tuple[int, Any, Any]]) -> tuple[str, str]:
    """Pairs of figures as text, and whether the first is below the second in all of them."""
    said = ", ".join(f"n = {n}: {a:.4f} and {b:.4f}" for n, a, b in pairs)
    return said, ("pass" if all(a < b for _, a, b in pairs) else "fail") if pairs else ""


def beyond_table(cells: Cells) -> Rows:
    """Models that are not in the paper, random forests if `benchmarks/peers.py` was run, and their cost of choosing."""
    titles = {
        "cholesky/r=5/": "squared exponential, exact features, r = 5",
        **{f"beyond/{name}/": title_of(name) for name in CANDIDATES},
        "forest/": "random forest on turned axes",
    }
    rows = [["model", "train RMSE", "test RMSE", "90 % intervals cover", "seconds", "chosen among (CPU seconds)"]]
    for name, title in titles.items():
        if runs := starting(cells, name):
            errors = [shown(runs, "train_rmse"), shown(runs, "test_rmse"), shown(runs, "coverage", 3)]
            choice = {"beyond": "turns=", "forest": "forest/"}.get(name.partition("/")[0])
            tried = starting(cells, f"california_choice/{choice}")
            cost = f"{len(tried)} ({sum(cell['cpu_seconds'] for cell in tried):.0f})" if tried else ""
            rows.append([title, *errors, median(runs, "seconds"), cost])
    return rows


def chosen_table(cells: Cells) -> Rows:
    """Models with chains on held-out training rows, and the best of the random forests."""
    forests = {name: cell for name, cell in cells.items() if name.startswith("forest/")}
    shown_forests = dict([min(forests.items(), key=lambda pair: float(pair[1]["test_rmse"]))]) if forests else {}
    ours = {name: cell for name, cell in cells.items() if name not in forests}

    def title(name: str) -> str:
        if name in forests:
            return f"random forest, best of {len(forests)}: `{name.removeprefix('forest/')}`"
        return title_of(name)

    return choice_table(title, ours | shown_forests)


def title_of(name: str) -> str:
    """The title of a model with chains."""
    turns, _, rank = name.removeprefix("turns=").partition("/r=")
    return f"chains, r = {rank}" + ("" if turns == "1" else f", mean of {turns} turns of the axes")


def draw_curves(cells: Cells) -> Any:
    """Train and test RMSE against the number of features, with the spread over seeds: the paper's figure."""
    made, axes = figure(1, 2, 9.0, 4.0)
    models = {"full rank": ("full/n={n}/", "tab:purple", "-")}
    for r, colour in zip(RANKS, ("tab:blue", "tab:orange", "tab:green"), strict=True):
        models[f"r = {r}, Gibbs"] = (f"gibbs/n={{n}}/r={r}/", colour, "-")
        models[f"r = {r}, NUTS"] = (f"nuts/n={{n}}/r={r}/", colour, "none")
    for ax, metric in zip(axes[0], ("train_rmse", "test_rmse"), strict=True):
        for title, (pattern, colour, line) in models.items():
            errors = {n: [cell[metric] for cell in starting(cells, pattern.format(n=n))] for n in SIZES}
            points = [(n, *mean_and_sd(values)) for n, values in errors.items() if values]
            n, mean, sd = ([row[k] or 0.0 for row in points] for k in range(3))
            style = {"color": colour, "linestyle": line, "marker": "x" if line == "none" else "o"}
            if points:
                ax.errorbar(n, mean, sd, label=title, markersize=4, capsize=2, **style)
        for cell in starting(cells, "gp/given"):
            ax.axhline(cell[metric], color="grey", linestyle="--", label="GP")
        ax.set(title=metric.replace("_rmse", " RMSE"), xlabel="features in each mode, n", xscale="log", xticks=SIZES)
        ax.set_xticks(SIZES, labels=list(map(str, SIZES)), minor=False)
        ax.minorticks_off()
    axes[0, 1].legend(fontsize="x-small")
    return made


def draw_models(run: Run, split: Split) -> Figures:
    """Maps of prices, and of the summands of the r = 2 model: coloured linearly or by percentile, and two zooms."""
    at = run.settings["pictures"]
    inference = Gibbs(draws=at["draws"], warmup=at["warmup"])
    model = tucker(modes_of(GIVEN, Fourier(at["features"], pairs=False)), 2, inference, 0, split)

    def components(**options: Any) -> Any:
        made, axes = figure(2, 2, 9.0, 8.0)
        model.plot_components(split.test.X, columns=("longitude", "latitude"), axes=axes.ravel(), **options)
        return made

    run.keep("california_map", partial(draw_maps, model, split))
    for name, (_, options) in VIEWS.items():
        run.keep(name, partial(components, **options))
    return {"pictures": 1 + len(VIEWS)}


def draw_maps(model: Any, split: Split) -> Any:
    """Maps of true and predicted test prices, coloured by the percentiles of the true ones."""
    made, axes = figure(1, 2, 9.0, 4.6)
    order, at = np.sort(split.test.y), split.test.X
    panels = {"true log price": split.test.y, "predicted": model.predict(at)}
    for ax, (title, values) in zip(axes[0], panels.items(), strict=True):
        place = np.searchsorted(order, values) / len(order)
        colours = {"c": place, "cmap": "RdBu_r", "vmin": 0, "vmax": 1}
        drawn = ax.scatter(at["longitude"], at["latitude"], s=2, linewidths=0, **colours)
        ax.set(title=title, xlabel="longitude", ylabel="latitude", aspect=1.25, facecolor=BEHIND)
    bar = made.colorbar(drawn, ax=axes[0], shrink=0.8, ticks=[0, 0.5, 1])
    bar.ax.set_yticklabels([f"{np.exp(np.quantile(order, q)) / 1000:.0f} k$" for q in (0, 0.5, 1)])
    return made


PROTOCOL = (
    "log price; the first half of the authors' row order trains, the rest tests; numbers of the kernels are the "
    "authors'; models with chains chosen on a fifth of the training rows; test rows scored once in each cell"
)

CALIFORNIA = Experiment(
    name="california",
    title="California house prices by place",
    group="california",
    protocol=PROTOCOL,
    data=("california",),
    beside=("california_choice",),
    settings={
        "rows": None, "seeds": (0, 1, 2), "sizes": SIZES, "ranks": RANKS, "beyond": BEYOND,
        "chain_lengths": {"draws": 150, "warmup": 100}, "gibbs_lengths": {"draws": 150, "warmup": 100, "chains": 4},
        # with a feature for every distinct value a sweep takes seconds
        "cholesky_ranks": (5,), "cholesky_lengths": {"draws": 40, "warmup": 30, "chains": 1},
        # as in the paper
        "nuts_lengths": {"draws": 300, "warmup": 300, "chains": 4},
        "nuts_sizes": tuple(product(SIZES, RANKS)), "max_iter": 100,
        "pictures": {"features": 200, "draws": 200, "warmup": 200},
    },
    quick={
        "rows": 500, "seeds": (0,), "sizes": (25,), "ranks": (2,), "beyond": ("turns=2/r=5",),
        "chain_lengths": {"draws": 10, "warmup": 5}, "gibbs_lengths": {"draws": 10, "warmup": 5, "chains": 2},
        "cholesky_ranks": (), "nuts_lengths": {"draws": 5, "warmup": 5, "chains": 2}, "nuts_sizes": ((25, 2),),
        "max_iter": 2, "pictures": {"features": 10, "draws": 5, "warmup": 5},
    },
    cells=cells,
    blocks=(
        Text(
            "RMSE of the log price by longitude and latitude; the first half of the authors' row order trains, the "
            "rest tests. Numbers of the kernels are the authors'; ours by type-II maximum likelihood stand beside."
        ),
        Table("california_gp", "The GP, with the authors' numbers and with ours", gp_table),
        Picture(
            "california_curves",
            "Train and test RMSE by the number of random features, mean and sd over draws of the features.",
            "Errors fall with the number of features; from 100 on r = 5 and 10 are below full rank on test rows.",
            draw_curves,
        ),
        Table("california_curves", "The same in numbers", curves_table),
        Table("california_claims", "What the paper says of its figure, and what we find", claims_table),
        Table(
            "california_mixing",
            "R-hat and effective draws, of f and of parameters; the latter are not identified, for U may be turned "
            "and W turned back, and draws of NUTS are turned at random, so that theirs always look mixed",
            mixing_table,
        ),
        Table("california_beyond", "Models that the paper does not have", beyond_table),
        Picture(
            "california_map",
            "Test prices as they are and as the r = 2 model predicts them, coloured by percentile.",
            "Two maps of California: prices are high along the coast, and predictions follow them.",
        ),
        *(
            Picture(
                name,
                f"The four summands of f for r = 2, last draw: {what}.",
                f"Four maps, one for each summand of f, {what}; each is strong in another part.",
            )
            for name, (what, _) in VIEWS.items()
        ),
    ),
)  # fmt: skip

CALIFORNIA_CHOICE = Experiment(
    name="california_choice",
    title="California: models with chains on held-out training rows",
    group="choices",
    protocol=PROTOCOL,
    data=("california",),
    settings={"rows": None, "candidates": tuple(CANDIDATES), "chain_lengths": {"draws": 150, "warmup": 100}},
    quick={"rows": 500, "candidates": ("turns=1/r=5",), "chain_lengths": {"draws": 10, "warmup": 5}},
    cells=choice_cells,
    blocks=(Table("california_choice", "Number of turns and rank", chosen_table),),
)  # fmt: skip
