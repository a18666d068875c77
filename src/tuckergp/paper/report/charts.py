"""Charts drawn from results alone: errors with bars, learning curves, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuckergp.paper.movielens_calibration import LEVELS
from tuckergp.paper.regression_figures import figure
from tuckergp.paper.report.svg import INK
from tuckergp.paper.tables import Results

__all__ = ["calibration", "dots", "learning_curves", "over_time"]

COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple")


def dots(rows: Sequence[tuple[str, dict[str, tuple[float, float | None]]]], label: str) -> Any:
    """A row a model, a dot with its sd a source, such as the paper and ours."""
    made, axes = figure(1, 1, 8.0, 0.7 + 0.38 * len(rows))
    ax, sources = axes[0, 0], list(dict.fromkeys(source for _, found in rows for source in found))
    for k, source in enumerate(sources):
        there = [(at, *found[source]) for at, (_, found) in enumerate(rows) if source in found]
        place = [at + 0.16 * (k - (len(sources) - 1) / 2) for at, _, _ in there]
        mean, sd = [mean for _, mean, _ in there], [sd or 0.0 for _, _, sd in there]
        ax.errorbar(mean, place, xerr=sd, fmt="o", markersize=5, capsize=3, color=COLOURS[k], label=source)
    ax.set_yticks(range(len(rows)), [title for title, _ in rows])
    ax.invert_yaxis()
    ax.grid(axis="x", alpha=0.2)
    ax.set_xlabel(label)
    ax.legend(loc="best", fontsize="small")
    return made


def learning_curves(curves: Mapping[str, Results]) -> Any:
    """Training and validation RMSE after every epoch."""
    made, axes = figure(1, 1, 8.0, 5.0)
    for (title, cell), colour in zip(curves.items(), COLOURS, strict=False):
        for part, line in (("train", "--"), ("validation", "-")):
            values = cell[f"{part}_rmse"]
            axes[0, 0].plot(range(1, 1 + len(values)), values, line, color=colour, label=f"{title}, {part}")
    axes[0, 0].set(xlabel="epoch", ylabel="RMSE")
    axes[0, 0].grid(alpha=0.2)
    made.legend(loc="outside lower center", fontsize="x-small", ncols=2)
    return made


def calibration(cells: Mapping[str, Results]) -> Any:
    """Mean true rating against the mean prediction in bins, and how often intervals hold the rating."""
    made, axes = figure(1, 2, 9.0, 4.2)
    for (title, cell), colour in zip(cells.items(), COLOURS, strict=False):
        bars = [2 * error for error in cell["error"]]
        axes[0, 0].errorbar(
            cell["predicted"], cell["true"], bars, fmt="o", markersize=4, capsize=2, color=colour, label=title
        )
        held = [cell["coverage"][str(level)] for level in LEVELS]
        axes[0, 1].plot(LEVELS, held, "o-", markersize=4, color=colour, label=title)
    for ax, ends in zip(axes[0], ((2.0, 4.8), (0.45, 1.0)), strict=True):
        ax.plot(ends, ends, ":", color=INK, linewidth=1)
        ax.grid(alpha=0.2)
    axes[0, 0].set(xlabel="mean prediction", ylabel="mean rating, ± 2 standard errors", title="predicted against true")
    axes[0, 1].set(xlabel="probability of the interval", ylabel="ratings inside", title="intervals")
    axes[0, 0].legend(fontsize="small")
    return made


def over_time(cells: Mapping[str, Results]) -> Any:
    """Errors and coverage of two samplers against CPU seconds."""
    made, axes = figure(1, 2, 9.0, 4.0)
    for (key, title), colour in zip({"gibbs": "Gibbs", "sgld": "SGLD"}.items(), COLOURS, strict=False):
        if key in cells:
            for ax, part in zip(axes[0], ("rmse", "coverage"), strict=True):
                ax.semilogx(cells[key]["cpu"], cells[key][part], "o-", markersize=4, color=colour, label=title)
    axes[0, 0].set(xlabel="CPU seconds", ylabel="test RMSE")
    axes[0, 1].set(xlabel="CPU seconds", ylabel="90 % intervals cover")
    axes[0, 1].axhline(0.9, linestyle=":", color=INK, linewidth=1)
    axes[0, 0].legend(fontsize="small")
    for ax in axes[0]:
        ax.grid(alpha=0.2)
    return made
