"""What an algorithm says of itself: all that the rest of the package knows of it.

An algorithm subclasses `Sampled`, `Converging` or `tuckergp.inference.most_probable.MostProbable`, and is listed in
`tuckergp.inference`. No other code asks which one it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tuckergp.checks import Checked, one_of, positive, setting, whole
from tuckergp.errors import InputError
from tuckergp.inference.base import Problem
from tuckergp.inference.cost import state_bytes
from tuckergp.inference.resuming import ChainValues
from tuckergp.likelihoods import Likelihood
from tuckergp.model.cores import CoreSpec
from tuckergp.model.design import Design
from tuckergp.model.draw import Draw
from tuckergp.model.tucker import Core, TuckerModel, make_core, refuse_learned

__all__ = ["Converging", "HyperPriors", "Inference", "Sampled", "model_of_function_scale", "model_of_weight_scales"]

Floats = npt.NDArray[np.float64]

# Prior standard deviation of f with an identity core, relative to that of the targets.
PRIOR_SCALE = 0.25


@dataclass(frozen=True)
class Inference(Checked):
    """A way to learn the unknowns, as estimators see it.

    A frozen dataclass; its fields are its settings, each declared with what it may be (`tuckergp.checks.setting`).

    Class attributes
    ----------------
    name : str
        What users call it.
    takes : tuple of str
        Settings of an estimator that are settings of the algorithm too, where users give its name alone: some of
        ``draws``, ``warmup``, ``chains``, ``noise``.
    of_noise : tuple of str
        Its settings that mean nothing where the likelihood has no noise.
    point : bool
        Whether it arrives at a single MAP estimate, which has no uncertainty.
    any_residual : bool
        Whether it learns residuals of any kind, or weights of features alone.
    for_ratings : bool
        Whether recommenders take it.
    weighs_blocks : bool
        Whether it learns how much each block of features matters so well that recommenders may add some that perhaps
        do not help: drift, context, co-ratings.
    resumes : bool
        Whether it can start from the values of an earlier run (`resumed`).
    """

    name: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    of_noise: ClassVar[tuple[str, ...]] = ()
    point: ClassVar[bool] = False
    any_residual: ClassVar[bool] = False
    for_ratings: ClassVar[bool] = False
    weighs_blocks: ClassVar[bool] = False
    resumes: ClassVar[bool] = False

    def _label(self, name: str) -> str:
        return f"{type(self).__name__}: {name}"

    @classmethod
    def learns(cls, likelihood: type[Likelihood]) -> bool:
        """Whether it can learn with this likelihood; all can with Gaussian noise."""
        return likelihood.conjugate or cls.name in likelihood.inferences

    def check_likelihood(self, likelihood: type[Likelihood]) -> None:
        """Refuse a likelihood that it cannot learn, and settings that this likelihood would ignore."""
        owner = type(self).__name__
        if not self.learns(likelihood):
            names = one_of(*likelihood.inferences)
            raise InputError(f"likelihood={likelihood.name!r} needs inference={names}, not {owner}.")
        if not likelihood.has_noise and any(getattr(self, name) != getattr(type(self), name) for name in self.of_noise):
            verb, them = ("are", "them") if len(self.of_noise) > 1 else ("is", "it")
            raise InputError(
                f"{owner}: {' and '.join(self.of_noise)} {verb} for a Gaussian likelihood; with "
                f"likelihood={likelihood.name!r} leave {them} out."
            )

    def core(self, spec: CoreSpec | Core, ranks: Sequence[int], rng: np.random.Generator, n: int = 0) -> Core:
        """The core that the user asked for, for n observations; an error for one that it cannot learn."""
        core = make_core(spec, ranks, rng)
        refuse_learned(core, f"{type(self).__name__} is")
        return core

    def model(self, core: Core, likelihood: Likelihood) -> TuckerModel:
        """The model with the prior scales of its settings, and with the noise if it is one of them."""
        return model_of_weight_scales(core, likelihood)

    def step_seconds(self, problem: Problem) -> float:
        """About how many seconds a step takes; 0 where that is not known."""
        return 0.0

    def step_bytes(self, design: Design, core: Core) -> int:
        """How much memory a step needs at the least: that of the factors and weights."""
        return state_bytes(design, core)

    def settled(self, core: Core, misfit: Callable[[Inference], float]) -> Inference:
        """The algorithm with a value for each setting that it leaves open.

        ``misfit`` tries a candidate on held-out observations; it is infinite where that is not possible.
        """
        return self

    def settled_as(self, model: TuckerModel) -> Inference:
        """The algorithm with the values of a model fitted before for settings that it leaves open."""
        return self

    def block_prior(self) -> tuple[float, float] | None:
        """Shape and rate of the gamma prior of a block's precision; None where that is fixed to 1."""
        return None

    def resumed(self, problem: Problem, values: ChainValues, rng: np.random.Generator) -> Any:
        """The state with the values of an earlier run, if it `resumes`; the problem may have more rows."""
        raise NotImplementedError

    def grid(self, unit: float, learned: bool, ranges: bool) -> dict[str, Any]:
        """Values of its settings that are worth trying for ratings, or with ``ranges`` tuples (low, high[, "log"]).

        ``unit`` is the prior standard deviation of U that gives f the variance of the ratings; ``learned`` says
        whether the core is.
        """
        raise InputError(
            f"{type(self).__name__} learns noise and prior scales, so there is no default grid; give one, such as of "
            "ranks."
        )


