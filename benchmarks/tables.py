"""Tables of the benchmarks in Markdown, from their results files and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS = {"ours": "ours", "myfm": "myFM", "implicit": "implicit", "cmfrec": "cmfrec"}


def gibbs_times(report: dict[str, Any]) -> str:
    """Seconds of a sweep, wall time, and ratios to every peer."""
    peers = [name for name in PROGRAMS if name != "ours"]
    ratios = [f"ours / {PROGRAMS[name]}" for name in peers]
    lines = [
        f"| seconds a sweep, wall | {' | '.join([*PROGRAMS.values(), *ratios])} |",
        "|" + "---|" * (1 + len(PROGRAMS) + len(peers)),
    ]
    for title, rows in report["results"].items():
        times = [f"{rows[name]['wall_seconds']:.3g}" if name in rows else "" for name in PROGRAMS]
        by = [f"{rows[name]['ours_by_this_wall']:.2f}" if name in rows else "" for name in peers]
        lines.append(f"| {' | '.join([title.replace(' | ', ', '), *times, *by])} |")
    return "\n".join(lines) + "\n"


def gibbs_targets(report: dict[str, Any]) -> str:
    """What was to be reached, and whether it was."""
    large, small = (
        {int(title.rsplit(" ", 1)[1]): rows for title, rows in report["results"].items() if title.startswith(data)}
        for data in ("synthetic", "movielens")
    )
    checks = [
        ("synthetic, rank 16: ours / implicit", large[16]["implicit"]["ours_by_this_wall"], 0.5),
        ("synthetic, rank 64: ours / implicit", large[64]["implicit"]["ours_by_this_wall"], 1.0),
        ("synthetic, rank 16: ours / myFM", large[16]["myfm"]["ours_by_this_wall"], 0.1),
        ("MovieLens with attributes, rank 16: ours / myFM", small[16]["myfm"]["ours_by_this_wall"], 1 / 3),
        ("MovieLens with attributes, rank 64: ours / myFM", small[64]["myfm"]["ours_by_this_wall"], 1 / 3),
    ]
    checks += [
        (f"synthetic, rank {rank}: memory grown / (ratings and factors)", 2 * r["growth_bytes"] / r["bound_bytes"], 2.0)
        for rank, r in ((rank, large[rank]["ours"]) for rank in (16, 64))
    ]
    first = report["first_fit_seconds"]
    checks += [
        ("first fit, nothing compiled: seconds", first["cold"]["fit, wall"], 20.0),
        ("first fit, from numba's cache: seconds", first["warm"]["fit, wall"], 2.0),
    ]
    lines = ["| | at most | measured | |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {bound:.3g} | {value:.2f} | {'met' if value <= bound else '**missed**'} |"
        for name, value, bound in checks
    ]
    return "\n".join(lines) + "\n"


def gibbs_peak(report: dict[str, Any]) -> str:
    """Speed of the statistics of rows beside that of matrix products."""
    (row,) = (rows["statistics"] for rows in report["results"].values() if "statistics" in rows)
    rate, single, double = (row[f"{name}_gigaflops"] for name in ("statistics", "sgemm", "dgemm"))
    lines = [
        "| Gflop/s, rank 64, 2 threads | | share reached |",
        "|---|---|---|",
        f"| statistics of rows | {rate:.1f} | |",
        f"| float32 matrix product | {single:.1f} | {rate / single:.0%} |",
        f"| float64 matrix product | {double:.1f} | {rate / double:.0%} |",
    ]
    return "\n".join(lines) + "\n"


def recommend_times(report: dict[str, Any]) -> str:
    """Seconds to recommend to all users, and ratios."""
    names = {"ours": "ours", "implicit": "implicit", "product": "the product alone, at full width"}
    lines = ["| best 10 of all users | wall s | CPU s | ours / it, wall | ours / it, CPU | memory grown, GiB |"]
    lines.append("|" + "---|" * 6)
    for name, row in report["results"].items():
        by = [f"{row[key]:.2f}" if key in row else "" for key in ("ours_by_this_wall", "ours_by_this_cpu")]
        grown = f"{row['growth_bytes'] / 2**30:.2f}" if row.get("growth_bytes") else ""
        lines.append(
            f"| {names[name]} | {row['wall_seconds']:.1f} | {row['cpu_seconds']:.1f} | {' | '.join(by)} | {grown} |"
        )
    return "\n".join(lines) + "\n"


def recommend_targets(report: dict[str, Any]) -> str:
    """What was to be reached, and whether it was."""
    rows, fitting = report["results"], report["fitting"]
    peak = max(value for name, value in fitting.items() if name.startswith("peak") and value)
    checks = [
        ("ours / implicit", rows["implicit"]["ours_by_this_wall"], 1.0),
        ("memory grown while recommending, GiB", rows["ours"]["growth_bytes"] / 2**30, 2.0),
        ("20 million ratings from Parquet to a model of 30 sweeps, GiB at the peak", peak / 2**30, 6.0),
    ]
    lines = ["| | at most | measured | |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {bound:.3g} | {value:.2f} | {'met' if value <= bound else '**missed**'} |"
        for name, value, bound in checks
    ]
    return "\n".join(lines) + "\n"


TABLES: dict[str, dict[str, Callable[[dict[str, Any]], str]]] = {
    "gibbs.json": {"gibbs_times": gibbs_times, "gibbs_targets": gibbs_targets, "gibbs_peak": gibbs_peak},
    "recommend.json": {"recommend_times": recommend_times, "recommend_targets": recommend_targets},
}
"""By results file, then by the name that stands in the page's marker."""
