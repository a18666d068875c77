"""Reports from the results files of a folder: an HTML page, a file of all numbers, tables for documentation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tuckergp.files import write_text
from tuckergp.paper import pictures
from tuckergp.paper.experiment import Cells, Experiment, Rows
from tuckergp.paper.experiments import EXPERIMENTS, GROUPS
from tuckergp.paper.run import read
from tuckergp.paper.writer import page

__all__ = ["REPORT", "RESULTS", "cells_of", "stored", "tables", "write"]

REPORT, RESULTS = "report.html", "results.json"


def stored(folder: Path) -> dict[str, dict[str, Any]]:
    """The results of a folder by experiment; those that were not run are left out."""
    paths = {one.name: folder / f"{one.name}.json" for one in EXPERIMENTS}
    return {name: read(path) for name, path in paths.items() if path.is_file()}


def cells_of(experiment: Experiment, results: Mapping[str, dict[str, Any]]) -> Cells:
    """The cells that the blocks of an experiment get: its own, and those of the experiments in ``beside``."""
    cells: dict[str, Any] = dict(results[experiment.name]["cells"])
    for name in experiment.beside:
        cells |= {f"{name}/{cell}": figures for cell, figures in results.get(name, {"cells": {}})["cells"].items()}
    return cells


def tables(folder: Path) -> dict[str, Rows]:
    """All tables of the results in a folder by their names."""
    results = stored(folder)
    made = {
        table.name: table.rows(cells_of(one, results))
        for one in EXPERIMENTS
        if one.name in results
        for table in one.tables
    }
    return made | {"runs": runs_table(results), "data": data_table(results)}


def write(folder: Path) -> dict[str, dict[str, Any]]:
    """Draw the figures and write the report and the file of all numbers; returns the results."""
    results = stored(folder)
    shown = [(one, cells_of(one, results)) for one in EXPERIMENTS if one.name in results]
    for experiment, cells in shown:
        for picture in experiment.pictures:
            if picture.draw is not None:
                png = not results[experiment.name]["quick"]  # for documentation
                pictures.save(partial(picture.draw, cells), picture.name, folder, png)
    parts = {group: [(one, cells) for one, cells in shown if one.group == group] for group in GROUPS}
    sections = [(group, GROUPS[group], part) for group, part in parts.items() if part]
    write_text(folder / REPORT, page(sections, facts(results), folder))
    write_text(folder / RESULTS, json.dumps(results, indent=1) + "\n")
    return results


def runs_table(results: Mapping[str, dict[str, Any]]) -> Rows:
    """The command, amount of work, versions and machine of each run."""
    rows = [["experiment", "command", "cells", "minutes", "versions", "machine"]]
    for name, result in results.items():
        cells = result["cells"].values()
        minutes = sum(cell.get("seconds", 0) for cell in cells) / 60
        versions = ", ".join(f"{package} {version}" for package, version in result["versions"].items())
        machine = f"{result['machine']['processors']} processors, {result['machine']['system']}"
        rows.append([name, f"`{result['command']}`", str(len(cells)), f"{minutes:.0f}", versions, machine])
    return rows


def data_table(results: Mapping[str, dict[str, Any]]) -> Rows:
    """Checksums of the data."""
    checksums = {name: digest for one in results.values() for name, digest in one["data"].items()}
    return [["data", "SHA-256 of what was read"], *([name, f"`{digest}`"] for name, digest in checksums.items())]


def facts(results: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """What the figures depend on, as text."""
    lines = {}
    for name, command, cells, minutes, versions, machine in runs_table(results)[1:]:
        quick = "; a quick run, which says nothing about accuracy" * results[name]["quick"]
        lines[name] = f"{command.strip('`')}: {cells} cells, {minutes} minutes; {versions}; {machine}{quick}"
    return lines | {f"data: {name}": f"SHA-256 {digest.strip('`')}" for name, digest in data_table(results)[1:]}
