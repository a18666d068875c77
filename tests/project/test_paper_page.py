"""The map of the paper leads somewhere: every test, name and file in docs/paper.md exists."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?:tests|src|docs|benchmarks)/[\w./-]+")
NAME = re.compile(r"tuckergp(?:\.\w+)+")


def spans() -> list[str]:
    """What stands in backquotes in the page, each once."""
    return sorted(set(CODE.findall((ROOT / "docs" / "paper.md").read_text())))


def is_defined(tree: ast.AST, names: list[str]) -> bool:
    """Whether a module has this function or class, or a class this method."""
    for name in names:
        found = [node for node in ast.iter_child_nodes(tree) if getattr(node, "name", None) == name]
        if not found:
            return False
        tree = found[0]
    return True


def resolve(name: str) -> object:
    """The module, class, function or method of a dotted name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AttributeError(name)


@pytest.mark.parametrize("span", [span for span in spans() if "::" in span])
def test_tests_exist(span):
    path, *names = span.split("::")
    assert (ROOT / path).is_file()
    assert is_defined(ast.parse((ROOT / path).read_text()), names)


@pytest.mark.parametrize("span", [span for span in spans() if FILE.fullmatch(span)])
def test_files_exist(span):
    assert (ROOT / span).is_file()


@pytest.mark.parametrize("span", [span for span in spans() if NAME.fullmatch(span)])
def test_names_exist(span):
    resolve(span)


def test_what_does_not_exist_is_noticed():
    tree = ast.parse("class A:\n    def b(self): ...\ndef c(): ...")
    assert is_defined(tree, ["A", "b"])
    assert not is_defined(tree, ["b"])
    assert not is_defined(tree, ["c", "b"])
    with pytest.raises(AttributeError):
        resolve("tuckergp.model.tucker.NoSuchCore")
    assert len(spans()) > 100
