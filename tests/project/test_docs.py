"""The documentation is true: its examples run, its links lead somewhere, its tables are those of the results.

`python -m tests.project.test_docs` writes the generated tables into the pages.
"""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import json
import pkgutil
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import tuckergp

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKED = [*PAGES, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "GLOSSARY.md"))]
MODULES = sorted(module.name for module in pkgutil.walk_packages(tuckergp.__path__, "tuckergp."))
RESULTS = ROOT / "benchmarks" / "results"

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\((?P<target>[^)\s]+)\)")
TABLE = re.compile(r"<!-- table: (?P<name>\w+) -->\n.*?<!-- end -->", re.DOTALL)
NEEDS = re.compile(r"<!-- needs: (?P<what>[a-z, ]+) -->\s*\Z")


class Block(NamedTuple):
    line: int
    code: str
    needs: frozenset[str]  # data that may not be here, and time that only `make test-all` has


def blocks_of(text: str) -> list[Block]:
    """The Python blocks of a page that are to be run."""
    blocks = []
    for fence in FENCE.finditer(text):
        if fence["info"].split() == ["python"]:
            before = text[: fence.start()]
            needs = NEEDS.search(before)
            what = frozenset(needs["what"].split(", ") if needs else ())
            assert what <= {"data", "time"}, f"no such need: {needs}"
            blocks.append(Block(before.count("\n") + 1, fence["code"], what))
    return blocks


def run(page: Path, blocks: list[Block], namespace: dict[str, object]) -> None:
    """Run blocks one after the other in one namespace; a traceback names the page and its line."""
    for block in blocks:
        # as many empty lines as there are above it in the page
        exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, spelled as MkDocs and GitHub spell plain ones."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_finds_the_blocks_that_are_to_be_run():
    page = """
```python
a = 1
```
```python notest
b
```
<!-- needs: data -->
```python
c = 1
```
<!-- needs: data, time -->

```python
e = 1
```
```text
d
```
"""
    expected = [Block(2, "a = 1\n", set()), Block(9, "c = 1\n", {"data"}), Block(14, "e = 1\n", {"data", "time"})]
    assert blocks_of(page) == expected


def pages_to_run():
    """Every page with examples without those that need time, and the pages that have such ones once more with them."""
    for page in PAGES:
        blocks = blocks_of(page.read_text())
        if blocks:
            yield pytest.param(page, False, id=name_of(page))
        if any("time" in block.needs for block in blocks):
            yield pytest.param(page, True, id=f"{name_of(page)}-all", marks=pytest.mark.slow)


@pytest.mark.parametrize(("page", "time"), pages_to_run())
def test_examples_run(page, time, tmp_path, monkeypatch, request):
    # first all that need no data, so that they cannot lean on those that do
    monkeypatch.chdir(tmp_path)
    blocks, namespace = blocks_of(page.read_text()), {"__name__": "__main__"}
    blocks = [block for block in blocks if time or "time" not in block.needs]
    run(page, [block for block in blocks if "data" not in block.needs], namespace)
    if any("data" in block.needs for block in blocks):
        monkeypatch.setenv("TUCKERGP_DATA", str(request.getfixturevalue("data_dir")))
        run(page, [block for block in blocks if "data" in block.needs], namespace)


@pytest.mark.parametrize("name", MODULES)
def test_doctests_pass(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_lead_somewhere(page):
    for link in LINK.finditer(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link["target"]):
            continue
        path, _, anchor = link["target"].partition("#")
        target = page.parent / path if path else page
        assert target.is_file(), f"{name_of(page)} links to {link['target']}, which is not there"
        if anchor:
            assert anchor in anchors_of(target), f"{name_of(page)} links to {link['target']}: no such heading"


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert [page.name for page in PAGES[1:] if f": {page.name}\n" not in navigation] == []


def tables(*modules) -> dict[str, str]:
    """The generated tables of results files, by the name in the page's marker."""
    found = {}
    for module in modules:
        for file, makers in module.TABLES.items():
            results = json.loads((RESULTS / file).read_text())
            found |= {name: make(results) for name, make in makers.items()}
    return found


def benchmark(name: str):
    """A module of the benchmarks, which are no package."""
    where = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(where)
    where.loader.exec_module(module)
    return module


def pages_with_tables() -> dict[Path, dict[str, str]]:
    """The pages and their tables."""
    from tuckergp.paper import (
        california_report,
        movielens_gibbs_report,
        movielens_report,
        ranking_report,
        theory_report,
        variational_report,
        wind_report,
    )

    regression = tables(california_report, wind_report, benchmark("regression_tables"))

    return {
        ROOT / "docs" / "regression-experiments.md": regression,
        ROOT / "docs" / "experiments.md": tables(
            movielens_report, movielens_gibbs_report, variational_report, ranking_report
        ),
        ROOT / "docs" / "theory.md": tables(theory_report),
        ROOT / "docs" / "inference.md": tables(benchmark("nuts_tables")),
        ROOT / "benchmarks" / "README.md": tables(benchmark("tables"), benchmark("sparse_core_tables")),
    }


def with_tables(page: Path, made: dict[str, str]) -> str:
    """A page with the generated tables in their places."""

    def fill(place: re.Match) -> str:  # without the empty lines it is no table
        return f"<!-- table: {place['name']} -->\n\n{made[place['name']].strip()}\n\n<!-- end -->"

    filled, places = TABLE.subn(fill, page.read_text())
    assert places == len(made), f"{name_of(page)} must have one place for every table"
    return filled


def results_page() -> str:
    """The page that is written from one results file."""
    from tuckergp.paper.report import build, results

    return build.as_markdown(results.load(RESULTS / results.FILE))


def test_the_results_page_is_that_of_the_results():
    from tuckergp.paper.report import results, stored

    assert results.load(RESULTS / results.FILE)["experiments"] == stored.read(RESULTS), "run tuckergp reproduce again"
    page = ROOT / "docs" / "results.md"
    assert page.read_text() == results_page(), "run python -m tests.project.test_docs to renew the page"


def test_tables_are_those_of_the_results():
    for page, made in pages_with_tables().items():
        assert page.read_text() == with_tables(page, made), "run python -m tests.project.test_docs to renew the tables"


if __name__ == "__main__":
    for page, made in pages_with_tables().items():
        page.write_text(with_tables(page, made))
    (ROOT / "docs" / "results.md").write_text(results_page())
