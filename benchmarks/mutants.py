"""Do the tests notice faults of the numeric core: each fault of a list is put into a copy of the package.

The faults (mutants) are in `mutants.json`: the file, its exact text, the wrong text, and the tests that should fail.
Each runs in a copy of its own with nothing compiled, because numba's cache does not see changes of called functions.
Results are written after every mutant, and those that are there already are not run again. At the end the tests that
noticed faults are run without any::

    python benchmarks/mutants.py -o benchmarks/results/mutants.json
    python benchmarks/mutants.py --only core.py --all-tests -o benchmarks/results/mutants.json
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gibbs import facts
from reports import put

from tuckergp.paper.run import commit

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).parent / "mutants.json"
# What a copy holds.
COPIED = ("src", "tests", "benchmarks", "docs", "tools", "pyproject.toml", "README.md", "GLOSSARY.md", "mkdocs.yml")
# Tests that reach this many CPU seconds have noticed the fault if they are PATIENCE times as fast without it. CPU time,
# because a busy machine, or a pause of the run, is no fault.
LIMIT, PATIENCE = 300, 4
# Of pytest: all passed, some failed.
PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Mutant:
    """A fault: ``old`` text of a file of the package, which occurs once, is replaced by ``new``.

    Attributes
    ----------
    tests : tuple of str
        What pytest is given: files, or single tests, that should notice the fault.
    equivalent : str
        Why no test can notice it, for a change that is no fault after all; else empty.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""

    def occurrences(self, root: Path = ROOT) -> int:
        """How often the old text is in the file; 1 unless the mutant is stale."""
        file = root / "src" / "tuckergp" / self.file
        return file.read_text().count(self.old) if file.is_file() else 0

    def apply(self, root: Path) -> None:
        """Put the fault into a copy of the package."""
        file = root / "src" / "tuckergp" / self.file
        file.write_text(file.read_text().replace(self.old, self.new))


def mutants(path: Path = LIST) -> list[Mutant]:
    """All mutants of the list."""
    entries = json.loads(path.read_text())
    return [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


@contextmanager
def copy_of_project() -> Iterator[Path]:
    """A copy of the project without anything compiled, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        place = Path(folder) / "project"
        place.mkdir()
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "results" if name == "benchmarks" else "")
                shutil.copytree(ROOT / name, place / name, ignore=ignored)
            elif (ROOT / name).is_file():
                shutil.copy2(ROOT / name, place / name)
        yield place


def run_tests(place: Path, tests: Sequence[str], limit: int | None = LIMIT, stop: bool = True) -> dict[str, Any]:
    """Run some tests in a copy: pytest's code (None at the limit), CPU seconds, and what failed, the first or all."""
    data = ROOT.parent / "shared" / "data"
    environment = {
        **os.environ,
        "PYTHONPATH": str(place / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(place.parent / "numba"),
        **dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
        **({"TUCKERGP_DATA": str(data)} if data.is_dir() and "TUCKERGP_DATA" not in os.environ else {}),
    }
    options = [*(["-x"] if stop else []), "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "not slow", "--tb=line"]
    start = cpu_seconds()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
    )  # fmt: skip
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, flags=re.MULTILINE)
    found = {"code": done.returncode, "seconds": round(cpu_seconds() - start, 1), "failed": failed}
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL) and limit is not None and found["seconds"] >= limit - 1:
        return {**found, "code": None}
    return found if done.returncode in (PASSED, FAILED) else {**found, "output": done.stdout[-2000:]}


