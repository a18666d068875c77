"""Pictures of the California and wind experiments (extra ``plot``).

    python -m tuckergp.paper.regression_figures -o docs/figures --results benchmarks/results

Maps of prices as they are and as predicted, the summands of the paper's r = 2 model in both colourings with two zooms,
errors against the number of features, and the twelve stations.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tuckergp import TuckerGPRegressor
from tuckergp.data.datasets import load_california, load_wind
from tuckergp.errors import InputError
from tuckergp.features import Fourier
from tuckergp.inference import Gibbs
from tuckergp.paper import california, wind
from tuckergp.paper.cells import Part, Split, tucker
from tuckergp.paper.tables import Results, cells_of, mean_and_sd

__all__ = ["app", "california_pictures", "curves", "wind_pictures"]

LOS_ANGELES = (-119.0, -117.0, 33.4, 34.5)
BAY = (-123.2, -121.4, 36.8, 38.4)
DPI, COLOURS = 90, 200
BEHIND = "0.85"
"""On grey the pale middle of the colours is seen."""
FIRST_DAYS = 365
"""How much of the stations' last year is drawn for the model with a chain."""


def figure(rows: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    """Axes to draw on, with no window."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Figures need matplotlib: pip install 'tuckergp[plot]'.") from error
    made = Figure(figsize=(width, height), layout="constrained")
    return made, np.asarray(made.subplots(rows, columns, squeeze=False))


def save(made: Any, path: Path) -> None:
    """Write a picture of few colours, which is small, beside; then put it in place."""
    from PIL import Image  # comes with matplotlib

    beside, whole = path.with_name(f".{path.name}"), BytesIO()
    made.savefig(whole, format="png", dpi=DPI)
    Image.open(whole).convert("RGB").quantize(COLOURS).save(beside, format="PNG", optimize=True)
    beside.replace(path)


def maps(model: Any, split: Split) -> Any:
    """Test prices as they are and as predicted, coloured by percentile of the true ones."""
    made, axes = figure(1, 2, 9.0, 4.6)
    order = np.sort(split.test.y)
    panels = {"true log price": split.test.y, "predicted": model.predict(split.test.X)}
    for ax, (title, values) in zip(axes[0], panels.items(), strict=True):
        place = np.searchsorted(order, values) / len(order)
        drawn = ax.scatter(
            split.test.X["longitude"],
            split.test.X["latitude"],
            c=place,
            cmap="RdBu_r",
            vmin=0,
            vmax=1,
            s=2,
            linewidths=0,
        )
        ax.set(title=title, xlabel="longitude", ylabel="latitude", aspect=1.25, facecolor=BEHIND)
    bar = made.colorbar(drawn, ax=axes[0], shrink=0.8, ticks=[0, 0.5, 1])
    bar.ax.set_yticklabels([f"{np.exp(np.quantile(order, q)) / 1000:.0f} k$" for q in (0, 0.5, 1)])
    return made


def components(model: TuckerGPRegressor, split: Split) -> dict[str, Any]:
    """The four summands of the last draw: by percentile, evenly coloured, and two zooms; figures by name."""
    views: dict[str, dict[str, Any]] = {
        "california_components": {},
        "california_components_uniform": {"colour": "uniform"},
        "california_components_la": {"extent": LOS_ANGELES},
        "california_components_bay": {"extent": BAY},
    }
    found = {}
    for name, options in views.items():
        found[name], axes = figure(2, 2, 9.0, 8.0)
        model.plot_components(split.test.X, columns=("longitude", "latitude"), axes=axes.ravel(), **options)
    return found


def curves(results: Results) -> Any:
    """Train and test RMSE against the number of features, with the spread over seeds: the paper's figure."""
    made, axes = figure(1, 2, 9.0, 4.0)
    models = {"full rank": ("full/n={n}/", "tab:purple", "-")}
    for r, colour in zip(california.RANKS, ("tab:blue", "tab:orange", "tab:green"), strict=True):
        models[f"r = {r}, Gibbs"] = (f"gibbs/n={{n}}/r={r}/", colour, "-")
        models[f"r = {r}, NUTS"] = (f"nuts/n={{n}}/r={r}/", colour, "none")
    for ax, part in zip(axes[0], ("train", "test"), strict=True):
        for title, (pattern, colour, line) in models.items():
            found = [
                (n, *mean_and_sd(cells_of(results, pattern.format(n=n)), f"{part}_rmse")) for n in california.SIZES
            ]
            there = [(n, mean, sd or 0.0) for n, mean, sd in found if mean is not None]
            if there:
                n, mean, sd = zip(*there, strict=True)
                ax.errorbar(
                    n,
                    mean,
                    sd,
                    label=title,
                    color=colour,
                    linestyle=line,
                    marker="x" if line == "none" else "o",
                    markersize=4,
                    capsize=2,
                )
        for cell in cells_of(results, "gp/given"):
            ax.axhline(cell[f"{part}_rmse"], color="grey", linestyle="--", label="GP")
        ax.set(title=f"{part} RMSE", xlabel="features a mode, n", xscale="log", xticks=california.SIZES)
        ax.set_xticks(california.SIZES, labels=list(map(str, california.SIZES)), minor=False)
        ax.minorticks_off()
    axes[0, 1].legend(fontsize="x-small")
    return made


def stations(model: Any, part: Part, days: tuple[float, float]) -> Any:
    """Speed at every station, true, predicted, and where 95 % of new values are expected."""
    inside = (part.X["day"] >= days[0]) & (part.X["day"] < days[1])
    part = part.take(np.flatnonzero(inside))
    mean, band = model.predict(part.X, quantiles=[0.025, 0.975])
    made, axes = figure(6, 2, 11.0, 12.0)
    for ax, station in zip(axes.ravel(), dict.fromkeys(part.X["station"]), strict=True):
        at = np.flatnonzero(part.X["station"] == station)
        at = at[np.argsort(part.X["day"][at])]
        year = 1961 + part.X["day"][at] / wind.YEAR
        ax.plot(year, part.y[at], color="lightskyblue", linewidth=0.5, label="observed")
        ax.fill_between(year, band[at, 0], band[at, 1], color="tab:blue", alpha=0.2, linewidth=0, label="95 % band")
        ax.plot(year, mean[at], color="goldenrod", linewidth=1, label="mean")
        ax.set(title=station, ylabel="knots")
    axes[0, 0].legend(fontsize="x-small", loc="upper right")
    return made


app = typer.Typer(add_completion=False)


@app.command()
def main(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the pictures.")],
    results: Annotated[Path | None, typer.Option(help="Folder with the results of the experiments.")] = None,
    data: Annotated[Path | None, typer.Option(help="The folder that holds the data.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Less data, short chains.")] = False,
) -> None:
    """Draw all pictures."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        _draw(output, results, data, quick)
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def california_pictures(split: Split, quick: bool = False) -> dict[str, Any]:
    """The map, and the summands of the paper's r = 2 model with 200 features a mode; figures by name."""
    modes = california.modes_of(california.GIVEN, Fourier(20 if quick else 200, pairs=False))
    model = tucker(modes, 2, Gibbs(**_lengths(quick)), 0, split, core="full")  # type: ignore[arg-type]
    return {"california_map": maps(model, split)} | components(model, split)


def wind_pictures(split: Split, numbers: dict[str, float] | None, quick: bool = False) -> dict[str, Any]:
    """The paper's r = 5 model, and the last year of a model with a chain of days; figures by name."""
    lengths = _lengths(quick)
    model = tucker(wind.modes_of(numbers), 5, Gibbs(**lengths), 0, split, core="full")  # type: ignore[arg-type]
    last = float(split.test.X["day"].max()) + 1
    setting = replace(list(wind.BEYOND.values())[-1], draws=lengths["draws"], warmup=lengths["warmup"])
    return {
        "wind": stations(model, split.test, (0.0, last)),
        "wind_chain": stations(setting.fit(split, 0), split.test, (last - FIRST_DAYS, last)),
    }


def _lengths(quick: bool) -> dict[str, int]:
    return {"draws": 10, "warmup": 10} if quick else {"draws": 200, "warmup": 200}


def _draw(output: Path, results: Path | None, data: Path | None, quick: bool) -> None:
    def stored(name: str) -> Results | None:
        path = results and results / f"{name}.json"
        return json.loads(path.read_text()) if path and path.is_file() else None

    found = california_pictures(california.split_of(load_california(data), quick), quick)
    if prices := stored("california"):
        found["california_curves"] = curves(prices)
    knots = stored("wind")
    numbers = knots and knots["cells"]["gp"]["hyperparameters"]
    found |= wind_pictures(wind.split_of(load_wind(data), quick), numbers, quick)
    for name, made in found.items():
        save(made, output / f"{name}.png")


if __name__ == "__main__":
    sys.exit(app())
