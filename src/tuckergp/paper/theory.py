"""What the paper proves or states, measured: entries of W x_d U_d' tend to N(0, 1), features tend to their kernel.

    python -m tuckergp.paper.theory test -o theory.json

No model is learned here. `tuckergp.paper.theory_entries` and `tuckergp.paper.theory_features` have the
figures and what theory says of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import typer

from tuckergp.errors import InputError
from tuckergp.paper.cells import Cells, Data, Figures, Only, Output, Quick, fill, named, store_of
from tuckergp.paper.theory_entries import CORES, summary
from tuckergp.paper.theory_features import bias, errors, hashed_cases, smooth_cases, spread

__all__ = ["BIAS_SIZE", "CORES", "MODES", "PROTOCOL", "RANKS", "SIZES", "app", "cells"]

PROTOCOL = "prior draws with the default scales; features of fixed real inputs, seeds from 0 on"
MODES = (2, 3)
RANKS = (1, 2, 5, 10, 20, 50)
ENTRIES = 200_000
SIZES = (16, 32, 64, 128, 256, 512)
SEEDS = 10
BIAS_SIZE, BIAS_MAPS, BIAS_INPUTS = 64, 400, 40
QUICK_RANKS, QUICK_ENTRIES, QUICK_SIZES, QUICK_SEEDS, QUICK_MAPS = (1, 5), 2_000, (16, 64), 2, 20

app = typer.Typer(add_completion=False, help=__doc__)


def cells(data: Path | None = None, quick: bool = False) -> Cells:
    """All that the tables are made of."""
    ranks, count = (QUICK_RANKS, QUICK_ENTRIES) if quick else (RANKS, ENTRIES)
    sizes, seeds, maps = (QUICK_SIZES, QUICK_SEEDS, QUICK_MAPS) if quick else (SIZES, SEEDS, BIAS_MAPS)
    found: dict[str, Callable[[], Figures]] = {}
    for core in CORES:
        for modes in MODES:
            for r in ranks:
                found[f"entries/{core}/D={modes}/r={r}"] = partial(summary, core, modes, r, count)
    for title, case in (smooth_cases(data) | hashed_cases(data)).items():
        for name in case.maps:
            found[f"errors/{title}/{name}"] = partial(errors, case, name, sizes, seeds)
            if spread(name, case.kernel, case.inputs.take(np.array([0]))) is not None:
                found[f"bias/{title}/{name}"] = partial(bias, case, name, BIAS_SIZE, maps, BIAS_INPUTS)
    return found


@app.callback()
def _several() -> None:
    """What the paper proves or states, measured."""


@app.command("test")
def evaluate(data: Data = None, output: Output = None, only: Only = "", quick: Quick = False) -> None:
    """Draw entries and features, and compare them with what theory says."""
    try:
        store = store_of("theory", "test", PROTOCOL, output, quick)
        fill(store, named(cells(data, quick), only), lambda line: typer.echo(line[:200], err=True))
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    sys.exit(app())
