"""Kernels, which say how similar two inputs are: formulas (`formulas`), composed with ``+`` and ``*`` (`algebra`)."""

from tuckergp.kernels.formulas import (
    SE,
    Constant,
    Cosine,
    Identity,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Product,
    Scaled,
    Stationary,
    Sum,
)

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
