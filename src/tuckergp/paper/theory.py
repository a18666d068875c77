"""The paper's theory, measured: entries of W x_d U_d' converge to N(0, 1), inner products of features to kernels.

No model is learned here. `tuckergp.paper.theory_entries` and `tuckergp.paper.theory_features` compute the figures and
their theoretical values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtri

from tuckergp.paper.experiment import Cells, Experiment, Figures, Picture, Rows, Table, Text, Work
from tuckergp.paper.pictures import figure
from tuckergp.paper.run import Run
from tuckergp.paper.theory_entries import CORES, LEVELS, summary
from tuckergp.paper.theory_features import bias, errors, hashed_cases, smooth_cases, spread

__all__ = ["THEORY"]

MODES = (2, 3)
RANKS = (1, 2, 5, 10, 20, 50)
TITLES = {"full": "full", "identity": "identity", "sparse": "sparse, Q = 4 r"}


def cells(run: Run) -> Work:
    """All cells of the tables and figures."""
    at = run.settings
    work: dict[str, Callable[[], Figures]] = {}
    for core, modes, r in product(CORES, MODES, at["ranks"]):
        work[f"entries/{core}/D={modes}/r={r}"] = partial(summary, core, modes, r, at["entries"])
    for title, case in (smooth_cases(run.load("california")) | hashed_cases(run.load("ml-100k"))).items():
        for name in case.maps:
            work[f"errors/{title}/{name}"] = partial(errors, case, name, at["sizes"], at["seeds"])
            if spread(name, case.kernel, case.inputs.take(np.array([0]))) is not None:
                work[f"bias/{title}/{name}"] = partial(
                    bias, case, name, at["bias_size"], at["bias_maps"], at["bias_inputs"]
                )
    return work


def entries(cells: Cells) -> Iterator[tuple[str, dict[int, Figures]]]:
    """Titles of cores and numbers of modes, with the cells by rank."""
    for core, modes in product(CORES, MODES):
        names = {r: f"entries/{core}/D={modes}/r={r}" for r in RANKS}
        by_rank = {r: cells[name] for r, name in names.items() if name in cells}
        if by_rank:
            yield f"{TITLES[core]}, D = {modes}", by_rank


def moments_table(cells: Cells) -> Rows:
    """The first four moments of an entry with standard errors, and the fourth in closed form."""
    rows = [["core", "r", "mean", "second", "third", "fourth", "fourth, theory"]]
    for title, by_rank in entries(cells):
        for r, cell in by_rank.items():
            moments = ["{:.3f} ± {:.3f}".format(*cell[f"moment {k}"]) for k in (1, 2, 3, 4)]
            rows.append([title, str(r), *moments, f"{cell['fourth']:.3f}"])
    return rows


def distance_table(cells: Cells) -> Rows:
    """The largest distance to the normal distribution function by rank; in brackets the leading term in theory."""
    rows = [["Kolmogorov distance", *(f"r = {r}" for r in RANKS)]]
    for title, by_rank in entries(cells):
        shown = {r: f"{cell['kolmogorov']:.4f} ({cell['leading']:.4f})" for r, cell in by_rank.items()}
        rows.append([title, *(shown.get(r, "") for r in RANKS)])
    return rows


def features(cells: Cells, kind: str) -> list[tuple[str, str, Figures]]:
    """The title of inputs and kernel, the feature map, and the figures of each cell of a kind."""
    split = [(name.split("/"), cell) for name, cell in cells.items() if name.startswith(f"{kind}/")]
    return [(title, name, cell) for (_, title, name), cell in split]


def errors_table(cells: Cells, what: str = "rms") -> Rows:
    """An error of the kernel over pairs of inputs by the number of features; in brackets its theoretical value."""
    lines = features(cells, "errors")
    rows = [["inputs, kernel", "features", *(f"n = {n}" for n in (lines[0][2]["n"] if lines else ()))]]
    for title, name, cell in lines:
        spreads = cell[f"{what} sd"] or [None] * len(cell["n"])
        row = [_significant(value, sd) for value, sd in zip(cell[what], spreads, strict=True)]
        if what == "rms" and "theory" in cell:
            row = [f"{shown} ({value:.3g})" for shown, value in zip(row, cell["theory"], strict=True)]
        rows.append([title, name, *row])
    return rows


def rates_table(cells: Cells) -> Rows:
    """Slope of log error against log n, and the mean error with its sign at the largest n."""
    rows = [["inputs, kernel", "features", "slope", "theory", "mean error, most features", "RMS of the kernel itself"]]
    for title, name, cell in features(cells, "errors"):
        slope = "" if cell["slope"] is None else f"{cell['slope']:.2f}"
        sd = "" if cell["slope sd"] is None else f" ± {cell['slope sd']:.2f}"
        signed = _significant(cell["signed"][-1], (cell["signed sd"] or [None])[-1])
        rows.append([title, name, slope + sd, "-1/2" if "theory" in cell else "", signed, f"{cell['zero']:.3g}"])
    return rows


def bias_table(cells: Cells) -> Rows:
    """Whether maps are unbiased, and whether their variance is what theory says."""
    rows = [["inputs, kernel", "features", "n", "maps", "pairs", "RMS of z", "largest z", "variance / theory"]]
    for title, name, cell in features(cells, "bias"):
        counts = [str(cell[key]) for key in ("n", "maps", "pairs")]
        z = [f"{cell[key]:.2f}" for key in ("rms z", "max z")]
        rows.append([title, name, *counts, *z, f"{cell['variance']:.3f}"])
    return rows


def _significant(value: float, sd: float | None) -> str:
    return f"{value:.2g}" + ("" if sd is None else f" ± {sd:.1g}")


def draw_quantiles(cells: Cells) -> Any:
    """Quantiles of entries against those of N(0, 1): one panel per core and number of modes, one line per r."""
    made, axes = figure(len(MODES), len(CORES), 9.0, 6.0)
    normal, by_title = ndtri(LEVELS), dict(entries(cells))
    for i, modes in enumerate(MODES):
        for ax, core in zip(axes[i], CORES, strict=True):
            ax.plot(normal, normal, color="tab:gray", linewidth=0.8)
            for r, cell in by_title.get(f"{TITLES[core]}, D = {modes}", {}).items():
                ax.plot(normal, cell["quantiles"], linewidth=1.2, label=f"r = {r}")
            ax.set(title=f"{core} core, D = {modes}", xlabel="N(0, 1)", ylabel="entry")
    axes[0, 0].legend(fontsize=7)
    return made


def draw_errors(cells: Cells) -> Any:
    """Root mean squared error of the kernel against the number of features, both logarithmic."""
    panels: dict[str, list[tuple[str, Figures]]] = {}
    for title, name, cell in features(cells, "errors"):
        hashed = "hashing" in name
        panels.setdefault("hashing, MovieLens" if hashed else title, []).append((title if hashed else name, cell))
    if not panels:
        return None
    down = -(-len(panels) // 2)
    made, axes = figure(down, 2, 8.0, 3.4 * down)
    for ax in axes.ravel()[len(panels) :]:
        ax.set_axis_off()
    for ax, (title, lines) in zip(axes.ravel(), panels.items(), strict=False):
        for name, cell in lines:
            ax.loglog(cell["n"], cell["rms"], marker="o", markersize=3, linewidth=1.2, label=name)
        n = np.array(lines[0][1]["n"], dtype=float)
        ax.loglog(n, lines[0][1]["rms"][0] * np.sqrt(n[0] / n), color="tab:gray", linewidth=0.8, label="slope -1/2")
        ax.set(title=title, xlabel="n")
        ax.minorticks_off()
        ax.set_xticks(n, [f"{size:.0f}" for size in n], fontsize=7)
        ax.legend(fontsize=6)
    for ax in axes[:, 0]:
        ax.set_ylabel("RMS error of the kernel")
    return made


THEORY = Experiment(
    name="theory",
    title="Convergence of entries, and of features to their kernel",
    group="theory",
    protocol="prior draws with the default scales; features of fixed real inputs, seeds from 0 on",
    data=("ml-100k", "california"),
    settings={
        "ranks": RANKS, "entries": 200_000, "sizes": (16, 32, 64, 128, 256, 512), "seeds": 10, "bias_size": 64,
        "bias_maps": 400, "bias_inputs": 40,
    },
    quick={"ranks": (1, 5), "entries": 1_000, "sizes": (16, 32), "seeds": 2, "bias_maps": 10},
    cells=cells,
    blocks=(
        Text(
            "The appendix proves that an entry of W with all U multiplied in tends to N(0, 1) as r grows. Draws from "
            "the prior beside the normal, by rank, and beside closed forms of the fourth moment."
        ),
        Picture(
            "theory_quantiles",
            "Quantiles of entries against those of N(0, 1), by rank.",
            "Q-Q plots: tails are heavy for r = 1 and lie on the diagonal from about r = 20 on.",
            draw_quantiles,
        ),
        Table(
            "theory_distance",
            "Largest distance to the distribution function of N(0, 1); in brackets the leading term of theory",
            distance_table,
        ),
        Table("theory_moments", "Moments of an entry", moments_table),
        Text(
            "Features stand for a kernel: random Fourier and hashed ones are unbiased with variance of order 1/n, "
            "Nystrom and pivoted Cholesky use the inputs and do better."
        ),
        Picture(
            "theory_errors",
            "Root mean squared error of the kernel against the number of features.",
            "Lines of random features fall with slope -1/2; Nystrom and Cholesky fall faster where kernels are smooth.",
            draw_errors,
        ),
        Table("theory_errors", "Root mean squared error of the kernel; in brackets that of theory", errors_table),
        Table("theory_maxima", "Largest error of the kernel", partial(errors_table, what="max")),
        Table("theory_rates", "How fast errors fall", rates_table),
        Table("theory_bias", "Whether maps are unbiased, and their variance", bias_table),
    ),
)  # fmt: skip
