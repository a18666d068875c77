"""Variational inference beside Gibbs sampling: a quick run fills its cells and the table."""

import json

import numpy as np
from typer.testing import CliRunner

from tuckergp.paper.variational import app
from tuckergp.paper.variational_report import variational_table


def test_a_quick_run_fills_cells_and_the_table(data_dir, tmp_path):
    path = tmp_path / "variational.json"
    wanted = "movielens/vi,movielens/als,california/vi,wind"
    found = CliRunner().invoke(app, ["--quick", "--data", str(data_dir), "--only", wanted, "-o", str(path)])
    assert found.exit_code == 0, found.output
    results = json.loads(path.read_text())
    assert len(results["cells"]) == 5
    for name, cell in results["cells"].items():
        assert np.isfinite(cell["test_rmse"])
        assert ("als" in name) != ("coverage" in cell)
    table = variational_table(results)
    assert "| MovieLens 100K, u1 | VI | " in table
    assert "| Irish wind | Gibbs sampling | " in table


def test_cells_that_are_not_there_are_refused(data_dir):
    found = CliRunner().invoke(app, ["--quick", "--data", str(data_dir), "--only", "moon"])
    assert found.exit_code == 2
    assert "No cell begins with 'moon'" in found.output
