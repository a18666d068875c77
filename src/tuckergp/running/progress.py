"""The progress line in terminals and notebooks: steps done, speed, time left, figures such as the training error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import numpy as np

from tuckergp.inference.base import Info

__all__ = ["progress_line", "say"]

# Figures in units of the targets' standard deviation.
SCALED = ("train_rmse", "noise")
# Seconds between two states of the line in a notebook.
EVERY = 0.5
# Figures of single steps, for ArviZ: no line needs them.
LEFT_OUT = ("energy", "lp", "step_size", "leapfrogs", "depth")
NAMES = {"train_rmse": "RMSE", "elbo": "ELBO", "log_probability": "log p"}


@contextmanager
def progress_line(
    name: str, total: int, show: bool | None, unit: float = 1.0, done: int = 0
) -> Iterator[Callable[[Info], None]]:
    """Show a progress line and yield the function to call after every step.

    ``show=None`` shows the line when standard error is a terminal, or in a notebook. ``done`` steps of the ``total``
    were taken in an earlier run. Figures in standard deviations of the targets are multiplied by ``unit``.
    """
    notebook = _in_notebook()
    if not _shows(show):
        yield lambda info: None
        return
    if notebook:
        yield _line_of_notebook(name, total, unit, done)
        print(file=sys.stderr)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(name),
        BarColumn(bar_width=10),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[figures]}"),
    )
    console = Console(stderr=True)
    # a file gets the last state of the line only, so that must stay
    with Progress(*columns, console=console, transient=console.is_terminal) as bar:
        began = time.monotonic()
        task = bar.add_task(name, total=total, completed=done, figures="")

        def advance(info: Info) -> None:
            steps = int(bar.tasks[0].completed) + 1 - done
            rate = steps / max(time.monotonic() - began, 1e-9)
            bar.update(task, advance=1, figures=f"{rate:.1f}/s {_figures(info, unit)}")

        yield advance


def say(text: str, show: bool | None) -> None:
    """Write a line about a run where its progress is shown."""
    if _shows(show):
        print(text, file=sys.stderr, flush=True)


def _shows(show: bool | None) -> bool:
    return sys.stderr.isatty() or _in_notebook() if show is None else show


def _figures(info: Info, unit: float) -> str:
    told = {key: value for key, value in info.figures.items() if key not in LEFT_OUT}
    shown = {key: value * unit if key in SCALED else value for key, value in told.items()}
    return " ".join(f"{NAMES.get(key, key)} {value:.4g}" for key, value in shown.items())


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _line_of_notebook(name: str, total: int, unit: float, done: int) -> Callable[[Info], None]:
    """A function that writes the line anew after a step: a carriage return, which all front ends understand."""
    began, shown, steps = time.monotonic(), -np.inf, 0

    def advance(info: Info) -> None:
        nonlocal shown, steps
        steps += 1
        now = time.monotonic()
        if now - shown < EVERY and done + steps < total:
            return
        shown = now
        rate = steps / max(now - began, 1e-9)
        left = timedelta(seconds=round((total - done - steps) / rate))
        line = f"{name} {done + steps}/{total} {left} left {rate:.1f}/s {_figures(info, unit)}"
        print(f"\r{line:<100}", end="", file=sys.stderr, flush=True)

    return advance
