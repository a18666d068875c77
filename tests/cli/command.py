"""The command, called in this process with the streams of a pipe; or installed, in a process of its own."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tuckergp.cli import main

COMMAND = str(Path(sys.executable).parent / "tuckergp")


def run_process(*arguments, cwd=None):
    """Run the installed command as a user would, without a terminal; its paths are relative to ``cwd``."""
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


def run(*arguments, cwd=None):
    """Call the command here, where all is loaded already; the same kind of answer as that of a process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", [COMMAND, *map(str, arguments)])
        patch.setattr(sys.modules["__main__"], "__package__", None)  # else python -m pytest is in the command's name
        if cwd is not None:
            patch.chdir(cwd)
        with pytest.raises(SystemExit) as end:
            main()
    printed = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(arguments, int(end.value.code or 0), *printed)


def succeed(*arguments, cwd=None, how=run):
    """Run the command, which must do its job; what it printed."""
    done = how(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr, "colours in a pipe"
    return done.stdout


def refuse(*arguments, cwd=None, code=1, how=run):
    """Run the command, which must refuse in one line; the line."""
    done = how(*arguments, cwd=cwd)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith("tuckergp: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr
