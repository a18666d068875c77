"""Pictures of the theory experiment (extra ``plot``): quantiles against those of N(0, 1), errors against n.

python -m tuckergp.paper.theory_figures -o docs/figures --results benchmarks/results
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy.special import ndtri

from tuckergp.paper.regression_figures import figure, save
from tuckergp.paper.tables import Results
from tuckergp.paper.theory import MODES, RANKS
from tuckergp.paper.theory_entries import CORES, LEVELS

__all__ = ["app", "errors", "quantiles"]

app = typer.Typer(add_completion=False, help=__doc__)


def quantiles(results: Results) -> Any:
    """Quantiles of entries against those of N(0, 1): a panel a core and number of modes, a line a rank."""
    made, axes = figure(len(MODES), len(CORES), 9.0, 6.0)
    normal = ndtri(LEVELS)
    for i, modes in enumerate(MODES):
        for ax, core in zip(axes[i], CORES, strict=True):
            ax.plot(normal, normal, color="tab:gray", linewidth=0.8)
            for r in RANKS:
                cell = results["cells"].get(f"entries/{core}/D={modes}/r={r}")
                if cell is not None:  # a quick run has fewer ranks
                    ax.plot(normal, cell["quantiles"], linewidth=1.2, label=f"r = {r}")
            ax.set(title=f"{core} core, D = {modes}", xlabel="N(0, 1)", ylabel="entry")
    axes[0, 0].legend(fontsize=7)
    return made


def errors(results: Results) -> Any:
    """Root mean squared error of the kernel against the number of features, both logarithmic."""
    found: dict[str, list[tuple[str, dict[str, list[float]]]]] = {}
    for key, cell in results["cells"].items():
        start, _, rest = key.partition("/")
        if start == "errors":
            title, _, name = rest.partition("/")
            found.setdefault("hashing, MovieLens" if "hashing" in name else title, []).append(
                (title if "hashing" in name else name, cell)
            )
    down = -(-len(found) // 2)
    made, axes = figure(down, 2, 8.0, 3.4 * down)
    for ax in axes.ravel()[len(found) :]:
        ax.set_axis_off()
    for ax, (title, lines) in zip(axes.ravel(), found.items(), strict=False):
        for name, cell in lines:
            ax.loglog(cell["n"], cell["rms"], marker="o", markersize=3, linewidth=1.2, label=name)
        n = np.array(lines[0][1]["n"], dtype=float)
        ax.loglog(n, lines[0][1]["rms"][0] * np.sqrt(n[0] / n), color="tab:gray", linewidth=0.8, label="slope -1/2")
        ax.set(title=title, xlabel="n")
        ax.minorticks_off()
        ax.set_xticks(n, [f"{size:.0f}" for size in n], fontsize=7)
        ax.legend(fontsize=6)
    for ax in axes[:, 0]:
        ax.set_ylabel("RMS error of the kernel")
    return made


@app.command()
def draw(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for the pictures.")],
    results: Annotated[Path, typer.Option("--results", help="The folder that holds theory.json.")],
) -> None:
    """Draw both pictures."""
    found = json.loads((results / "theory.json").read_text())
    output.mkdir(parents=True, exist_ok=True)
    save(quantiles(found), output / "theory_quantiles.png")
    save(errors(found), output / "theory_errors.png")


if __name__ == "__main__":
    sys.exit(app())
