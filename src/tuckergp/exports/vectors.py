"""What is exported: vectors of users and items, what their inner products are, and how far these are from exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.recommender.neighbours import Embeddings

__all__ = ["Vectors", "models_by"]

# Pairs of a user and an item at which compressed vectors are compared with exact ones.
PAIRS, AT_ONCE = 20_000, 1_000


@dataclass(frozen=True)
class Vectors:
    """Vectors of one part of a model.

    Attributes
    ----------
    part : {"rating", "choice"}
    meaning : str
        What ``offset + users @ items.T`` is.
    latent : bool
        Whether that is not what `predict` returns, because this is no linear function of it.
    embeddings : Embeddings
    exact : bool
        Whether products are posterior means up to rounding, or those of the nearest vectors of a smaller width.
    error : dict
        The root mean square of the difference, and the largest one, at some thousand pairs.
    link : dict
        Of choices: ``slope`` and ``intercept`` of the logistic function that turns the tendency into a probability.
    """

    part: str
    meaning: str
    latent: bool
    embeddings: Embeddings
    exact: bool
    error: dict[str, float]
    link: dict[str, float]

    links: ClassVar[tuple[str, ...]] = ("slope", "intercept")

    @classmethod
    def of(cls, model: TuckerRecommender, part: str, width: int | None) -> Vectors:
        """The vectors of a model of ratings or of choices; of all draws side by side where they are no wider."""
        likelihood = model.fit_.likelihood
        exact = model.embeddings()
        small = exact if width is None or exact.users.shape[1] <= width else exact.compressed(width)
        estimate = "posterior mean" if model.fit_.draws.sampled else "MAP estimate"
        meaning = f"{estimate} of the {likelihood.predicts if likelihood.linear else likelihood.latent}"
        link = {name: float(getattr(likelihood, name)) for name in cls.links if hasattr(likelihood, name)}
        error = {"rms": 0.0, "largest": 0.0} if small is exact else _difference(exact, small)
        return cls(part, meaning, not likelihood.linear, small, small is exact, error, link)

    def about(self) -> dict[str, Any]:
        """What a reader of the files must know, as plain values."""
        vectors = self.embeddings
        return {
            "inner_product": self.meaning,
            "offset": vectors.offset,
            "width": vectors.users.shape[1],
            "users": len(vectors.user_ids),
            "items": len(vectors.item_ids),
            "exact": self.exact,
            "error": self.error,
            **({"probability": self.link} if self.link else {}),
        }


def _difference(exact: Embeddings, small: Embeddings) -> dict[str, float]:
    """The root mean square and the largest difference of products at pairs drawn at random."""
    rng = np.random.default_rng(0)
    users, items = (rng.integers(len(table), size=PAIRS) for table in (exact.users, exact.items))
    differences = []
    for start in range(0, PAIRS, AT_ONCE):
        u, i = users[start : start + AT_ONCE], items[start : start + AT_ONCE]
        products = [np.einsum("ij,ij->i", each.users[u], each.items[i], dtype=np.float64) for each in (exact, small)]
        differences.append(products[1] - products[0])
    error = np.concatenate(differences)
    return {"rms": float(np.sqrt(np.mean(error**2))), "largest": float(np.abs(error).max())}


def models_by(model: TuckerRecommender, by: str | None) -> dict[str, TuckerRecommender]:
    """The models whose predictions lists are sorted by: both, for value, in a model of ratings and choices."""
    clicks = model.history_.clicks
    choice = getattr(model, "choice_", None)
    known = {"choice": model} if clicks else {"rating": model} | ({} if choice is None else {"choice": choice})
    if by is None or (by == "value" and len(known) == 2):
        return known
    if by not in known:
        raise InputError(f"by={by!r} is not in this model, which is of {' and '.join(f'{name}s' for name in known)}.")
    return {by: known[by]}
