"""From results to a report: `report.html` in a folder, and the documentation's page of the same sections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tuckergp.files import write_text
from tuckergp.paper.report import future, movielens, regression, theory
from tuckergp.paper.report.blocks import Picture, Section, to_markdown
from tuckergp.paper.report.page import page
from tuckergp.paper.report.stored import Drawer, Stored, draw

__all__ = ["FILE", "as_markdown", "write"]

FILE = "report.html"
TIMES = ("seconds", "search_seconds", "refit_seconds")

INTRODUCTION = """# Results

The paper's tables, ours beside them, and models that the paper does not have. All of this page is written by a command
from the results of a full run. The same with figures, as one page that opens in a browser:

    tuckergp reproduce all -o report

A full run takes hours and can be stopped and continued; `--quick` shows in minutes that everything runs. Experiments
one by one, with more detail: [ratings](experiments.md), [space and time](regression-experiments.md)."""


def sections(stored: Stored, drawer: Drawer, folder: Path) -> list[Section]:
    """All sections for which there are results."""
    return [
        *movielens.sections(stored, drawer),
        *regression.sections(stored, drawer, folder),
        *theory.sections(stored, drawer),
        *future.sections(stored, drawer),
    ]


def write(folder: Path, results: dict[str, Any]) -> Path:
    """Write the report of these results, and of the pictures that the folder has."""
    path = folder / FILE
    write_text(path, page(sections(results["experiments"], draw, folder), about(results)))
    return path


def about(results: dict[str, Any]) -> dict[str, str]:
    """What the figures depend on, in words."""
    found = {name: f"{version}" for name, version in results["versions"].items()}
    found["machine"] = f"{results['machine']['processors']} processors, {results['machine']['system']}"
    for name, digest in results["data"].items():
        found[f"data: {name}"] = f"sha256 {digest}"
    for name, experiment in results["experiments"].items():
        quick = "; a quick run, which says nothing about accuracy" if experiment.get("quick") else ""
        cells = experiment["cells"].values()
        seconds = sum(cell.get(key, 0) for cell in cells for key in TIMES)
        found[name] = f"{experiment['command']}: {len(cells)} cells, {seconds / 60:.0f} minutes{quick}"
    return found


def as_markdown(results: dict[str, Any]) -> str:
    """The documentation's page: the same sections without pictures."""

    def none(name: str, caption: str, alt: str, make: Callable[[], Any]) -> Picture:
        return Picture(name, caption, alt, "")

    found = sections(results["experiments"], none, Path())
    facts = "\n".join(f"- {name}: {value}" for name, value in about(results).items())
    return "\n\n".join([INTRODUCTION, *map(to_markdown, found), "## What the figures depend on", facts]) + "\n"
