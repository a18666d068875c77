"""The installed command, run as a user would: in a process of its own, without a terminal."""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).parent / "tuckergp")


def run(*arguments, cwd=None):
    """Run the command; its paths are relative to ``cwd``."""
    paths = [str(Path(entry).resolve()) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def succeed(*arguments, cwd=None):
    """Run the command, which must do its job; what it printed."""
    done = run(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr, "colours in a pipe"
    return done.stdout


def refuse(*arguments, cwd=None, code=1):
    """Run the command, which must refuse in one line; the line."""
    done = run(*arguments, cwd=cwd)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith("tuckergp: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr
