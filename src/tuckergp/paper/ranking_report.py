"""The documentation's tables of the ranking experiment, from its results files alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from tuckergp.paper.ranking import CHOSEN, SPLITS
from tuckergp.paper.ranking_scores import CONTESTANTS

__all__ = ["TABLES", "choice_table", "decision_table", "error_table", "list_table", "parts_table"]

DEFAULT = '`TuckerRecommender()` on ratings, which takes `time="auto"`'


def list_table(results: dict[str, Any]) -> str:
    """NDCG and recall of the first ten on either split: mean and sd over seeds."""
    columns = [
        ("user", "ndcg", "by user: NDCG@10"),
        ("user", "recall", "recall@10"),
        ("user", "ndcg_all", "NDCG@10, all relevant"),
        ("time", "ndcg", "by time: NDCG@10"),
        ("time", "recall", "recall@10"),
        ("time", "ndcg_known", "NDCG@10, known users"),
        ("user", "seconds", "seconds a fit"),
    ]
    return _table(results, columns, ["popularity", "als", "bpr", "clicks", "plain", "none", "week"])


def error_table(results: dict[str, Any]) -> str:
    """RMSE on either split: mean and sd over seeds."""
    columns = [
        ("user", "rmse", "by user: RMSE"),
        ("time", "rmse", "by time: RMSE"),
        ("time", "rmse_known", "RMSE, known users"),
    ]
    return _table(results, columns, ["mean", "biases", "plain", "none", "week", "auto"])


def parts_table(results: dict[str, Any]) -> str:
    """Sizes of the parts of the first seed, and how many test users and items are new."""
    lines = [
        "| split | training ratings | test ratings | test users (new) | test items (new) | users with lists (known) |",
        "|" + "---|" * 6,
    ]
    for split, title in SPLITS.items():
        found = _cells(results, split, "counts")
        if found:
            n = found[0]
            lines.append(
                f"| {title} | {n['train']:,} | {n['test']:,} | {n['test_users']:,} ({n['new_users']:,}) "
                f"| {n['test_items']:,} ({n['new_items']:,}) | {n['ranked_users']:,} ({n['ranked_known']:,}) |"
            )
    return "\n".join(lines) + "\n"


def decision_table(results: dict[str, Any]) -> str:
    """What ``time="auto"`` decides, seed by seed, beside what either choice gives; seconds of deciding and of a fit."""
    lines = [
        "| split | decides | RMSE with weeks - without, seed by seed | seconds to decide | seconds a fit with weeks |",
        "|" + "---|" * 5,
    ]
    for split, title in SPLITS.items():
        found, week, none = (_cells(results, split, name) for name in ("auto", "week", "none"))
        if found and week and none:
            gains = ", ".join(f"{a['rmse'] - b['rmse']:+.4f}" for a, b in zip(week, none, strict=False))
            seconds = [np.median([cell["seconds"] for cell in cells]) for cells in (found, week)]
            decided = ", ".join("weeks" if cell["time"] == "week" else "no weeks" for cell in found)
            lines.append(f"| {title} | {decided} | {gains} | {seconds[0]:.0f} | {seconds[1]:.0f} |")
    return "\n".join(lines) + "\n"


def choice_table(results: dict[str, Any]) -> str:
    """Validation NDCG@10: how many settings were compared, the best and the chosen."""
    lines = ["| split | contestant | compared | chosen | its NDCG@10 | the least, the median |", "|" + "---|" * 6]
    for split, name in [(split, name) for split, chosen in CHOSEN.items() for name in chosen]:
        start = f"{split}/{name}/"
        found = {key[len(start) :]: cell for key, cell in results["cells"].items() if key.startswith(start)}
        chosen = json.dumps(CHOSEN[split][name])
        if chosen in found:
            scores = [cell["ndcg"] for cell in found.values()]
            row = [SPLITS[split], CONTESTANTS[name], str(len(found)), f"`{chosen}`", f"{found[chosen]['ndcg']:.4f}"]
            lines.append(f"| {' | '.join(row)} | {min(scores):.4f}, {np.median(scores):.4f} |")
    return "\n".join(lines) + "\n"


def tries_table(results: dict[str, Any]) -> str:
    """Validation NDCG@10 of every setting tried for clicks, on either split, best first."""
    names = list(dict.fromkeys(key.split("/", 2)[2] for key in results["cells"] if key.split("/")[1] == "clicks"))
    cells = results["cells"]
    found = {name: [cells.get(f"{split}/clicks/{name}") for split in SPLITS] for name in names}
    lines = [f"| settings | {' | '.join(SPLITS.values())} | seconds a fit |", "|" + "---|" * (2 + len(SPLITS))]
    for name, of_splits in sorted(found.items(), key=lambda pair: -(pair[1][0] or {"ndcg": 0.0})["ndcg"]):
        figures = ["" if cell is None else f"{cell['ndcg']:.4f}" for cell in of_splits]
        seconds = next(cell["seconds"] for cell in of_splits if cell is not None)
        lines.append(f"| `{name}` | {' | '.join(figures)} | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


def _cells(results: dict[str, Any], split: str, name: str) -> list[dict[str, Any]]:
    """One a seed."""
    return [cell for key, cell in results["cells"].items() if key.startswith(f"{split}/{name}/")]


def _figures(results: dict[str, Any], split: str, name: str, figure: str) -> list[float]:
    """One a seed; those of what was decided for ``auto``, which is a fit with the same draws."""
    if name != "auto":
        return [cell[figure] for cell in _cells(results, split, name) if figure in cell]
    decided = {key: cell for key, cell in results["cells"].items() if key.startswith(f"{split}/auto/")}
    taken = [key.replace("/auto/", f"/{cell['time']}/") for key, cell in decided.items()]
    return [results["cells"][key][figure] for key in taken if key in results["cells"]]


def _table(results: dict[str, Any], columns: list[tuple[str, str, str]], names: list[str]) -> str:
    lines = [f"| | {' | '.join(title for _, _, title in columns)} |", "|" + "---|" * (1 + len(columns))]
    for name in names:
        row = [_shown(_figures(results, split, name, figure), figure) for split, figure, _ in columns]
        if any(row):
            lines.append(f"| {CONTESTANTS.get(name, DEFAULT)} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _shown(values: list[float], figure: str) -> str:
    if not values:
        return ""
    if figure == "seconds":
        return f"{np.median(values):.0f}"
    spread = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}"


TABLES: dict[str, dict[str, Callable[[dict[str, Any]], str]]] = {
    "ranking.json": {
        "ranking_lists": list_table,
        "ranking_errors": error_table,
        "ranking_parts": parts_table,
        "ranking_decisions": decision_table,
    },
    "ranking_choice.json": {"ranking_choice": choice_table, "ranking_tries": tries_table},
}
"""By results file, then by the name that stands in the page's marker."""
