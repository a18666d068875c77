"""A regression model as it is served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuckergp.errors import InputError
from tuckergp.regressor import TuckerGPRegressor
from tuckergp.serve.recommending import counted

__all__ = ["ServedRegressor"]


class ServedRegressor:
    """A regression model, which never changes."""

    kind = "regressor"

    def __init__(self, model: TuckerGPRegressor) -> None:
        self.model = model
        self.outputs = None if model.outputs_ is None else model.outputs_.names

    @property
    def facts(self) -> dict[str, Any]:
        """What the model is, in a few numbers and words."""
        fit = self.model.fit_
        return {
            "kind": self.kind,
            "of": "values",
            "likelihood": fit.likelihood.name,
            "columns": self.columns,
            **({} if self.outputs is None else {"outputs": self.outputs}),
            "draws": len(fit.draws),
        }

    @property
    def columns(self) -> list[str]:
        """The columns of the inputs."""
        return self.model._used

    def predict(self, rows: Sequence[Mapping[str, Any]], unknown: str | None, **asked: Any) -> Any:
        """Predictions of rows of inputs, as `TuckerGPRegressor.predict` gives them."""
        if unknown is not None:
            raise InputError("A regression model has no ids that could be unknown; leave out unknown.")
        known = set(self.columns)
        inputs = f"the inputs are {', '.join(self.columns)}"
        for number, row in enumerate(rows, start=1):
            missing = next((name for name in self.columns if name not in row), None)
            if missing is not None:
                raise InputError(f"rows, row {number}: {missing} is missing; {inputs}.")
            other = next((name for name in row if name not in known), None)
            if other is not None:
                raise InputError(f"rows, row {number}: {other[:80]!r} is no input of this model; {inputs}.")
        columns = {name: [row[name] for row in rows] for name in self.columns}
        return self.model.predict(counted(columns, "rows"), **asked)
