"""The documentation's tables of the theory experiment, from its results file alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tuckergp.paper.tables import Results, rows_of
from tuckergp.paper.theory import MODES, RANKS
from tuckergp.paper.theory_entries import CORES

__all__ = ["TABLES", "bias_table", "distance_table", "errors_table", "maxima_table", "moments_table", "rates_table"]

TITLES = {"full": "full", "identity": "identity", "sparse": "sparse, Q = 4 r"}


def moments_table(results: Results) -> str:
    """The first four moments of an entry with standard errors, and the fourth in closed form."""
    lines = []
    for core in CORES:
        for modes in MODES:
            for r in RANKS:
                cell = results["cells"].get(f"entries/{core}/D={modes}/r={r}")
                if cell:
                    found = [_with_error(*cell[f"moment {k}"]) for k in (1, 2, 3, 4)]
                    lines.append([f"{TITLES[core]}, D = {modes}", str(r), *found, f"{cell['fourth']:.3f}"])
    return rows_of(["core", "r", "mean", "second", "third", "fourth", "fourth, theory"], lines)


def distance_table(results: Results) -> str:
    """The largest distance to the normal distribution function by rank; in brackets the leading term of theory."""
    lines = []
    for core in CORES:
        for modes in MODES:
            cells = [results["cells"].get(f"entries/{core}/D={modes}/r={r}") for r in RANKS]
            row = [f"{cell['kolmogorov']:.4f} ({cell['leading']:.4f})" if cell else "" for cell in cells]
            if any(row):
                lines.append([f"{TITLES[core]}, D = {modes}", *row])
    return rows_of(["Kolmogorov distance", *(f"r = {r}" for r in RANKS)], lines)


def errors_table(results: Results) -> str:
    """Root mean squared error of the kernel over pairs of inputs; in brackets that of theory."""
    return _by_size(results, "rms", theory=True)


def maxima_table(results: Results) -> str:
    """The largest error of the kernel over pairs of inputs."""
    return _by_size(results, "max")


def _by_size(results: Results, figure: str, theory: bool = False) -> str:
    lines, sizes = [], []
    for title, name, cell in _features(results, "errors"):
        sizes = cell["n"]
        spreads = cell[f"{figure} sd"] or [None] * len(sizes)
        row = [_significant(value, sd) for value, sd in zip(cell[figure], spreads, strict=True)]
        if theory and "theory" in cell:
            row = [f"{shown} ({value:.3g})" for shown, value in zip(row, cell["theory"], strict=True)]
        lines.append([title, name, *row])
    return rows_of(["inputs, kernel", "features", *(f"n = {n}" for n in sizes)], lines)


def rates_table(results: Results) -> str:
    """Slope of log error against log n, and the mean error with its sign at the largest n."""
    lines = []
    for title, name, cell in _features(results, "errors"):
        slope = "" if cell["slope"] is None else f"{cell['slope']:.2f}"
        spread = "" if cell["slope sd"] is None else f" ± {cell['slope sd']:.2f}"
        signed = _significant(cell["signed"][-1], (cell["signed sd"] or [None])[-1])
        theory = "-1/2" if "theory" in cell else ""
        lines.append([title, name, slope + spread, theory, signed, f"{cell['zero']:.3g}"])
    head = ["inputs, kernel", "features", "slope", "theory", "mean error, most features", "RMS of the kernel itself"]
    return rows_of(head, lines)


def bias_table(results: Results) -> str:
    """Whether maps are unbiased, and whether their variance is what theory says."""
    lines = []
    for title, name, cell in _features(results, "bias"):
        figures = [f"{cell['rms z']:.2f}", f"{cell['max z']:.2f}", f"{cell['variance']:.3f}"]
        lines.append([title, name, str(cell["n"]), str(cell["maps"]), str(cell["pairs"]), *figures])
    head = ["inputs, kernel", "features", "n", "maps", "pairs", "RMS of z", "largest z", "variance / theory"]
    return rows_of(head, lines)


def _features(results: Results, kind: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Inputs and kernel, feature map, cell."""
    found = []
    for key, cell in results["cells"].items():
        start, _, rest = key.partition("/")
        if start == kind:
            title, _, name = rest.partition("/")
            found.append((title, name, cell))
    return found


def _with_error(mean: float, error: float) -> str:
    return f"{mean:.3f} ± {error:.3f}"


def _significant(value: float, sd: float | None) -> str:
    return f"{value:.2g}" + ("" if sd is None else f" ± {sd:.1g}")


TABLES: dict[str, dict[str, Callable[[Results], str]]] = {
    "theory.json": {
        "theory_moments": moments_table,
        "theory_distance": distance_table,
        "theory_errors": errors_table,
        "theory_maxima": maxima_table,
        "theory_rates": rates_table,
        "theory_bias": bias_table,
    }
}
"""By results file, then by the name that stands in the page's marker."""
