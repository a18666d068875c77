"""The one exception that bad input raises, and the wording of where the fault is."""

from __future__ import annotations

__all__ = ["InputError"]


class InputError(ValueError):
    """What is wrong with the input, where, and what to do, in one or two sentences.

    The command line prints its text alone, without a traceback.
    """
