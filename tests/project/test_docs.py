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
import sys
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import tuckergp
from tuckergp.inference import INFERENCES
from tuckergp.recommender import choosing as recommender
from tuckergp.recommender import drift_trial
from tuckergp.regressor import choosing as regressor
from tuckergp.regressor import contenders, trial

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKED = [*PAGES, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "GLOSSARY.md"))]
MODULES = sorted(module.name for module in pkgutil.walk_packages(tuckergp.__path__, "tuckergp."))
RESULTS = ROOT / "benchmarks" / "results"
WITH_TABLES = [*PAGES, ROOT / "benchmarks" / "README.md"]

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]\n]*\](?:\(|:[ ])(?P<target>[^)\s]+)")
TABLE = re.compile(r"<!-- table: (?P<name>\w+) -->\n.*?<!-- end -->", re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run -->\s*\Z")
# What an example runs at the most in the quick suite.
FEW = {"draws": 15, "warmup": 15, "iterations": 8, "epochs": 8}
NEEDS = re.compile(r"<!-- needs: (?P<what>[a-z, ]+) -->\s*\Z")
# What a comment says that its line prints: a value as it is, or one or two numbers.
SAID = re.compile(r"print\(.*\)  # (?P<said>.+)$")
ABOUT = re.compile(r"(R\^2, )?about (?P<first>-?\d[\d.]*)( and (?P<second>-?\d[\d.]*))?\b")
NUMBER = re.compile(r"-?\d+(\.\d*)?(e[-+]\d+)?")


def script(path: str) -> ModuleType:
    """A script of the repository that is in no package."""
    where = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(where)
    where.loader.exec_module(module)
    return module


reference = script("tools/reference.py")
REFERENCE = reference.Writer().pages()


class Block(NamedTuple):
    line: int
    code: str
    needs: frozenset[str]  # data that may not be here, and time that only `make test-all` has


def blocks_of(text: str) -> list[Block]:
    """The Python blocks of a page that are to be run."""
    blocks = []
    for fence in FENCE.finditer(text):
        before = text[: fence.start()]
        if fence["info"].strip() == "python" and not NOT_RUN.search(before):
            needs = NEEDS.search(before)
            what = frozenset(needs["what"].split(", ") if needs else ())
            assert what <= {"data", "time"}, f"no such need: {needs}"
            blocks.append(Block(before.count("\n") + 1, fence["code"], what))
    return blocks


def run(page: Path, blocks: list[Block], namespace: dict[str, object]) -> None:
    """Run blocks one after the other in one namespace; a traceback names the page and its line."""
    for block in blocks:
        # as many empty lines as there are above it in the page; without this file's __future__ imports
        exec(compile("\n" * block.line + block.code, str(page), "exec", dont_inherit=True), namespace)


class Printed:
    """`print` for a page, which keeps what each of its lines prints."""

    def __init__(self, page: Path) -> None:
        self.page, self.at, self.lines = str(page), {}, []

    def __call__(self, *values: object, **options: Any) -> None:
        print(*values, **options)
        text, caller = " ".join(map(str, values)), sys._getframe(1)
        self.lines += [" ".join(line.split()) for line in text.splitlines()]
        if caller.f_code.co_filename == self.page:
            self.at[caller.f_lineno] = " ".join([*filter(None, [self.at.get(caller.f_lineno)]), text])


def contradicted(text: str, printed: Printed) -> list[str]:
    """What a page says of outputs that are others: comments beside lines that print, and heads of blocks of text.

    Chains on other machines differ, so numbers may be off by a tenth, and lines of text with numbers are not compared.
    """
    wrong = []
    for number, output in printed.at.items():
        comment = SAID.search(text.splitlines()[number - 1])
        if comment is None:
            continue
        said, about = comment["said"], ABOUT.match(comment["said"])
        if about is not None:
            expected = [float(each) for each in about.group("first", "second") if each is not None]
            found = [float(each[0]) for each in NUMBER.finditer(output)][: len(expected)]
            agrees = found == pytest.approx(expected, rel=0.1)
        else:
            agrees = (said[0] not in "([{" and said not in ("True", "False")) or said.startswith(output)
        if not agrees:
            wrong.append(f"line {number} prints {output}, not {said}")
    for code, shown in pairwise(FENCE.finditer(text)):
        if (code["info"], shown["info"]) == ("python", "text") and not text[code.end() : shown.start()].strip():
            heads = [" ".join(line.split()) for line in shown["code"].splitlines() if not re.search(r"\d|^\.*$", line)]
            wrong += [f"nothing prints {head}" for head in heads if head not in printed.lines]
    return wrong


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, spelled as MkDocs and GitHub spell plain ones."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_the_info_of_a_fence_is_one_word(page):
    """MkDocs takes what has two for a paragraph, and the end of the block for the beginning of another."""
    assert [fence["info"] for fence in FENCE.finditer(page.read_text()) if len(fence["info"].split()) > 1] == []


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_finds_the_blocks_that_are_to_be_run():
    page = """
```python
a = 1
```
<!-- not run -->
```python
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
    expected = [Block(2, "a = 1\n", set()), Block(10, "c = 1\n", {"data"}), Block(15, "e = 1\n", {"data", "time"})]
    assert blocks_of(page) == expected


def pages_to_run():
    """Every page with examples, with few draws and without those that need time; once more all of it, as it stands."""
    for page in PAGES:
        blocks = blocks_of(page.read_text())
        if blocks:
            yield pytest.param(page, False, id=name_of(page))
            yield pytest.param(page, True, id=f"{name_of(page)}-all", marks=pytest.mark.slow)


def with_few_steps(resolve):
    """The same function, but algorithms stop after a few steps: what a page does is tested, not its figures."""

    def resolved(*arguments, **options):
        inference = resolve(*arguments, **options)
        if not type(inference).__module__.startswith("tuckergp."):  # a page's own
            return inference
        few = {name: most for name, most in FEW.items() if getattr(inference, name, 0) > most}
        return replace(inference, **few)

    return resolved


def shorten_trials(monkeypatch):
    """Decisions by trial are made, but from few rows and sweeps."""
    for module, name, few in (
        (trial, "ROWS", 100),
        (contenders, "LEARN_ROWS", 100),
        (drift_trial, "WARMUP", 3),
        (drift_trial, "DRAWS", 3),
    ):
        monkeypatch.setattr(module, name, few)


@pytest.mark.parametrize(("page", "time"), pages_to_run())
def test_examples_run(page, time, tmp_path, monkeypatch, request):
    if not time:
        for module in (recommender, regressor):
            monkeypatch.setattr(module, "resolve_inference", with_few_steps(module.resolve_inference))
        shorten_trials(monkeypatch)
    # first all that need no data, so that they cannot lean on those that do
    monkeypatch.chdir(tmp_path)
    known = dict(INFERENCES)  # to which a page may add
    request.addfinalizer(lambda: [INFERENCES.pop(name) for name in set(INFERENCES) - set(known)])
    printed = Printed(page)
    blocks, namespace = blocks_of(page.read_text()), {"__name__": "__main__", "print": printed}
    blocks = [block for block in blocks if time or "time" not in block.needs]
    run(page, [block for block in blocks if "data" not in block.needs], namespace)
    if any("data" in block.needs for block in blocks):
        monkeypatch.setenv("TUCKERGP_DATA", str(request.getfixturevalue("data_dir")))
        run(page, [block for block in blocks if "data" in block.needs], namespace)
    if time:
        assert contradicted(page.read_text(), printed) == []


def test_finds_what_a_page_says_of_outputs_that_are_others(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("""
```python
print(0.96, 3)  # about 0.95
print(0.5)  # about 0.4, which is little
for x in (1.0, 2.0):
    print(x)  # about 1.05 and 2
print((2, 3), 4)  # (2, 3) 4, or more
print((2, 3))  # [2, 3]
print("name  size\\n2 3")  # what it is
```

```text
 name size
 5    6
...
```

```python
print(1)
```

```text
name weight
```
""")
    printed = Printed(page)
    run(page, blocks_of(page.read_text()), {"print": printed})
    expected = ["line 4 prints 0.5, not about 0.4, which is little", "line 8 prints (2, 3), not [2, 3]"]
    assert contradicted(page.read_text(), printed) == [*expected, "nothing prints name weight"]


@pytest.mark.parametrize("name", MODULES)
def test_doctests_pass(name, monkeypatch):
    shorten_trials(monkeypatch)
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_lead_somewhere(page):
    for link in LINK.finditer(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link["target"]):
            continue
        path, _, anchor = link["target"].partition("#")
        if path.startswith("api/"):  # written by make docs, which checks the anchors
            assert path.removeprefix("api/") in REFERENCE, f"{name_of(page)} links to {link['target']}: no such page"
            continue
        target = page.parent / path if path else page
        assert target.is_file(), f"{name_of(page)} links to {link['target']}, which is not there"
        if anchor:
            assert anchor in anchors_of(target), f"{name_of(page)} links to {link['target']}: no such heading"


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = [page.name for page in PAGES[1:]] + [f"api/{page}" for page in REFERENCE]
    assert [page for page in pages if f": {page}\n" not in navigation] == []


@pytest.mark.parametrize("module", reference.MODULES)
def test_the_reference_has_every_public_name(module):
    text = REFERENCE[reference.page_of(module)]
    public = [name for name in importlib.import_module(module).__all__ if not name.startswith("__")]
    assert public
    for name in public:
        assert f"## {name} {{ #{module}.{name} }}\n" in text
        assert f"#{module}.{name})" in REFERENCE["index.md"]


def test_continuous_integration_builds_the_site_strictly():
    assert "make docs\n" in (ROOT / ".ci" / "run").read_text()
    assert "mkdocs build --strict\n" in (ROOT / "Makefile").read_text()  # with --quiet it would pass whatever is broken


def test_every_public_module_is_in_the_reference():
    assert {f"tuckergp.{name}" for name in tuckergp._MODULES} <= set(reference.MODULES)


def test_the_reference_has_methods_with_their_parameters_and_those_of_a_base_once():
    text = REFERENCE["tuckergp.md"]
    assert "### TuckerRecommender.fit { #tuckergp.TuckerRecommender.fit }" in text
    assert "- **`inference`** ({" in text
    assert "### Kernel.get_params {" in REFERENCE["kernels.md"]
    assert "### SE.get_params {" not in REFERENCE["kernels.md"]


def entry_with(doc: str) -> reference.Entry:
    def made(given: int) -> None: ...

    made.__doc__ = doc
    return reference.Entry("kernels.md", "tuckergp.kernels.made", made, None)


def test_a_name_in_backticks_is_a_link_and_symbols_are_no_markup():
    written = reference.Writer().doc(entry_with("Like `SE` and `tuckergp.Mode`, of ``x_1`` and `given`: U_1 * U_2 <r."))
    assert "[`SE`](#tuckergp.kernels.SE)" in written
    assert "[`tuckergp.Mode`](tuckergp.md#tuckergp.Mode)" in written
    assert written.endswith(r"of ``x_1`` and `given`: U\_1 \* U\_2 \<r.")


@pytest.mark.parametrize("name", ["tuckergp.kernels.Gone", "tuckergp.gone", "Gone", "gone"])
def test_a_cross_reference_to_nothing_stops_the_build(name):
    with pytest.raises(reference.BrokenReference, match=rf"tuckergp.kernels.made refers to `{name}`"):
        reference.Writer().doc(entry_with(f"See `{name}`."))


@pytest.mark.parametrize(
    "extra", tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
)
def test_every_extra_has_code_that_asks_for_it(extra):
    """A message of the package names it; `test`, `docs` and `all` are for developers."""
    text = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert extra in {"test", "docs", "all"} or f"tuckergp[{extra}]" in text


def made_tables() -> dict[str, str]:
    """All generated tables, by the name in a page's marker: of the experiments, and of the benchmarks."""
    from tuckergp.paper import report
    from tuckergp.paper.writer import markdown

    rows = report.tables(RESULTS)
    for file, makers in script("benchmarks/tables.py").TABLES.items():
        results = json.loads((RESULTS / file).read_text())
        rows |= {name: make(results) for name, make in makers.items()}
    return {name: markdown(table) for name, table in rows.items()}


def with_tables(page: Path, made: dict[str, str]) -> str:
    """A page with the generated tables in their places."""

    def fill(place: re.Match) -> str:  # without the empty lines it is no table
        return f"<!-- table: {place['name']} -->\n\n{made[place['name']]}\n\n<!-- end -->"

    return TABLE.sub(fill, page.read_text())


def test_every_table_stands_on_one_page():
    places = [place["name"] for page in WITH_TABLES for place in TABLE.finditer(page.read_text())]
    assert sorted(places) == sorted(made_tables())


@pytest.mark.parametrize("page", WITH_TABLES, ids=name_of)
def test_tables_are_those_of_the_results(page):
    assert page.read_text() == with_tables(page, made_tables()), "run python -m tests.project.test_docs to renew it"


def test_no_line_of_a_table_of_figures_stands_on_two_pages():
    pages: dict[str, set[str]] = {}
    for page in WITH_TABLES:
        for line in page.read_text().splitlines():
            if line.startswith("|") and re.search(r"\d\.\d\d", line):
                pages.setdefault(line, set()).add(name_of(page))
    assert {line: found for line, found in pages.items() if len(found) > 1} == {}


if __name__ == "__main__":
    for page in WITH_TABLES:
        page.write_text(with_tables(page, made_tables()))
