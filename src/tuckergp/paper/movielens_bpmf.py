"""Bayesian PMF on MovieLens 100K, as its authors set it and as the paper compares with.

    python -m tuckergp.paper.movielens_bpmf -o movielens_bpmf.json

Identity features on either side, W = I, r = 15. The factors of a user are N(mu, Lambda^-1), (mu, Lambda) has a
Gaussian-Wishart prior with nu_0 = r, W_0 = I, beta_0 = 2, and the noise precision is 2: none of these is tuned. Chains
begin at the most probable point of PMF, with the settings that were chosen for it on validation parts. Predictions are
averaged over the draws and clipped to 1..5.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from tuckergp.data.datasets import MovieLens, load_movielens_100k
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.evaluation.metrics import rmse
from tuckergp.inference import Gibbs
from tuckergp.inference.base import Problem
from tuckergp.kernels import Identity
from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Mode
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.paper.cells import Cells, fill
from tuckergp.paper.cells import store_of as cells_store
from tuckergp.paper.movielens import Split, chosen, refit
from tuckergp.paper.movielens_data import design_of, entities_of, ratings_of
from tuckergp.paper.movielens_search import HIGHEST, LOWEST, RANK, Settings
from tuckergp.running.loop import sample
from tuckergp.running.start import ModeValues, Start, Values

__all__ = ["PAPER", "app", "cells", "score"]

PAPER = (0.9024, 0.0050)
"""Mean and sd over the five splits, as the paper reports it."""
PROTOCOL = "hyperpriors of the method's authors, nothing tuned; test part scored once; predictions clipped to 1..5"
NOISE_PRECISION, BETA = 2.0, 2.0
# A gamma prior of this shape stays at its mean.
SURE = 1e9
LENGTHS = {"draws": 250, "warmup": 50}
QUICK_LENGTHS = {"draws": 20, "warmup": 5}
SPLITS, SEED = (1, 2, 3, 4, 5), 0


def sampler(**lengths: int) -> Gibbs:
    """Gibbs sampling with the hyperpriors of Bayesian PMF: one degree of freedom more than r - 1 is nu_0 = r."""
    return Gibbs(
        dof=1.0,
        tau_shape=BETA * SURE,
        tau_rate=SURE,
        alpha_shape=NOISE_PRECISION * SURE,
        alpha_rate=SURE,
        **lengths,  # type: ignore[arg-type]
    )


def score(split: Split, epochs: int, settings: Settings, seed: int, lengths: dict[str, int]) -> dict[str, Any]:
    """PMF, then sampling from there; test RMSE of both."""
    pmf = refit(split, settings, epochs, seed)
    modes = [Mode(name, Identity()) for name in ("user_id", "item_id")]
    design, held = (design_of(split.entities, modes, part, seed) for part in (split.train, split.test))
    core = make_core("identity", [RANK, RANK])
    # W_0 = I: a Wishart of mean r I, so that an entry of a row has variance 1 / r
    model = TuckerModel(core, Gaussian(1 / NOISE_PRECISION), np.full(2, RANK**-0.5), 1.0)
    problem = Problem(model, design, split.train.rating - pmf.mean)
    found = pmf.algorithm.parameters(pmf.problem, pmf.state)
    psi = pmf.problem.model.factors(found, pmf.problem.design)
    values = Values(tuple(map(_begin, psi)), np.zeros(0), NOISE_PRECISION, np.zeros(0))
    gibbs = sampler(**lengths)
    starts = Start(0.0, 1.0, [values]).states(gibbs, problem, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        draws, _ = sample(gibbs, problem, seed, starts=starts)
    mean = pmf.mean + np.mean([f for f, _ in draws.functions(held)], axis=0)
    return {
        "seed": seed,
        "settings": {"rank": RANK, "pmf": settings.__dict__, "epochs": epochs, **lengths},
        "pmf_rmse": round(pmf.score(split.test), 5),
        "test_rmse": round(rmse(split.test.rating, np.clip(mean, LOWEST, HIGHEST)), 5),
    }


def _begin(psi: npt.NDArray[np.float64]) -> ModeValues:
    """Factors, and the precision that they have about their mean."""
    spread = np.cov(psi.T, bias=True) + 1e-6 * np.eye(psi.shape[1])
    precision = np.asarray(np.linalg.inv(spread), dtype=np.float64)
    return ModeValues(np.ascontiguousarray(psi), precision, np.array([BETA]), np.ones(len(psi)))


def cells(movielens: MovieLens, quick: bool = False) -> Cells:
    """One a split, ``u1`` and so on."""
    entities, found = entities_of(movielens), {}
    for number in SPLITS[:1] if quick else SPLITS:
        train, test = (ratings_of(entities, part) for part in movielens.split(number))
        known = chosen()[f"pmf/u{number}"]
        split, settings = Split(entities, train, test, SEED, number), Settings.from_json(known["settings"])
        lengths = QUICK_LENGTHS if quick else LENGTHS
        found[f"bpmf/u{number}"] = partial(score, split, known["epochs"], settings, SEED, lengths)
    return found


store_of = partial(cells_store, "movielens_bpmf", "", PROTOCOL)
"""Where the cells are kept: takes a path, or None, and whether the run is quick."""

app = typer.Typer(add_completion=False)


@app.command()
def main(
    quick: Annotated[bool, typer.Option("--quick", help="One split, few draws.")] = False,
    data: Annotated[Path | None, typer.Option(help="The folder that holds ml-100k.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Results; a finished cell is kept.")] = None,
) -> None:
    """Test RMSE of Bayesian PMF on MovieLens 100K."""
    try:
        store = store_of(output, quick)
        fill(store, cells(load_movielens_100k(data), quick), lambda line: typer.echo(line, err=True))
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    sys.exit(app())
