"""Ways to learn the unknowns, one in each file: a configuration with `init` and `step` on an explicit state."""

from __future__ import annotations

from tuckergp.inference.als import ALS
from tuckergp.inference.gibbs import Gibbs
from tuckergp.inference.hmc import HMC
from tuckergp.inference.nuts import NUTS
from tuckergp.inference.sgd import SGD
from tuckergp.inference.sgld import SGLD
from tuckergp.inference.vi import VI

__all__ = ["ALS", "HMC", "NUTS", "SGD", "SGLD", "VI", "Gibbs"]
