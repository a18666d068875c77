"""Tables of `sparse_core.py` in Markdown, from its results file and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PASSES = {
    "gradient": "gradient of the log joint",
    "rows of one mode": "statistics of the rows of a mode",
    "core": "draw of the core",
    "learned core": "draw of a learned pattern",
    "sweep": "Gibbs sweep",
}


def sparse_core_entries(report: dict[str, Any]) -> str:
    """Microseconds an observation by the number of entries."""
    return _times(report["by_entries"], "Q")


def sparse_core_modes(report: dict[str, Any]) -> str:
    """Microseconds an observation by the number of modes."""
    return _times(report["by_modes"], "D")


def _times(part: dict[str, Any], letter: str) -> str:
    cells = part["microseconds"]
    sizes = [f"{letter} = {int(size):,}" for size in cells]
    lines = [
        f"| CPU microseconds an observation | {' | '.join(sizes)} | slope from {letter} = {part['slopes_from']} on |",
        "|" + "---|" * (2 + len(sizes)),
    ]
    for name, title in PASSES.items():
        times = [f"{cell[name]:.2g}" if cell[name] < 10 else f"{cell[name]:.0f}" for cell in cells.values()]
        slope = f"{part['slopes'][name]:.2f}"
        lines.append(f"| {' | '.join([title, *times, slope])} |")
    return "\n".join(lines) + "\n"


def sparse_core_large(report: dict[str, Any]) -> str:
    """A core that could not be full."""
    row = report["large"]
    lines = [
        f"| D = {row['modes']}, r = {row['rank']} | entries | bytes of a draw of W | bytes of its system "
        f"| CPU seconds a sweep, {row['observations']:,} observations |",
        "|---|---|---|---|---|",
        f"| sparse | {row['entries']:,} | {row['sparse_bytes_of_a_draw']:,} | {8 * row['entries'] ** 2:,} "
        f"| {row['cpu_seconds_a_sweep']:.3f} |",
        f"| full | {row['full_entries']:,} | {row['full_bytes_of_a_draw']:,} "
        f"| {row['full_bytes_of_the_normal_matrix']:,} | |",
    ]
    return "\n".join(lines) + "\n"


TABLES: dict[str, dict[str, Callable[[dict[str, Any]], str]]] = {
    "sparse_core.json": {
        "sparse_core_entries": sparse_core_entries,
        "sparse_core_modes": sparse_core_modes,
        "sparse_core_large": sparse_core_large,
    }
}
"""By results file, then by the name that stands in the page's marker."""
