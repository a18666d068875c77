"""What an observation says about f: one likelihood a file."""

from tuckergp.likelihoods.formulas import Gaussian, Likelihood, Ordinal, Poisson

__all__ = ["Gaussian", "Likelihood", "Ordinal", "Poisson"]
