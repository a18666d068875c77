"""What a recommender is asked to do: its parameters, and what follows from them and the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tuckergp.data.history import KEYS, RATING, TIMESTAMP, Duplicates, History, id_names, standard_names
from tuckergp.data.periods import Unit
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import InputError
from tuckergp.inference import ALS, SGD, VI, Gibbs
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.cores import CoreSpec, Learned
from tuckergp.model.tucker import make_core
from tuckergp.random import stream
from tuckergp.recommender.answers import Answers
from tuckergp.recommender.decisions import Choice
from tuckergp.recommender.drift_trial import drift_helps
from tuckergp.recommender.layout import SIDES
from tuckergp.running.fit import Inference, resolve_inference

__all__ = ["Settings"]

LARGEST_IMPLICIT = 1_000_000


class Settings(Answers):
    """The parameters of `TuckerRecommender`, which says what they mean."""

    def __init__(
        self,
        rank: int = 16,
        inference: Literal["gibbs", "als", "sgd", "vi"] | Inference = "gibbs",
        likelihood: Literal["gaussian", "ordinal", "bernoulli"] = "gaussian",
        core: CoreSpec = "identity",
        draws: int = 250,
        warmup: int = 50,
        chains: int = 1,
        side_information: bool = True,
        implicit: bool | Literal["auto"] = "auto",
        time: Unit | Literal["auto"] | None = "auto",
        noise: Literal["auto", "shared", "rows"] = "auto",
        columns: Mapping[str, str] | None = None,
        attributes: Mapping[str, Mapping[str, Choice]] | None = None,
        context: str | Sequence[str] = (),
        rating_scale: tuple[float, float] | None = None,
        duplicates: Duplicates = "keep",
        negatives: int = 16,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.rank = rank
        self.inference = inference
        self.likelihood = likelihood
        self.core = core
        self.draws = draws
        self.warmup = warmup
        self.chains = chains
        self.side_information = side_information
        self.implicit = implicit
        self.time = time
        self.noise = noise
        self.columns = columns
        self.attributes = attributes
        self.context = context
        self.rating_scale = rating_scale
        self.duplicates = duplicates
        self.negatives = negatives
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _read_ratings(self, ratings: Any) -> Table:
        """The columns that are needed, by their usual names."""
        names = self.columns or {}
        table = as_table(ratings, "ratings", self._context, [*KEYS, RATING, TIMESTAMP, *names.values()])
        renamed = standard_names(table, names)
        for usual in dict.fromkeys((*KEYS, *names)):
            if usual not in renamed.columns:
                table[names.get(usual, usual)]  # says that there is none
        return renamed

    def _attribute_tables(self, users: Any, items: Any) -> tuple[Table | None, Table | None]:
        """Attribute tables with the usual names; none without side information."""
        read = [
            None
            if source is None or not self.side_information
            else standard_names(as_table(source, name), id_names(self.columns))
            for source, name in zip((users, items), SIDES, strict=True)
        ]
        return read[0], read[1]

    def _are_clicks(self, table: Table) -> bool:
        if RATING in table.columns:
            return False
        if self.likelihood != "bernoulli":
            there = ", ".join(map(str, table.columns)) or "none"
            raise InputError(
                f"{table.name} has no column {(self.columns or {}).get(RATING, RATING)!r}; its columns are {there}. "
                f"For clicks, which have no ratings, use likelihood='bernoulli'."
            )
        return True

    def _read_history(self, table: Table, inference: Inference) -> History:
        """The ratings as numbers; their times are kept where there are some and drift is not ruled out."""
        clicks = self._are_clicks(table)
        self._check_context(inference, table)
        if clicks and self.rating_scale is not None:
            raise InputError("rating_scale is for ratings, and there are clicks alone; leave it out.")
        timed = self.time is not None and TIMESTAMP in table.columns
        moment = [*([TIMESTAMP] if timed else []), *self._context]
        history = History.read(table, moment, clicks, self.rating_scale, self.duplicates)
        averaged = self.likelihood == "ordinal" and self.duplicates == "mean"
        if averaged and not np.isin(history.rating, table.numeric(RATING)).all():
            raise InputError("Means of ratings are no levels of an ordinal model; use duplicates='keep' or 'refuse'.")
        return history

    def _uses_implicit(self, inference: Inference, ratings: int, clicks: bool) -> bool:
        if self.implicit not in (True, False, "auto"):
            raise InputError(f"implicit must be True, False or 'auto', not {self.implicit!r}.")
        if self.implicit == "auto":
            return isinstance(inference, Gibbs) and ratings <= LARGEST_IMPLICIT and not clicks
        if self.implicit and clicks:
            raise InputError("Who clicked what is all there is to learn from clicks; use implicit=False.")
        return bool(self.implicit)

    def _time_unit(
        self, inference: Inference, table: Table, users: Any, items: Any, clicks: bool, seed: int
    ) -> Unit | None:
        """The unit of drift asked for, or found to help."""
        if self.time not in ("auto", "week", "month", None):
            raise InputError(f"time must be 'week', 'month', 'auto' or None, not {self.time!r}.")
        if self.time is None:
            return None
        possible = isinstance(inference, Gibbs) and self.core == "identity"
        if self.time == "auto":
            tried = possible and not clicks and TIMESTAMP in table.columns
            return "week" if tried and drift_helps(self, table, users, items, seed) else None
        if not possible:
            raise InputError("Drift over time needs inference='gibbs' and core='identity'; else use time=None.")
        table[TIMESTAMP]  # says so if there is none
        return self.time

    def _attribute_choices(self) -> Mapping[str, Mapping[str, Choice]] | None:
        for name in self.attributes or {}:
            if name not in SIDES:
                raise InputError(f"attributes has choices for 'users' and for 'items', not for {name!r}.")
        return self.attributes if self.side_information else None

    @property
    def _context(self) -> list[str]:
        return [self.context] if isinstance(self.context, str) else list(self.context)

    def _check_context(self, inference: Inference, table: Table) -> None:
        pattern = self.core.candidates if isinstance(self.core, Learned) else self.core
        able = pattern in ("identity", "superdiagonal", "cp", "pairwise")
        if self._context and not (isinstance(inference, Gibbs) and able):
            raise InputError(
                "Context needs inference='gibbs' and a core that is 'identity', 'superdiagonal' or 'pairwise'; else "
                "use context=()."
            )
        for name in self._context:
            table[name]  # says so if there is none

    def _resolve_inference(self, rank: int) -> Inference:
        # Most probable values overfit under the prior that matches moments: a prior sd of half as much, and a noise
        # as large as the ratings' variance, did best on held-out parts of MovieLens 100K's training data.
        sigma_u = 0.5 * float(make_core(self.core, [rank, rank], stream(0)).default_sigma_u()[0])
        named: dict[Any, Inference] = {
            "als": ALS(noise=1.0, sigma_u=sigma_u),
            "sgd": SGD(noise=1.0, sigma_u=sigma_u),
            "vi": VI(),
        }
        noise: str = "shared" if self.likelihood == "bernoulli" else "rows"
        noise = noise if self.noise == "auto" else self.noise
        inference = resolve_inference(self, named, noise, ("gaussian", "ordinal", "bernoulli"))
        if not LIKELIHOODS[self.likelihood].has_noise and not isinstance(inference, Gibbs):
            raise InputError(f"likelihood={self.likelihood!r} needs inference='gibbs', not {inference!r}.")
        return inference
