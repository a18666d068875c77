"""Addresses, one file per group: each has a ``router``, and all are in `ROUTERS`."""

from __future__ import annotations

from tuckergp.serve.routes import changes, entities, lists, page, predictions, status

__all__ = ["ROUTERS"]

ROUTERS = (status.router, predictions.router, lists.router, changes.router, entities.router, page.router)
