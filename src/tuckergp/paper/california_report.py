"""The documentation's tables of the California experiment, from its results files alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tuckergp.paper.california import BEYOND, RANKS, SIZES
from tuckergp.paper.tables import Results, cells_of, mean_and_sd, rows_of, shown

__all__ = ["TABLES", "beyond_table", "choice_table", "claims_table", "curves_table", "mixing_table"]

Pair: TypeAlias = tuple[int, float, float]
"""n, our figure, the other."""

RECORDS = {"full": 0.2979, "r=2": 0.3299, "r=5": 0.2866, "r=10": 0.2778}
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


def curves_table(results: Results) -> str:
    """Train and test RMSE by the number of features: the paper's figure as numbers."""
    models = {"full rank": "full/n={n}/", "Gibbs": "gibbs/n={n}/r={r}/", "NUTS": "nuts/n={n}/r={r}/"}
    lines = []
    for title, pattern in models.items():
        for r in RANKS if "{r}" in pattern else (0,):
            name = f"TGP r = {r}, {title}" if r else title
            row = []
            for n in SIZES:
                found = cells_of(results, pattern.format(n=n, r=r))
                row.append(f"{shown(found, 'train_rmse')} / {shown(found, 'test_rmse')}" if found else "")
            record = RECORDS.get(f"r={r}" if r else "full", "")
            lines.append([name, *row, str(record)])
    for title, name in {"GP, the authors' numbers": "gp/given", "GP, type-II ML": "gp/learned"}.items():
        found = cells_of(results, name)
        if found:
            figures = f"{shown(found, 'train_rmse')} / {shown(found, 'test_rmse')}"
            lines.append([title, figures, figures, figures, figures, ""])
    return rows_of(["train / test RMSE", *(f"n = {n}" for n in SIZES), "paper, n = 200"], lines)


def gp_table(results: Results) -> str:
    """The two exact GPs: log marginal likelihood, errors, numbers."""
    lines = []
    for title, name in {"the authors' numbers": "gp/given", "type-II maximum likelihood": "gp/learned"}.items():
        for cell in cells_of(results, name):
            numbers = cell["hyperparameters"]
            roots = [f"{numbers[key] ** 0.5:.4f}" for key in ("scale", "noise")]
            scales = [f"{numbers[f'{key}__lengthscale']:.4f}" for key in ("latitude", "longitude")]
            errors = [f"{cell[key]:.4f}" for key in ("train_rmse", "test_rmse")]
            lines.append([title, f"{cell['log_marginal_likelihood']:.1f}", *errors, *roots, *scales])
    head = ["GP", "log likelihood", "train RMSE", "test RMSE", "signal sd", "noise sd", "latitude", "longitude"]
    return rows_of(head, lines)


def mixing_table(results: Results) -> str:
    """R-hat and ESS of parameters and of f, the paper's beside them."""
    lines = []
    for r in RANKS:
        for i, n in enumerate(SIZES):
            nuts, gibbs = (cells_of(results, f"{kind}/n={n}/r={r}/seed 0") for kind in ("nuts", "gibbs"))
            row = [f"r = {r}, n = {n}", PAPER_RHAT[r][i], PAPER_ESS[r][i]]
            for cell in (nuts, gibbs):
                for what in ("parameters", "f"):
                    row.append(_pair(cell, what, "rhat", 2) + "; " + _pair(cell, what, "ess", 0) if cell else "")
            lines.append(row)
    head = [
        "", "paper: R-hat, parameters", "paper: ESS, parameters", "NUTS: parameters", "NUTS: f", "Gibbs: parameters",
        "Gibbs: f",
    ]  # fmt: skip
    return rows_of(head, lines)


def _pair(found: list[dict[str, Any]], what: str, figure: str, digits: int) -> str:
    mean, sd = found[0][what][figure]
    return f"{mean:.{digits}f} ± {sd:.{digits}f}"


