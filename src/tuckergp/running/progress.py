"""The progress line on a terminal: steps done, speed, time left, figures such as the training error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tuckergp.inference.base import Info

__all__ = ["progress_line"]

# Figures in units of the targets' standard deviation.
SCALED = ("train_rmse", "noise")
NAMES = {"train_rmse": "RMSE", "elbo": "ELBO", "log_probability": "log p"}


@contextmanager
def progress_line(
    name: str, total: int, show: bool | None, unit: float = 1.0, done: int = 0
) -> Iterator[Callable[[Info], None]]:
    """Show a progress line and yield the function to call after every step.

    ``show=None`` shows the line when standard error is a terminal. ``done`` steps of the ``total`` were taken in an
    earlier run. Figures in standard deviations of the targets are multiplied by ``unit``.
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda info: None
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
            figures = [f"{steps / max(time.monotonic() - began, 1e-9):.1f}/s"]
            for key, value in info.figures.items():
                figures.append(f"{NAMES.get(key, key)} {value * unit if key in SCALED else value:.4g}")
            bar.update(task, advance=1, figures=" ".join(figures))

        yield advance
