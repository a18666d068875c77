"""Where the report of a benchmark goes, with the commit that made it, and going on from one that was stopped."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tuckergp.files import write_text

__all__ = ["Resumed", "commit", "put"]


def put(report: dict[str, Any], output: Path | None) -> None:
    """Write the report as JSON to a file, complete or not at all, whose folder is made; without one, print it.

    Its entry ``commit`` is that of the package as it is written; `Resumed` also has one for every cell.
    """
    from tuckergp.paper.run import commit

    text = json.dumps({**report, "commit": commit()}, indent=1)
    if output is None:
        print(text)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    write_text(output, text + "\n")


def commit() -> str:
    """The commit of this working copy; "+" for one with changes."""
    here: dict[str, Any] = {"cwd": Path(__file__).parent, "capture_output": True, "text": True}
    changed = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no", "../src"], **here).stdout
    return str(subprocess.run(["git", "rev-parse", "HEAD"], **here).stdout).strip() + ("+" if changed else "")


class Resumed:
    """A report whose cells are written one by one: those that its file has are kept and not run again.

    Its entry ``commits`` has that of every cell by its names with slashes between, and keeps those of earlier runs.

    Parameters
    ----------
    head : dict
        What the report says beside its cells: command, machine, settings. That of the present run is written.
    key : str
        The entry of the report that holds the cells, which may be nested.
    output : Path or None
        None keeps nothing.
    """

    def __init__(self, head: dict[str, Any], key: str, output: Path | None) -> None:
        stored = json.loads(output.read_text()) if output is not None and output.is_file() else {}
        self.cells, self.commits, self.output = stored.get(key, {}), stored.get("commits", {}), output
        self.report = {**head, "commits": self.commits, key: self.cells}

    def cell(self, names: tuple[str, ...], run: Callable[[], Any]) -> Any | None:
        """Run a cell and write the report, or do nothing and return None if the report has it."""
        from tuckergp.paper.run import commit

        *groups, name = names
        at = self.cells
        for group in groups:
            at = at.setdefault(group, {})
        if name in at:
            return None
        at[name] = run()
        self.commits["/".join(names)] = commit()
        if self.output is not None:
            put(self.report, self.output)
        return at[name]