def cpu_seconds() -> float:
    """CPU seconds of the processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def outcome_of(found: dict[str, Any], tests: Sequence[str]) -> str:
    """Whether the tests noticed: they failed, or took far longer than without the fault."""
    if found["code"] is not None:
        return {PASSED: "survived", FAILED: "noticed"}.get(found["code"], "error")
    with copy_of_project() as place:
        without = run_tests(place, tests)
    quick = without["code"] == PASSED and without["seconds"] * PATIENCE <= found["seconds"]
    return "noticed" if quick else "timed out"


class Runner:
    """Runs mutants and keeps what was found in a file."""

    def __init__(self, output: Path | None, command: str) -> None:
        self.output = output
        self.report: dict[str, Any] = {"command": command, "unmutated": {}, "mutants": {}}
        if output is not None and output.is_file():
            self.report = json.loads(output.read_text())
        self.report |= {"command": command, "machine": facts()}
        for mutant in mutants():  # the reason may have been found after the run
            if mutant.name in self.report["mutants"]:
                self.report["mutants"][mutant.name]["equivalent"] = mutant.equivalent

    def write(self) -> None:
        """Write the report, in place of the old one at once."""
        if self.output is not None:
            half = self.output.with_suffix(".part")
            put(self.report, half)
            half.replace(self.output)

    def run(self, mutant: Mutant, tests: Sequence[str]) -> dict[str, Any]:
        """Run one mutant and keep the outcome."""
        if mutant.occurrences() != 1:
            found: dict[str, Any] = {"outcome": "stale", "occurrences": mutant.occurrences()}
        else:
            with copy_of_project() as place:
                mutant.apply(place)
                found = run_tests(place, tests)
            found["outcome"] = outcome_of(found, tests)
        entry = {"file": mutant.file, "old": mutant.old, "new": mutant.new, "tests": list(tests), **found}
        self.report["mutants"][mutant.name] = {**entry, "equivalent": mutant.equivalent, "commit": commit()}
        self.write()
        return found

    def verify(self) -> None:
        """Run the tests that noticed faults without any fault: those that fail then have noticed nothing."""
        noticed = {name: found for name, found in self.report["mutants"].items() if found["outcome"] == "noticed"}
        new = sorted({test for found in noticed.values() for test in found["failed"]} - set(self.report["unmutated"]))
        if not new:
            return
        with copy_of_project() as place:
            without = run_tests(place, new, limit=None, stop=False)
        if without["code"] not in (PASSED, FAILED):
            raise SystemExit(f"The tests do not run without a fault: {without['output']}")
        for found in noticed.values():
            if set(found["failed"]) & set(without["failed"]):
                found["outcome"] = "error"
        self.report["unmutated"] |= {test: commit() for test in new if test not in without["failed"]}
        self.write()

    def due(self, mutant: Mutant, all_tests: bool) -> bool:
        """Whether a mutant is still to be run: it is new, has changed, or survived and other tests are to be tried."""
        known = self.report["mutants"].get(mutant.name)
        if known is None or (known["old"], known["new"], known["file"]) != (mutant.old, mutant.new, mutant.file):
            return True
        tests = ["tests"] if all_tests else list(mutant.tests)
        return known["outcome"] != "noticed" and known["tests"] != tests and not (mutant.equivalent and not all_tests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="run the mutants with this in their name or file")
    parser.add_argument("--again", action="store_true", help="run those that were not noticed once more")
    parser.add_argument("--all-tests", action="store_true", help="run all tests on mutants that were not noticed")
    parser.add_argument("--jobs", type=int, choices=[1], default=1, help="one at a time")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    runner = Runner(options.output, "python benchmarks/mutants.py")
    listed = {mutant.name for mutant in mutants()}
    runner.report["listed"] = len(listed)
    runner.report["mutants"] = {name: found for name, found in runner.report["mutants"].items() if name in listed}
    runner.write()
    for mutant in mutants():
        known = runner.report["mutants"].get(mutant.name, {}).get("outcome")
        if options.only not in mutant.name and options.only not in mutant.file:
            continue
        if options.all_tests and known == "noticed":
            continue
        if not (runner.due(mutant, options.all_tests) or (options.again and known != "noticed")):
            continue
        found = runner.run(mutant, ["tests"] if options.all_tests else mutant.tests)
        shown = f"{found.get('seconds', 0):6.1f} CPU s  {' '.join(found.get('failed', []))}"
        print(f"{found['outcome']:9} {mutant.name}  {shown}", file=sys.stderr, flush=True)
    runner.verify()


if __name__ == "__main__":
    main()
