"""One quick run of everything, which all tests of the report look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tuckergp.cli import app


@pytest.fixture(scope="session")
def quick(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick report."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("quick") / "report"
    done = CliRunner().invoke(app, ["reproduce", "all", "--quick", "--data", str(data_dir), "-o", str(folder)])
    assert done.exit_code == 0, done.output
    assert f"{folder / 'report.html'} shows tables and figures" in done.output
    return folder
