"""Bayesian PMF on MovieLens 100K with its authors' settings, with which the paper compares.

Identity features on either side, W = I, r = 15. The factors of a user are N(mu, Lambda^-1), (mu, Lambda) has a
Gaussian-Wishart prior with nu_0 = r, W_0 = I, beta_0 = 2, and the noise precision is 2: none of these is tuned. Chains
begin at the MAP estimate of PMF, with the settings that were chosen for it on validation parts. Predictions are
averaged over the draws and clipped to 1..5.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import numpy as np
import numpy.typing as npt

from tuckergp.evaluation.metrics import rmse
from tuckergp.inference import Gibbs
from tuckergp.inference.base import Problem
from tuckergp.inference.resuming import ChainValues, ModeValues
from tuckergp.kernels import Identity
from tuckergp.likelihoods import Gaussian
from tuckergp.model.mode import Mode
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.paper.experiment import Cells, Experiment, Figures, Rows, Table, Work
from tuckergp.paper.movielens_data import Split, design_of, split_of
from tuckergp.paper.movielens_search import HIGHEST, LOWEST, RANK, chosen, refit
from tuckergp.paper.run import Run, quietly
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.running.loop import sample
from tuckergp.running.start import Start

__all__ = ["MOVIELENS_BPMF", "PAPER", "sampler", "score"]

PAPER = (0.9024, 0.0050)
"""Mean and sd over the five splits, as the paper reports it."""
NOISE_PRECISION, BETA = 2.0, 2.0
# A gamma prior of this shape stays at its mean.
SURE = 1e9


class BayesianPMF(Gibbs):
    """Gibbs sampling with the Wishart prior of Bayesian PMF: nu_0 = r degrees of freedom, W_0 = I.

    Under it Lambda^-1 has no mean, so that no ``dof`` of `Gibbs` gives it.
    """

    def precision_prior(self, model: TuckerModel, d: int) -> PrecisionPrior:
        """The prior of Lambda of a mode."""
        return PrecisionPrior(float(model.core.ranks[d]), 1.0, scalar=False)


def sampler(**lengths: int) -> BayesianPMF:
    """Gibbs sampling with the hyperpriors of Bayesian PMF."""
    return BayesianPMF(
        tau_shape=BETA * SURE,
        tau_rate=SURE,
        alpha_shape=NOISE_PRECISION * SURE,
        alpha_rate=SURE,
        **lengths,  # type: ignore[arg-type]
    )


def score(split: Split, seed: int, lengths: dict[str, int]) -> Figures:
    """Fit PMF, then sample starting from its estimate; test RMSE of both."""
    settings, epochs = chosen("pmf", split.number)
    pmf = refit(split, settings, epochs, seed)
    modes = [Mode(name, Identity()) for name in ("user_id", "item_id")]
    design, held = (design_of(split.entities, modes, part, seed) for part in (split.train, split.test))
    core, likelihood = make_core("identity", [RANK, RANK]), Gaussian(1 / NOISE_PRECISION)
    # with W_0 = I the mean of Lambda is r I; chains begin elsewhere, so nothing else depends on sigma_u
    model = TuckerModel(core, likelihood, np.full(2, RANK**-0.5), 1.0)
    problem = Problem(model, design, split.train.rating - pmf.mean)
    parameters = pmf.algorithm.parameters(pmf.problem, pmf.state)
    psi = pmf.problem.model.factors(parameters, pmf.problem.design)
    values = ChainValues(tuple(map(_begin, psi)), np.zeros(0), {"alpha": np.asarray(NOISE_PRECISION)})
    gibbs = sampler(**lengths)
    start = Start(likelihood, [values])
    starts = [start.state(chain, gibbs, problem, seed) for chain in range(gibbs.chains)]
    draws, _ = quietly(sample, gibbs, problem, seed, None, starts)
    mean = pmf.mean + draws.predicted(held).f.mean(axis=0)
    return {
        "seed": seed,
        "settings": {"rank": RANK, "pmf": asdict(settings), "epochs": epochs, **lengths},
        "pmf_rmse": round(pmf.score(split.test), 5),
        "test_rmse": round(rmse(split.test.rating, np.clip(mean, LOWEST, HIGHEST)), 5),
    }


def _begin(psi: npt.NDArray[np.float64]) -> ModeValues:
    """The start of a mode: its factors, and their precision about their mean."""
    spread = np.cov(psi.T, bias=True) + 1e-6 * np.eye(psi.shape[1])
    precision = np.asarray(np.linalg.inv(spread), dtype=np.float64)
    return ModeValues(np.ascontiguousarray(psi), precision, np.array([BETA]), np.ones(len(psi)))


def cells(run: Run) -> Work:
    """One cell per split, ``bpmf/u1`` and so on."""
    at, movielens = run.settings, run.load("ml-100k")
    splits = [split_of(movielens, number, at["seed"]) for number in at["splits"]]
    return {f"bpmf/u{split.number}": partial(score, split, at["seed"], at["lengths"]) for split in splits}


def bpmf_table(cells: Cells) -> Rows:
    """Test RMSE split by split, of the MAP estimate and of sampling."""
    titles = {"pmf_rmse": "PMF, where chains begin", "test_rmse": "Bayesian PMF"}
    rows = [[title, *(f"{cell[key]:.4f}" for cell in cells.values())] for key, title in titles.items()]
    return [["test RMSE", *(name.partition("/")[2] for name in cells)], *rows]


MOVIELENS_BPMF = Experiment(
    name="movielens_bpmf",
    title="Bayesian PMF with the hyperpriors of its authors",
    group="movielens",
    protocol="hyperpriors of the method's authors, nothing tuned; test part scored once; predictions clipped to 1..5",
    data=("ml-100k",),
    settings={"seed": 0, "splits": (1, 2, 3, 4, 5), "rank": RANK, "lengths": {"draws": 250, "warmup": 50}},
    quick={"splits": (1,), "lengths": {"draws": 20, "warmup": 5}},
    cells=cells,
    blocks=(Table("movielens_bpmf", "Bayesian PMF, begun at PMF", bpmf_table),),
)
