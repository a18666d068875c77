"""The table of `regression.py` in Markdown, from its results file and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def scaling(report: dict[str, Any]) -> str:
    """Seconds and memory by the number of observations, ours and the exact GP's."""
    lines = [
        "| observations | seconds a sweep | seconds to set up | memory added | RMSE of f after 10 draws "
        "| exact GP (scikit-learn): seconds | memory added |",
        "|" + "---|" * 7,
    ]
    for n in sorted({*map(int, report["ours"]), *map(int, report["peer"])}):
        ours, peer = (report[name].get(str(n)) for name in ("ours", "peer"))
        row = [f"{n:,}"]
        row += (
            [f"{ours['sweep_seconds']:.2f}", f"{ours['set_up_seconds']:.1f}", _megabytes(ours), f"{ours['rmse']:.3f}"]
            if ours
            else [""] * 4
        )
        row += [f"{peer['total_seconds']:.1f}", _megabytes(peer)] if peer else [""] * 2
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _megabytes(cell: dict[str, Any]) -> str:
    return f"{cell['grown_bytes'] / 1e6:,.0f} MB"


TABLES: dict[str, dict[str, Callable[[dict[str, Any]], str]]] = {"regression.json": {"regression_scaling": scaling}}
"""By results file, then by the name that stands in the page's marker."""
