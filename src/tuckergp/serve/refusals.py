"""Refusals that have a status of their own over HTTP. Nothing here needs FastAPI."""

from __future__ import annotations

from tuckergp.errors import InputError

__all__ = ["NotFound", "Unavailable"]


class NotFound(InputError):
    """Somebody or something that the model does not have."""


class Unavailable(InputError):
    """What cannot be answered now, and perhaps later."""
