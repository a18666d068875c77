"""Dependencies point one way: no package imports one that lies above it."""

import ast
from pathlib import Path

import pytest

from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.residuals import RESIDUALS

ROOT = Path(__file__).parents[2] / "src" / "tuckergp"

# From the bottom to the top. What stands in one line may import each other.
LAYERS = [
    ["errors"],
    ["params", "random", "linalg", "files", "checks", "showing", "scratch", "memory", "stopping"],
    ["compute"],
    ["data"],
    ["kernels"],
    ["likelihoods", "priors"],
    ["residuals"],
    ["features"],
    ["model"],
    ["statistics"],
    ["inference"],
    ["posterior", "store.plain", "store.trees", "store.cells", "store.tensors"],
    ["running", "gp", "evaluation.metrics"],
    ["store"],
    ["regressor", "recommender"],
    ["evaluation", "exports", "spark"],
    ["paper"],
    ["serve"],
    ["cli", "__main__"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def level(module: str) -> int:
    """The layer of a module by the longest name that is listed."""
    parts = module.split(".")
    for size in (2, 1):
        name = ".".join(parts[:size])
        if name in LEVEL:
            return LEVEL[name]
    raise AssertionError(f"{module} is in no layer: list it in LAYERS")


def imports(tree: ast.AST) -> list[str]:
    """The modules of tuckergp that are imported when a module is, those for type checkers included."""
    found = []
    todo = list(ast.iter_child_nodes(tree))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue  # imported when something is done
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tuckergp."):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inner if is_module(name)] or [node.module]
            found += [name.removeprefix("tuckergp.") for name in modules]
        todo.extend(ast.iter_child_nodes(node))
    return found


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").exists() or path.is_dir()


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_imports_one_above_it(path):
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    above = [other for other in imports(ast.parse(path.read_text())) if level(other) > level(name)]
    assert not above, f"{name} imports {above}, which lie above it"


def test_every_folder_has_a_layer():
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= {name.split(".")[0] for name in LEVEL}


@pytest.mark.parametrize("path", sorted((ROOT / "inference").glob("*.py")), ids=lambda path: path.name)
def test_no_algorithm_names_a_residual_or_a_likelihood(path):
    kinds = {kind.__name__ for kind in (*RESIDUALS, *LIKELIHOODS.values())}
    tree = ast.parse(path.read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert not kinds & imported
