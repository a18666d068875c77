"""The section on what the paper leaves for later: other samplers, hyperparameters, sparse cores, many dimensions."""

from __future__ import annotations

from collections.abc import Callable

from tuckergp.paper import ratings_report, variational_report
from tuckergp.paper.report.blocks import Block, Section, Table, Text
from tuckergp.paper.report.charts import over_time
from tuckergp.paper.report.stored import Drawer, Stored
from tuckergp.paper.tables import Results

__all__ = ["sections"]


def sections(stored: Stored, draw: Drawer) -> list[Section]:
    """What there is of it."""
    made: dict[str, Callable[[Results, Drawer], list[Block]]] = {
        "ratings": _ratings,
        "variational": _variational,
        "columns": _columns,
    }
    blocks = [block for name, make in made.items() if name in stored for block in make(stored[name], draw)]
    return [Section("future", "The paper's future work", blocks)] if blocks else []


def _ratings(results: Results, draw: Drawer) -> list[Block]:
    hyper = Table(
        "Hyperparameters by cross-validation and by sampling: error and cost, same data",
        ratings_report.hyper_table(results),
    )
    if not {"sgld", "gibbs"} <= set(results["cells"]):
        return [hyper]
    return [
        Text(
            "A sampler that scales sub-linearly: SGLD on mini-batches of 1,000 ratings beside Gibbs sampling of the "
            "same posterior, MovieLens 100K, ratings alone, rank 15. A sweep of Gibbs sampling costs less than a pass "
            "of SGLD over the data."
        ),
        draw(
            "ratings_time",
            "Test RMSE and how often 90 % intervals hold the rating, against CPU seconds.",
            "Gibbs sampling reaches its error within seconds; SGLD takes far longer.",
            lambda: over_time(results["cells"]),
        ),
        Table("SGLD and Gibbs sampling as time goes on", ratings_report.time_table(results)),
        hyper,
    ]


def _variational(results: Results, draw: Drawer) -> list[Block]:
    return [
        Text(
            "Mean-field variational inference, which the paper found poor compared to HMC, beside Gibbs sampling of "
            "the same models."
        ),
        Table("Variational inference and Gibbs sampling", variational_report.variational_table(results)),
    ]


def _columns(results: Results, draw: Drawer) -> list[Block]:
    return [
        Text(
            "Many dimensions: a mode a column, so that a full core would have r^D entries, and sparse cores instead. "
            "RMSE as a share of the sd of the targets; CPU seconds include choosing settings."
        ),
        Table("Sparse cores beside a GP and gradient boosting", ratings_report.columns_table(results)),
    ]