@dataclass(frozen=True)
class Sampled(Inference):
    """An algorithm that draws from the posterior, for `tuckergp.running.loop.sample`; see `Drawing` in `base`."""

    takes: ClassVar[tuple[str, ...]] = ("draws", "warmup", "chains")

    draws: int = setting(300, whole(1))
    warmup: int = setting(300, whole(0))
    thin: int = setting(1, whole(1))
    chains: int = setting(1, whole(1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thin > self.draws:
            raise InputError(f"{self._label('thin')}={self.thin} would keep none of {self.draws} draws; lower it.")

    @property
    def n_steps(self) -> int:
        """Steps of one chain."""
        return self.warmup + self.draws


class Converging(Inference):
    """An algorithm that arrives somewhere, for `tuckergp.running.loop.run`; see `Algorithm` in `base`."""

    def draws_of(self, problem: Problem, state: Any, rng: np.random.Generator) -> list[Draw]:
        """What predictions need of the last state: draws from a distribution, or one MAP estimate."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class HyperPriors(Inference):
    """The priors of an algorithm that learns the hyperparameters: Lambda and tau of each mode, the noise precision."""

    of_noise: ClassVar[tuple[str, ...]] = ("alpha_shape", "alpha_rate")

    dof: float = setting(60.0, positive())
    scale: float | None = setting(None, positive() | one_of(None))
    tau_shape: float = setting(1.0, positive())
    tau_rate: float = setting(0.1, positive())
    alpha_shape: float = setting(1.0, positive())
    alpha_rate: float = setting(0.5, positive())

    def model(self, core: Core, likelihood: Likelihood) -> TuckerModel:
        """The model with the prior scale of the settings."""
        return model_of_function_scale(core, likelihood, self.scale)


def model_of_function_scale(core: Core, likelihood: Likelihood, scale: float | None) -> TuckerModel:
    """The model whose f has this prior standard deviation from residuals alone, relative to that of the targets.

    None is 1, but 0.25 with an identity core of several modes.
    """
    scale = scale or (1.0 if core.learned or core.modes == 1 else PRIOR_SCALE)
    sigma_u, sigma_w = core.default_sigma_u(), core.default_sigma_w()
    if core.leaves_out:  # an entry that leaves modes out has fewer factors to share the scale among
        return TuckerModel(core, likelihood, sigma_u, sigma_w * scale)
    return TuckerModel(core, likelihood, sigma_u * scale ** (1 / core.modes), sigma_w)


def model_of_weight_scales(
    core: Core, likelihood: Likelihood, sigma_u: float | None = None, sigma_w: float | None = None
) -> TuckerModel:
    """The model with these prior standard deviations of U and W.

    None matches moments: whatever the rank, the prior variance of f is the product of the modes' k(x, x).
    """
    scales = core.default_sigma_u() if sigma_u is None else np.full(core.modes, float(sigma_u))
    return TuckerModel(core, likelihood, scales, sigma_w or core.default_sigma_w())
