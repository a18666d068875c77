"""Where the report of a benchmark goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["put"]


def put(report: dict[str, Any], output: Path | None) -> None:
    """Write the report as JSON to a file, whose folder is made; without one, print it."""
    text = json.dumps(report, indent=1)
    if output is None:
        print(text)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text + "\n")
