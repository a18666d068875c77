"""Tables of the experiments on samplers and hyperparameters, and of many columns, from their results alone."""

from __future__ import annotations

from collections.abc import Callable

from tuckergp.paper.columns import MODELS
from tuckergp.paper.tables import Results, rows_of

__all__ = ["TABLES", "columns_table", "hyper_table", "time_table"]


def hyper_table(results: Results) -> str:
    """Cost and error of hyperparameters by cross-validation and by sampling."""
    cells = results["cells"]
    searched = [cell for name, cell in cells.items() if name.startswith("grid/")]
    lines = []

    def line(title: str, cell: Results, before: float) -> list[str]:
        return [title, f"{cell['rmse']:.4f}", f"{cell['coverage']:.1%}", f"{before + cell['cpu_seconds']:.1f}"]

    if cell := cells.get("cross-validated"):
        title = f"best of {len(searched)} on held-out ratings ({cell['chosen'].removeprefix('grid/')})"
        lines.append(line(title, cell, sum(one["cpu_seconds"] for one in searched)))
    if cell := cells.get("sampled"):
        lines.append(line("drawn with the rest", cell, 0.0))
    return rows_of(["prior scales and noise", "test RMSE", "90 % intervals cover", "CPU seconds"], lines)


def time_table(results: Results) -> str:
    """Errors and intervals of SGLD and of Gibbs sampling as time goes on."""
    lines = []
    for key, title in (("gibbs", "Gibbs"), ("sgld", "SGLD")):
        cell = results["cells"].get(key)
        if cell is not None:
            for count, cpu, rmse, held in zip(*(cell[n] for n in ("draws", "cpu", "rmse", "coverage")), strict=True):
                lines.append([title, str(count), f"{cpu:.1f}", f"{rmse:.4f}", f"{held:.1%}"])
    return rows_of(["sampler", "draws", "CPU seconds", "test RMSE", "90 % intervals cover"], lines)


def columns_table(results: Results) -> str:
    """RMSE as a share of the sd of the targets, and CPU seconds with choosing, on either data."""
    lines = []
    for name in MODELS:
        found = [results["cells"].get(f"{data}/{name}") for data in ("made", "diabetes")]
        shown = [f"{c['share']:.3f} ({c['cpu_seconds']:.0f} s)" if c else "" for c in found]
        lines.append([name, *shown])
    return rows_of(["model", "made, 12 columns", "diabetes, 10 columns"], lines)


TABLES: dict[str, dict[str, Callable[[Results], str]]] = {
    "ratings.json": {"ratings_hyper": hyper_table, "ratings_time": time_table},
    "columns.json": {"columns": columns_table},
}
"""By results file, then by the name of the table."""
