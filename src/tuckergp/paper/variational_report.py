"""The documentation's table of variational inference beside Gibbs sampling, from its results file alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tuckergp.paper.tables import Results, cells_of, rows_of, shown
from tuckergp.paper.variational import DATA, METHODS

__all__ = ["TABLES", "variational_table"]


def variational_table(results: Results) -> str:
    """Test RMSE, coverage, log density, sd of f, sweeps and CPU seconds of every method on every data set."""
    lines = []
    for where, title in DATA.items():
        for name, (method, _) in METHODS.items():
            found = cells_of(results, f"{where}/{name}/")
            if found:
                errors = [shown(found, figure) for figure in ("test_rmse", "coverage", "log_density", "std_f")]
                median = [
                    f"{np.median([cell[figure] for cell in found]):.0f}" for figure in ("sweeps", "fit_cpu_seconds")
                ]
                lines.append([title, method, *errors, *median])
    head = [
        "data",
        "inference",
        "test RMSE",
        "90 % intervals cover",
        "log density",
        "sd of f",
        "sweeps",
        "CPU seconds of learning",
    ]
    return rows_of(head, lines)


TABLES: dict[str, dict[str, Callable[[Results], str]]] = {"variational.json": {"variational": variational_table}}
"""By results file, then by the name that stands in the page's marker."""
