"""Warm starts: the last values of an earlier run as the start of another, on a problem that may be larger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tuckergp.inference import Inference
from tuckergp.inference.base import Problem
from tuckergp.inference.resuming import ChainValues
from tuckergp.likelihoods import Likelihood
from tuckergp.random import stream

__all__ = ["Start"]


@dataclass(frozen=True)
class Start:
    """The values of each chain, and the likelihood that they were learned with."""

    likelihood: Likelihood
    chains: Sequence[ChainValues]

    def state(self, chain: int, inference: Inference, problem: Problem, seed: int) -> Any:
        """The first state of a chain; with more chains than before, some begin with equal values."""
        return inference.resumed(problem, self.chains[chain % len(self.chains)], stream(seed, chain, 0))
