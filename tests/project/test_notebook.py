"""The notebooks in `docs` run, from the CSV files beside them, as a newcomer would run them.

`python -m tests.project.test_notebook` runs them and writes what the cells answer into them.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.project.test_docs import ROOT

NOTEBOOKS = sorted((ROOT / "docs").glob("*.ipynb"))


def run(code: str, namespace: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line if that is an expression."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), namespace)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace) if last is not None else None
    return printed.getvalue(), value


def outputs_of(printed: str, value: Any) -> list[dict[str, Any]]:
    """The same in the notebook format."""
    outputs: list[dict[str, Any]] = []
    if printed:
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": str(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def executed(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The notebook with the answers of its cells, and the names they leave behind."""
    notebook, namespace = json.loads(path.read_text()), {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = outputs_of(*run("".join(cell["source"]), namespace))
    finally:
        os.chdir(before)
    return notebook, namespace


@pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")
def test_ten_lines_lead_from_a_csv_to_recommendations_for_a_new_user():
    path = ROOT / "docs" / "first-steps.ipynb"
    stored = json.loads(path.read_text())
    notebook, namespace = executed(path)
    for cell, before in zip(notebook["cells"], stored["cells"], strict=True):
        kinds = [[output["output_type"] for output in c.get("outputs", [])] for c in (cell, before)]
        assert kinds[0] == kinds[1]
    code = [line for cell in notebook["cells"][:7] if cell["cell_type"] == "code" for line in cell["source"]]
    assert sum(bool(line.strip()) for line in code) <= 10
    best = namespace["rec"].recommend("me", n=5)
    assert len(best) == 5
    assert not set(best["item_id"]) & set(namespace["mine"]["item_id"])


if __name__ == "__main__":
    for file in NOTEBOOKS:
        file.write_text(json.dumps(executed(file)[0], indent=1, ensure_ascii=False) + "\n")
