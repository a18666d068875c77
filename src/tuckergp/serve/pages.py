"""What the page of one server remembers: figures that take a while, once per model file, and held-out data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tuckergp.data.names import KEYS, RATING, named_table
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.serve.views import accuracy
from tuckergp.serve.views.people import levels_of
from tuckergp.stopping import doing, stop_if_unwanted

__all__ = ["PageState"]

# Seconds between two looks at whether somebody still waits.
TURN = 0.2


@dataclass
class PageState:
    """What the page of one server remembers.

    Attributes
    ----------
    test : table, path or None
        Observations that the fit has not had, to judge the model by.
    target : str or None
        The column of ``test`` with the targets of a regression model.
    copies : bool
        Whether the page may learn a copy of the model to judge it, which takes as long as a short fit.
    """

    test: Any = None
    target: str | None = None
    copies: bool = False
    _known: WeakKeyDictionary[Any, dict[str, Any]] = field(default_factory=WeakKeyDictionary)
    _lock: Any = field(default_factory=Lock)

    def once(self, served: Any, name: str, compute: Callable[[], Any]) -> Any:
        """The result of a computation that is done once per model file; ratings folded in do not repeat it.

        It does not stop where nobody waits any more, so that who asks again has it.
        """
        of_file = served.texts[0] if served.kind == "recommender" else served.model
        with self._lock:
            known = self._known.setdefault(of_file, {})
            lock = known.setdefault(f"lock of {name}", Lock())
        while not lock.acquire(timeout=TURN):  # who asks meanwhile waits for the same result
            stop_if_unwanted()
        try:
            if name not in known:
                with doing(None):
                    known[name] = compute()
            return known[name]
        finally:
            lock.release()

    def levels(self, served: Any) -> list[float]:
        """The ratings that can be given to items of a model file."""
        found: list[float] = self.once(served, "levels", lambda: levels_of(served.fitted))
        return found

    def accuracy(self, served: Any, copy: bool) -> dict[str, Any]:
        """Figures at held-out data or, if that is asked for, of a copy; how to have them where there are none."""
        if self.test is not None:
            return dict(self.once(served, "held out", lambda: self._held_out(served.model)))
        if not isinstance(served.model, TuckerRecommender):
            return {"source": None, "can_copy": False}
        can_copy = self.copies and len(served.model.history_.base) > 0
        if copy and can_copy:
            return dict(self.once(served, "copy", lambda: accuracy.of_copy(served.model)))
        return {"source": None, "can_copy": can_copy}

    def check(self, model: Any) -> None:
        """Refuse a test table, or a target, that the model cannot be judged by, before anybody asks for figures."""
        if self.test is None:
            if self.target is not None:
                raise InputError("--target names a column of the test table; give one with --test.")
            return
        if isinstance(model, TuckerRecommender):
            accuracy.check_held_out(model._fitted, self._pairs(model))
            return
        inputs, _ = self._observations(model)
        model.predict(inputs.head(1))

    def _held_out(self, model: Any) -> dict[str, Any]:
        if isinstance(model, TuckerRecommender):
            return accuracy.of_recommender(model._fitted, self._pairs(model))
        inputs, target = self._observations(model)
        return accuracy.of_regressor(model, inputs, target, None if model.outputs_ is None else self.target)

    def _pairs(self, model: TuckerRecommender) -> Table:
        """The test table of a recommender, with the usual names of columns."""
        if self.target is not None:
            raise InputError("--target is for regression models; this one is a recommender, so leave it out.")
        fitted = model._fitted
        table = named_table(self._read(), "test", fitted.names)
        for key in KEYS:
            table[key]  # refuses a table without it
        if not fitted.history.clicks:
            table.numeric(RATING)
        return fitted.layout.aligned(table)

    def _observations(self, model: Any) -> tuple[Table, npt.NDArray[np.float64]]:
        table = self._read()
        if self.target is None or self.target not in table:
            known = ", ".join(table.columns)
            has = "" if self.target is None else f"there is no {self.target!r} in {table.name}; "
            raise InputError(f"Say with --target which column of the test table has the targets; {has}it has {known}.")
        if model.outputs_ is not None and self.target not in model.outputs_.names:
            raise InputError(f"--target must be an output of the model: {', '.join(map(str, model.outputs_.names))}.")
        return table.select(name for name in table.columns if name != self.target), table.numeric(self.target)

    def _read(self) -> Table:
        """The test table; a file is read once."""
        if not isinstance(self.test, Table):
            self.test = as_table(self.test, "test")
        return self.test
