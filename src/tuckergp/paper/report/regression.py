"""The sections on California house prices and on the Irish wind."""

from __future__ import annotations

from pathlib import Path

from tuckergp.paper import california_report, wind_report
from tuckergp.paper.regression_figures import curves
from tuckergp.paper.report.blocks import Block, Section, Table, Text
from tuckergp.paper.report.stored import Drawer, Stored, kept

__all__ = ["sections"]


def sections(stored: Stored, draw: Drawer, folder: Path) -> list[Section]:
    """What there is of both."""
    return [*_california(stored, draw, folder), *_wind(stored, folder)]


def _california(stored: Stored, draw: Drawer, folder: Path) -> list[Section]:
    results = stored.get("california")
    if results is None:
        return []
    blocks: list[Block] = [
        Text(
            "RMSE of the log price by longitude and latitude; the first half of the authors' row order trains, the "
            "rest tests. Numbers of the kernels are the authors'; ours by type-II maximum likelihood stand beside."
        ),
        Table("The GP, with the authors' numbers and with ours", california_report.gp_table(results)),
        draw(
            "california_curves",
            "Train and test RMSE by the number of random features, mean and sd over draws of the features.",
            "Errors fall with the number of features; from 100 on r = 5 and 10 are below full rank on test rows.",
            lambda: curves(results),
        ),
        Table("The same in numbers", california_report.curves_table(results)),
        Table("What the paper says of its figure, and what we find", california_report.claims_table(results)),
        Table(
            "R-hat and effective draws, of f and of parameters; the latter are not identified, for U may be turned "
            "and W turned back, and draws of NUTS are turned at random, so that theirs always look mixed",
            california_report.mixing_table(results),
        ),
        Table("Models that the paper does not have", california_report.beyond_table(results)),
        *kept(
            folder,
            "california_map",
            "Test prices as they are and as the r = 2 model predicts them, coloured by percentile.",
            "Two maps of California: prices are high along the coast, and predictions follow them.",
        ),
    ]
    views = {
        "california_components": "coloured by percentile",
        "california_components_uniform": "evenly coloured",
        "california_components_la": "Los Angeles",
        "california_components_bay": "the Bay area",
    }
    for name, what in views.items():
        alt = f"Four maps, one a summand of f, {what}; each is strong in another part."
        blocks += kept(folder, name, f"The four summands of f for r = 2, last draw: {what}.", alt)
    return [Section("california", "Space: California house prices", blocks)]


def _wind(stored: Stored, folder: Path) -> list[Section]:
    results = stored.get("wind")
    if results is None:
        return []
    blocks: list[Block] = [
        Text(
            "Daily wind at twelve stations, in knots; 20,000 values train, the other 58,888 test. Errors of the "
            "paper's models are lower here than in the paper: our training values are another draw, and its numbers "
            "of the kernels are not known. As in the paper r = 5 and 10 are below the GP; r = 2 is not."
        ),
        Table("Train and test RMSE", wind_report.wind_table(results)),
        *kept(
            folder,
            "wind",
            "Twelve stations: true speeds, the mean of the paper's r = 5 model, and 95 % bands.",
            "Twelve panels of daily wind over 18 years; the mean follows the season, bands hold the daily weather.",
        ),
        *kept(
            folder,
            "wind_chain",
            "The last year by the model with a chain of days.",
            "Twelve panels of daily wind over a year; the mean follows single days closely.",
        ),
    ]
    return [Section("wind", "Space and time: Irish wind", blocks)]
