"""The documentation's tables of the sampling experiments on MovieLens 100K, from their results files alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tuckergp.paper.movielens_gibbs import SETTINGS

__all__ = ["TABLES", "choice_table", "gibbs_table", "scarce_table"]


def gibbs_table(results: dict[str, Any]) -> str:
    """Test RMSE of every setting: mean and sd over splits of the seeds' means, sd over seeds, u1, intervals, time."""
    lines = [
        "| setting | rank | to reach | mean of u1..u5 ± sd over splits | sd over seeds | to reach on u1 | u1 "
        "| 90 % intervals cover | seconds a fit | best peer |",
        "|" + "---|" * 10,
    ]
    for key, setting in SETTINGS.items():
        scores = _by_split_and_seed(results, key, "rmse")
        if scores is None:
            continue
        by_split, by_seed = scores.mean(axis=1), scores.mean(axis=0)
        coverage, seconds = _figures(results, f"{key}/", "coverage"), _figures(results, f"{key}/", "seconds")
        row = [
            setting.title,
            str(setting.options["rank"]),
            f"{setting.reach:.4f}",
            f"{by_split.mean():.4f}" + (f" ± {by_split.std(ddof=1):.4f}" if len(by_split) > 1 else ""),
            f"{by_seed.std(ddof=1):.4f}" if len(by_seed) > 1 else "",
            "" if setting.reach_u1 is None else f"{setting.reach_u1:.4f}",
            f"{by_split[0]:.4f}",
            f"{np.mean(coverage):.1%}",
            f"{np.median(seconds):.0f}",
            setting.peer,
        ]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def choice_table(results: dict[str, Any]) -> str:
    """Validation RMSE of every rank compared, mean over the splits, the chosen one in bold."""
    lines = ["| setting | rank: mean validation RMSE |", "|---|---|"]
    for key, setting in SETTINGS.items():
        shown = []
        for rank in setting.ranks:
            values = _figures(results, f"{key}/rank {rank}/", "rmse")
            if values:
                figure = f"{rank}: {np.mean(values):.4f}"
                shown.append(f"**{figure}**" if rank == setting.options["rank"] else figure)
        if shown:
            lines.append(f"| {setting.title} | {', '.join(shown)} |")
    return "\n".join(lines) + "\n"


def scarce_table(results: dict[str, Any]) -> str:
    """Test RMSE of short and long chains and of biases alone on thinned training parts, mean over the splits."""
    names = list(dict.fromkeys(name.split("/")[2] for name in results["cells"]))
    shares = list(dict.fromkeys(name.split("/")[0] for name in results["cells"]))
    lines = [f"| training ratings kept | {' | '.join(names)} |", "|" + "---|" * (1 + len(names))]
    for share in shares:
        means = [
            np.mean([c["rmse"] for n, c in results["cells"].items() if n.startswith(f"{share}/") and n.endswith(name)])
            for name in names
        ]
        lines.append(f"| {share} | {' | '.join(f'{mean:.4f}' for mean in means)} |")
    return "\n".join(lines) + "\n"


def _figures(results: dict[str, Any], prefix: str, figure: str) -> list[float]:
    return [cell[figure] for name, cell in results["cells"].items() if name.startswith(prefix)]


def _by_split_and_seed(results: dict[str, Any], key: str, figure: str) -> Any:
    """Shape (splits, seeds), or None where a cell is missing."""
    cells = {name: cell for name, cell in results["cells"].items() if name.split("/")[0] == key}
    splits, seeds = (sorted({name.split("/")[k] for name in cells}) for k in (1, 2))
    try:
        found = [[cells[f"{key}/{split}/{seed}"][figure] for seed in seeds] for split in splits]
    except KeyError:
        return None
    return np.array(found) if found else None


TABLES: dict[str, dict[str, Callable[[dict[str, Any]], str]]] = {
    "movielens_gibbs.json": {"movielens_gibbs": gibbs_table},
    "movielens_gibbs_choice.json": {"movielens_gibbs_choice": choice_table},
    "movielens_scarce.json": {"movielens_scarce": scarce_table},
}
"""By results file, then by the name that stands in the page's marker."""
