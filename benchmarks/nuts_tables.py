"""Table of `nuts.py` in Markdown, from its results file and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAMES = {"gibbs": "Gibbs sampling", "nuts": "NUTS", "stan": "NUTS by Stan"}
TARGETS = {"gibbs": 10.0, "nuts": 3.0}


def nuts_rates(report: dict[str, Any]) -> str:
    """Effective draws a second, and ratios to Stan."""
    lines = [
        "| features a mode | | draws kept | worst R-hat | leapfrogs a draw | effective draws a CPU second, median "
        "(least) | times Stan's, median (least) | times Stan's within chains | at least |",
        "|" + "---|" * 9,
    ]
    for title, rows in report["results"].items():
        for name, row in rows.items():
            if "missing" in row:
                lines.append(f"| {title.split()[0]} | {NAMES[name]} | not run: {row['missing']} | | | | | | |")
                continue
            rate = f"{row['ess_median_a_cpu_second']:.3g} ({row['ess_min_a_cpu_second']:.2g})"
            leapfrogs = f"{row['leapfrogs']:.0f}" if "leapfrogs" in row else ""
            by = row.get("by_stan")
            ratio = f"{by['ess_median_a_cpu_second']:.3g} ({by['ess_min_a_cpu_second']:.3g})" if by else ""
            within = f"{by['ess_within_a_cpu_second']:.3g}" if by else ""
            cells = [
                title.split()[0],
                NAMES[name],
                f"{row['kept_draws']:,}",
                f"{row['rhat']:.2f}",
                leapfrogs,
                rate,
                ratio,
                within,
            ]
            lines.append(f"| {' | '.join(cells)} | {TARGETS.get(name, '')} |")
    return "\n".join(lines) + "\n"


TABLES: dict[str, dict[str, Callable[[dict[str, Any]], str]]] = {"nuts.json": {"nuts_rates": nuts_rates}}
"""By results file, then by the name that stands in the page's marker."""
