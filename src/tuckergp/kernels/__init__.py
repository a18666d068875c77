"""Kernels, which say how similar two inputs are, composed with ``+`` and ``*``.

The formulas are in `stationary` and `inner_products`; sums, products and scales, and what all kernels have, in
`algebra`. How a kernel becomes features is in `tuckergp.features`.
"""

from tuckergp.kernels.algebra import Kernel, Product, Scaled, Sum
from tuckergp.kernels.inner_products import Constant, Cosine, Identity, Linear
from tuckergp.kernels.stationary import SE, Matern12, Matern32, Matern52, Periodic, Stationary

__all__ = [
    "SE",
    "Constant",
    "Cosine",
    "Identity",
    "Kernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Product",
    "Scaled",
    "Stationary",
    "Sum",
]
