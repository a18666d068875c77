"""What a fitted recommender answers: predictions and their certainty.

A base class of `TuckerRecommender`, so that learning and answering are two files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tuckergp.design import Design
from tuckergp.errors import InputError
from tuckergp.history import History, standard_names
from tuckergp.inference.export import as_inference_data, block_names
from tuckergp.inference.fit import Fit, predict_with, probabilities_with
from tuckergp.layout import Layout
from tuckergp.storage import Storable
from tuckergp.tables import Table, as_table

__all__ = ["Answers", "OnUnknown"]

Floats = npt.NDArray[np.float64]
OnUnknown: TypeAlias = Literal["predict", "nan", "raise"]


class Answers(Storable, BaseEstimator):  # type: ignore[misc]
    """Questions to a fitted recommender."""

    columns: Mapping[str, str] | None
    fit_: Fit
    history_: History
    layout_: Layout
    rating_range_: tuple[float, float]

    def predict(
        self,
        pairs: Any,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
        include_noise: bool = True,
        clip: bool = True,
        interval: float | None = None,
        on_unknown: OnUnknown = "predict",
    ) -> Any:
        """Predict the rating of every row of ``pairs``.

        Parameters
        ----------
        pairs : table with columns user_id and item_id, or a path to one
            With ``time``, a timestamp column says when; without it, or where it is missing, the user is taken as on
            average. The same goes for context columns. Other columns are ignored; a rating column is never read.
        return_std : bool
            Also return standard deviations; needs ``inference="gibbs"``.
        quantiles : sequence of float or None
            Also return these quantiles, shape (n_pairs, len(quantiles)), instead of standard deviations.
        include_noise : bool
            Standard deviations, quantiles and intervals of a new rating; False for those of its mean.
        clip : bool
            Keep means, quantiles and intervals within the range of the ratings learned from, or the ``rating_scale``.
        interval : float or None
            Also return an interval that holds a new rating with this probability, shape (n_pairs, 2), instead. Between
            levels of an ordinal model: as near to it as whole levels allow, and about right on average.
        on_unknown : {"predict", "nan", "raise"}
            What to do with ids that have neither ratings nor attributes: predict them as the average one, answer NaN,
            or refuse.

        Returns
        -------
        ndarray, shape (n_pairs,), or a pair of it and the standard deviations, quantiles or interval
        """
        check_is_fitted(self)
        table = self._read_pairs(pairs)
        unknown = self._unknown(table, on_unknown)
        found = predict_with(self.fit_, self.layout_.pairs(table), return_std, quantiles, interval, include_noise)
        low, high = self.rating_range_ if clip else (-np.inf, np.inf)
        mean, more = found if isinstance(found, tuple) else (found, None)
        mean = np.clip(mean, low, high)
        mean[unknown] = np.nan
        if more is None:
            return mean
        more = more if return_std else np.clip(more, low, high)
        more[unknown] = np.nan
        return mean, more

    def predict_proba(self, pairs: Any) -> Floats:
        """Probability of every rating level (``fit_.levels``) for every row of ``pairs``, shape (n_pairs, K).

        For ordinal and Bernoulli models.
        """
        check_is_fitted(self)
        return probabilities_with(self.fit_, self._pairs(pairs))

    def inference_data(self) -> Any:
        """The draws of what is identified, for ArviZ's plots and summaries (extra ``arviz``).

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1.0 on
            Group ``posterior``: ``f`` at up to 100 training observations, ``noise`` (its standard deviation), ``tau``
            (the precision of every feature block), ``cuts`` of ordered levels. Group ``log_likelihood``: ``y`` at the
            same observations. Dimensions chain and draw first; in the units of the targets.
        """
        check_is_fitted(self)
        fit = self.fit_
        return as_inference_data(fit.draws, fit.mean, fit.scale, block_names(self.layout_.modes, self.layout_.names))

    def _read_pairs(self, pairs: Any) -> Table:
        return standard_names(as_table(pairs, "pairs"), self.columns)

    def _pairs(self, pairs: Any) -> Design:
        return self.layout_.pairs(self._read_pairs(pairs))

    def _unknown(self, table: Table, on_unknown: OnUnknown) -> npt.NDArray[np.bool_]:
        """The rows to answer with NaN."""
        if on_unknown not in ("predict", "nan", "raise"):
            raise InputError(f"on_unknown must be 'predict', 'nan' or 'raise', not {on_unknown!r}.")
        unknown = np.zeros(len(table), dtype=bool)
        if on_unknown == "predict":
            return unknown
        for side in self.layout_.sides:
            here = side.numbers(table[side.key]) == len(side.number)
            if on_unknown == "raise" and here.any():
                row = int(np.argmax(here))
                raise InputError(
                    f"{table.name} column {side.key!r} holds {table[side.key][row]!r} at {table.row_label(row)}, which "
                    f"has neither ratings nor attributes; leave it out, or use on_unknown='predict' or 'nan'."
                )
            unknown |= here
        return unknown
