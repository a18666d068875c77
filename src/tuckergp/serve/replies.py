"""Answers as JSON."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse

from tuckergp.showing import plain

__all__ = ["Reply"]


class Reply(JSONResponse):
    """JSON of plain values: NaN is null, ids that JSON has no type for are text, and all characters are ASCII."""

    def render(self, content: Any) -> bytes:
        """The bytes of the body."""
        return json.dumps(plain(content), allow_nan=False, separators=(",", ":")).encode()
