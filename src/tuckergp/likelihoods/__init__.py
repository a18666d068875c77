"""What an observation says about f: one likelihood in each file, listed here by the names that users know."""

from tuckergp.likelihoods.base import Likelihood
from tuckergp.likelihoods.clicks import Clicks
from tuckergp.likelihoods.gaussian import Gaussian
from tuckergp.likelihoods.negative_binomial import NegativeBinomial
from tuckergp.likelihoods.ordinal import Bernoulli, Ordinal
from tuckergp.likelihoods.poisson import Poisson
from tuckergp.likelihoods.student import Student

__all__ = [
    "LIKELIHOODS",
    "Bernoulli",
    "Clicks",
    "Gaussian",
    "Likelihood",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "Student",
]

LIKELIHOODS: dict[str, type[Likelihood]] = {
    kind.name: kind for kind in (Gaussian, Student, Ordinal, Bernoulli, Poisson, NegativeBinomial, Clicks)
}
