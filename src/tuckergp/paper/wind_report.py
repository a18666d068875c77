"""The documentation's tables of the wind experiment, from its results files alone."""

from __future__ import annotations

from collections.abc import Callable

from tuckergp.paper.tables import Results, cells_of, rows_of, shown

__all__ = ["TABLES", "choice_table", "wind_table"]

ROWS = {
    "GP": ("gp", "4.8822 / 4.9915"),
    "full rank": ("full", "4.8816 / 4.9898"),
    "TGP r = 2, NUTS": ("nuts/r=2/", "4.9120 / 4.9753"),
    "TGP r = 5, NUTS": ("nuts/r=5/", "4.8996 / 4.9735"),
    "TGP r = 10, NUTS": ("nuts/r=10/", "4.8913 / 4.9754"),
    "TGP r = 2, Gibbs": ("gibbs/r=2/", ""),
    "TGP r = 5, Gibbs": ("gibbs/r=5/", ""),
    "TGP r = 10, Gibbs": ("gibbs/r=10/", ""),
}
"""Title, the beginning of the cells' names, train and test RMSE of the paper."""


def wind_table(results: Results) -> str:
    """Train and test RMSE in knots, the paper's beside them; R-hat and ESS of f."""
    rows = dict(ROWS)
    for name in dict.fromkeys(key.rpartition("/")[0] for key in results["cells"] if key.startswith("beyond/")):
        rows[title_of(name.removeprefix("beyond/"))] = (f"{name}/", "")
    lines = []
    for title, (start, paper) in rows.items():
        found = cells_of(results, start)
        if found:
            errors = [shown(found, figure) for figure in ("train_rmse", "test_rmse")]
            lines.append([title, paper, *errors, _mixing(found[0]), f"{found[0]['seconds']:.0f}"])
    return rows_of(["model", "paper: train / test", "train RMSE", "test RMSE", "R-hat; ESS of f", "seconds"], lines)


def _mixing(cell: dict[str, object]) -> str:
    found = cell.get("f", cell)
    if not isinstance(found, dict) or "rhat" not in found:
        return ""
    rhat, ess = (value[0] if isinstance(value, list) else value for value in (found["rhat"], found["ess"]))
    return f"{rhat:.2f}; {ess:.0f}"


def title_of(name: str) -> str:
    """A model with a chain of days in words."""
    return name.replace("/r=", ", r = ")


def choice_table(results: Results) -> str:
    """RMSE on held-out training values."""
    found = sorted(results["cells"].items(), key=lambda pair: float(pair[1]["test_rmse"]))
    lines = [[title_of(name), f"{cell['test_rmse']:.4f}", f"{cell['seconds']:.0f}"] for name, cell in found]
    return rows_of(["model", "RMSE on held-out training values", "seconds"], lines)


TABLES: dict[str, dict[str, Callable[[Results], str]]] = {
    "wind.json": {"wind": wind_table},
    "wind_choice.json": {"wind_choice": choice_table},
}
"""By results file, then by the name that stands in the page's marker."""
