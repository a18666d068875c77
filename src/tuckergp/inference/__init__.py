"""Ways to learn the unknowns, one in each file: a configuration with `init` and `step` on an explicit state.

`INFERENCES` lists them by the names that users know, and is all that the rest of the package knows of them.
"""

from __future__ import annotations

from tuckergp.inference.algorithm import Inference
from tuckergp.inference.als import ALS
from tuckergp.inference.gibbs import Gibbs
from tuckergp.inference.hmc import HMC
from tuckergp.inference.nuts import NUTS
from tuckergp.inference.sgd import SGD
from tuckergp.inference.sgld import SGLD
from tuckergp.inference.vi import VI

__all__ = ["ALS", "HMC", "INFERENCES", "NUTS", "SGD", "SGLD", "VI", "Gibbs", "Inference"]

INFERENCES: dict[str, type[Inference]] = {kind.name: kind for kind in (Gibbs, ALS, SGD, VI, HMC, NUTS, SGLD)}
