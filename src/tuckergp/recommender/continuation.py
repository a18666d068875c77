"""Further learning of a fitted recommender: the last draw of each chain, carried over to a larger design."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.inference.algorithm import Sampled
from tuckergp.inference.resuming import ChainValues, ModeValues
from tuckergp.model.design import Design
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.mode_table import ModeTable
from tuckergp.posterior.export import block_names
from tuckergp.posterior.fitted import Fit
from tuckergp.priors.hyper import block_precisions
from tuckergp.random import seed_of, stream
from tuckergp.recommender.circumstances import Context, Drift
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.layout import Layout
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.running.fit import Inference, ranks_of, seed_for
from tuckergp.running.start import Start
from tuckergp.store.trees import digest

__all__ = ["check_continuation", "continued_seed", "last_draws", "start_from"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer]


def last_draws(fit: Fit) -> Fit:
    """The fit with only the last draw of each chain."""
    fit.draws.require_kept()
    return replace(fit, draws=fit.draws.last_of_chains())


def check_continuation(fitted: FittedRecommender, settings: RecommenderSettings, inference: Inference) -> None:
    """Raise an error for settings with which the fitted model cannot go on learning."""
    fit, rank = fitted.fit, ranks_of(settings.rank, 2)[0]
    if not inference.resumes:
        name = type(inference).__name__
        raise InputError(f"partial_fit needs inference='gibbs' or 'als'; with {name} call fit with all ratings.")
    if int(fit.draws.model.core.ranks[0]) != rank:
        raise InputError(f"The model has rank {fit.draws.model.core.ranks[0]}, not {rank}; set it back, or fit again.")
    same = fit.draws.sampled == isinstance(inference, Sampled)
    if not same or fit.likelihood.name != settings.kind.name:
        raise InputError("The model was fitted with another inference or likelihood; set it back, or fit again.")
    asked = [*([Drift.name] if fitted.time else []), *([Context.name] if settings.contexts else [])]
    learned = fitted.layout.names[2:]
    if learned != asked:
        had, has = (" and ".join(names) or "neither time nor context" for names in (learned, asked))
        raise InputError(
            f"The model was fitted with {had}, and its settings now have {has}; set them back, or fit again."
        )


def continued_seed(random_state: object, checkpoint: object, last: Fit) -> int:
    """A seed that differs from those of earlier runs, and is the same for the same draws.

    Without a ``random_state`` it is that of the checkpoint, if there is one.
    """
    if random_state is None:
        return seed_for(None, checkpoint)
    arrays = (last.draws.modes, last.draws.W, last.draws.unknowns)
    return int(digest((seed_of(random_state), arrays))[:15], 16)


def start_from(
    layout: Layout, fit: Fit, new: Layout, design: Design, occasion: Table, inference: Inference, seed: int
) -> Start:
    """Carry the last draws of a fit over to the rows of a new design.

    Parameters
    ----------
    layout, fit : Layout, Fit
        With a row for every user and item of the design, as after `tuckergp.recommender.fold_in.fold_in`.
    new : Layout
        The layout of the design, which may have other features.
    design : Design
    occasion : Table
        Timestamps and contexts of the observations of the design.
    inference : Inference
        What will go on, for its prior of the precisions of blocks.
    seed : int
    """
    user = design.index[:, 0].astype(np.intp)
    rows: list[tuple[ModeTable, Ints]] = [
        (side.table, np.arange(table.n_rows)) for side, table in zip(layout.sides, design.modes, strict=False)
    ]
    for e, circumstance in enumerate(layout.circumstances, start=2):
        table, code = circumstance.realise(user, occasion)
        _, first = np.unique(design.index[:, e], return_index=True)
        rows.append((table, code[first]))
    draws, prior = fit.draws, inference.block_prior()
    psi = [draws.factors(d, table)[place] for d, (table, place) in enumerate(rows)]
    chains = []
    for c in range(len(draws)):
        rng = stream(seed, c, 0, 1)
        modes = []
        for d, (before, after) in enumerate(zip(layout.modes, new.modes, strict=True)):
            table, place = rows[d]
            mode = draws.modes[d]
            precision = np.asarray(np.linalg.inv(mode.covariance[c]) * before.residual_sd**2, dtype=np.float64)
            tau = np.ones(len(after.blocks))
            if prior is not None:
                tau = _block_precisions(mode.B[:, c], before, after, precision, prior, rng)
            noise = (
                None if mode.row_noise is None else _noise(mode.row_noise[:, c], table.groups[place], design.modes[d])
            )
            modes.append(ModeValues(np.ascontiguousarray(psi[d][:, c]), precision, tau, noise))
        unknowns = {name: values[c] for name, values in draws.unknowns.items()}
        chains.append(ChainValues(tuple(modes), draws.W[c], unknowns))
    return Start(fit.likelihood, chains)


def _block_precisions(
    B: Singles,
    before: FittedMode,
    after: FittedMode,
    precision: Floats,
    prior: tuple[float, float],
    rng: np.random.Generator,
) -> Floats:
    """tau of each block: drawn given the weights for blocks of the old model, the prior mean for others."""
    blocks = [block.columns for block in before.blocks]
    shape, rate = prior
    tau = block_precisions(B.astype(np.float64), precision, blocks, shape, rate, rng)
    known = dict(zip(block_names([before], [""]), tau, strict=True))
    return np.array([known.get(name, shape / rate) for name in block_names([after], [""])])


def _noise(factors: Singles, groups: Ints, after: ModeTable) -> Floats:
    """Noise factors of the groups of a new table, 1 for those that had none."""
    noise = np.ones(after.n_groups)
    noise[after.groups] = np.append(factors.astype(np.float64), 1.0)[groups]
    return noise
