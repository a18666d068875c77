"""The exceptions this library raises. The command line prints their text alone, without a traceback."""

from __future__ import annotations

__all__ = [
    "ApproximationWarning",
    "CheckpointWarning",
    "DataWarning",
    "DivergenceError",
    "InputError",
    "NotConvergedWarning",
    "NotPositiveDefinite",
    "SizeWarning",
    "TimeWarning",
    "UnknownIdWarning",
]


class InputError(ValueError):
    """What is wrong with the input, where, and what to do, in one or two sentences."""


class NotPositiveDefinite(InputError):
    """A matrix of covariances that are none, beyond what rounding explains; the text names it and a remedy."""


class ApproximationWarning(UserWarning):
    """Features that are too few for their kernel; the text says what follows and what to raise."""


class CheckpointWarning(UserWarning):
    """A checkpoint that could not be written; the text says why, and that the run goes on."""


class DataWarning(UserWarning):
    """Data that is not used as one might expect; the text says which, and what to do."""


class NotConvergedWarning(UserWarning):
    """Draws that should not be trusted yet; the text says what to change."""


class SizeWarning(UserWarning):
    """Something that will take much memory; the text says how much, and what makes it smaller."""


class TimeWarning(UserWarning):
    """A fit that will take long; the text says about how long, and what makes it shorter."""


class UnknownIdWarning(DataWarning):
    """Ids that the model knows nothing of; the text names some, and says what they are taken for."""


class DivergenceError(ArithmeticError):
    """Learning left the finite numbers; the text says which setting to change."""