def claims_table(results: Results) -> str:
    """What the paper says of its figure, and whether it is so here: means over the seeds that both sides have."""
    gp = cells_of(results, "gp/given")
    lines = []
    for kind, title in {"gibbs": "Gibbs", "nuts": "NUTS"}.items():

        def against(r: int, other: str, figure: str, kind: str = kind) -> list[Pair]:
            sides = {n: (f"{kind}/n={n}/r={r}/", other.format(n=n)) for n in SIZES}
            found = [(n, *_on_common_seeds(results, ours, theirs, figure)) for n, (ours, theirs) in sides.items()]
            return [(n, ours, theirs) for n, ours, theirs in found if ours is not None and theirs is not None]

        below = _verdict(against(5, "full/n={n}/", "test_rmse"), lower)
        lines.append([f"r = 5 below full rank for all n ({title})", *below])
        ten = [(n, mean_and_sd(cells_of(results, f"{kind}/n={n}/r=10/"), "test_rmse")[0]) for n in SIZES if n >= 100]
        pairs = [(n, ours, float(cell["test_rmse"])) for n, ours in ten for cell in gp if ours is not None]
        lines.append([f"r = 10 below the GP for n >= 100 ({title})", *_verdict(pairs, lower)])
        for r in RANKS:
            train, test = (against(r, "full/n={n}/", f"{part}_rmse") for part in ("train", "test"))
            (one, said), (two, also) = _verdict(train, higher), _verdict(test, lower)
            verdict = one and ("pass" if one == two == "pass" else "fail")
            claim = f"r = {r}: higher training and lower test error than full rank ({title})"
            lines.append([claim, verdict, f"train: {said}; test: {also}"])
    return rows_of(["claim", "", "ours and the other"], [line for line in lines if line[1]])


def lower(a: float, b: float) -> bool:
    """Whether a is below b."""
    return a < b


def higher(a: float, b: float) -> bool:
    """Whether a is above b."""
    return a > b


def _on_common_seeds(results: Results, ours: str, theirs: str, figure: str) -> tuple[float | None, float | None]:
    """Mean figures of two models, over the seeds that both were run with."""
    seeds = [
        {name.removeprefix(start): cell for name, cell in results["cells"].items() if name.startswith(start)}
        for start in (ours, theirs)
    ]
    common = [seed for seed in seeds[0] if seed in seeds[1]]
    found = [mean_and_sd([cells[seed] for seed in common], figure)[0] for cells in seeds]
    return found[0], found[1]


def _verdict(pairs: list[Pair], holds: Callable[[float, float], bool]) -> tuple[str, str]:
    said = ", ".join(f"n = {n}: {a:.4f} and {b:.4f}" for n, a, b in pairs)
    return ("pass" if all(holds(a, b) for _, a, b in pairs) else "fail") if pairs else "", said


def beyond_table(results: Results) -> str:
    """Models that the paper does not have, and a random forest."""
    titles = {
        "cholesky/r=5/": "squared exponential, exact features, r = 5",
        **{f"beyond/{name}/": title_of(name) for name in BEYOND},
        "forest": "random forest on longitude and latitude",
    }
    lines = []
    for name, title in titles.items():
        found = cells_of(results, name)
        if found:
            seconds = f"{np.median([cell['seconds'] for cell in found]):.0f}"
            cover = shown(found, "coverage", 3) if "coverage" in found[0] else ""
            lines.append([title, shown(found, "train_rmse"), shown(found, "test_rmse"), cover, seconds])
    return rows_of(["model", "train RMSE", "test RMSE", "90 % intervals cover", "seconds"], lines)


def title_of(name: str) -> str:
    """A model with chains in words."""
    turns, _, rank = name.removeprefix("turns=").partition("/r=")
    return f"chains, r = {rank}" + ("" if turns == "1" else f", mean of {turns} turns of the axes")


def choice_table(results: Results) -> str:
    """RMSE on held-out training rows."""
    found = sorted(results["cells"].items(), key=lambda pair: float(pair[1]["test_rmse"]))
    lines = [[title_of(name), f"{cell['test_rmse']:.4f}", f"{cell['seconds']:.0f}"] for name, cell in found]
    return rows_of(["model", "RMSE on held-out training rows", "seconds"], lines)


TABLES: dict[str, dict[str, Callable[[Results], str]]] = {
    "california.json": {
        "california_curves": curves_table,
        "california_gp": gp_table,
        "california_mixing": mixing_table,
        "california_claims": claims_table,
        "california_beyond": beyond_table,
    },
    "california_choice.json": {"california_choice": choice_table},
}
"""By results file, then by the name that stands in the page's marker."""
