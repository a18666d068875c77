"""What every residual must satisfy, those of the lists and the one to copy: draws, predictions and files agree."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.project.test_docs import blocks_of, run
from tuckergp import Mode, TuckerGPRegressor, load
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.features import RESIDUALS as MARKS
from tuckergp.features import Field, Line, LineSum, Rows
from tuckergp.inference import ALS, VI, Gibbs
from tuckergp.inference.base import Problem
from tuckergp.kernels import SE, Identity, Matern12, Matern32
from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Design
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.random import DrawStreams
from tuckergp.residuals import RESIDUALS, NoResidual
from tuckergp.running import loop

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


def skeleton():
    """The mark to copy, from the page that has it."""
    namespace = {"__name__": __name__}
    blocks = [block for block in blocks_of(PAGE.read_text()) if "Residual" in block.code or "class Expo" in block.code]
    run(PAGE, [block._replace(code=block.code.partition("\n\n\nsite, day")[0]) for block in blocks], namespace)
    return namespace["Scaled"]


CASES = {
    "Rows": (Rows(), Identity("t")),
    "Line": (Line(), Matern32(1.0, "t")),
    "LineSum": (Line(), Matern32(1.0, "t") + 0.5 * Matern12(0.3, "t") + 0.1 * Identity("t")),
    "Field": (Field(neighbours=2), Matern32(1.0, ["t", "scale"])),
    "Scaled": (skeleton()(), Identity("t")),
}
PLACES = np.array([0.4, 2.0, 0.1, 3.0, 1.1])


def table_of(t):
    t = np.asarray(t)
    return as_table({"t": t, "scale": 0.5 + t, "x": np.cos(7 * t)}, "data")


@cache
def learned(name):
    """A problem of five rows and four others, the fitted mode, and draws; inputs never seen with two that were."""
    mark, kernel = CASES[name]
    rng = np.random.default_rng(0)
    t, x = PLACES[rng.integers(5, size=40)], rng.integers(4, size=40).astype(float)
    table = as_table({**table_of(t).columns, "x": x}, "data")
    modes = [Mode(["t", "scale"], kernel, features=mark), Mode("x", SE(1.0))]
    design, fitted = Design.fit(modes, table, random_state=0)
    core = make_core("identity", [2, 2])
    model = TuckerModel(core, Gaussian(0.1), core.default_sigma_u(), core.default_sigma_w())
    y = model.predict(model.init(design, rng), design) + 0.3 * rng.standard_normal(40)
    problem = Problem(model, design, y)
    draws, _ = loop.sample(Gibbs(draws=12, warmup=10), problem, 0)
    asked = fitted[0].realise(table_of([9.0, 0.1, 2.5, 3.0]))
    return problem, fitted[0], draws, asked


def test_every_residual_has_a_mark_and_a_case():
    assert {type(mark) for mark, _ in CASES.values()} >= set(MARKS)
    made = {type(learned(name)[0].design.modes[0].residual) for name in CASES}
    assert made >= set(RESIDUALS) - {NoResidual}


@pytest.mark.parametrize("name", CASES)
def test_the_mark_knows_what_draws_keep(name):
    problem, fitted, draws, _ = learned(name)
    rows, values = fitted.residual.kept(2)
    kept = draws.modes[0]
    assert {key: (array.shape[0], *array.shape[2:]) for key, array in kept.rows.items()} == rows
    scales = {"spread": (2, 2), "tau": (len(fitted.blocks),)}
    assert {key: array.shape[1:] for key, array in kept.values.items()} == values | scales
    assert fitted.residual.fault() is None
    assert fitted.residual.n_groups == problem.design.modes[0].residual.n_groups


@pytest.mark.parametrize("name", CASES)
def test_draws_say_of_training_rows_what_the_sampler_saw(name):
    problem, _, draws, _ = learned(name)
    f = draws.predicted(problem.design).f
    np.testing.assert_allclose(f[:, draws.observations], draws.traces[0], atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_some_rows_are_answered_as_all_are(name):
    _, _, draws, asked = learned(name)
    whole = draws.factors(0, asked)
    assert whole.shape == (4, 12, 2)
    np.testing.assert_allclose(draws.factors(0, asked.take(np.array([3, 0]))), whole[[3, 0]], rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_rows_never_seen_are_drawn_around_their_means_and_seen_ones_stay(name):
    """4 rows x 12 draws x 2 numbers, at 5 standard errors: a fresh seed fails in about 1 of 20,000 cases."""
    _, _, draws, asked = learned(name)
    mean = draws.factors(0, asked)
    drawn = np.stack([draws.factors(0, asked, DrawStreams(seed, draws.names)) for seed in range(400)])
    np.testing.assert_allclose(drawn[0][[1, 3]], mean[[1, 3]], rtol=1e-12)
    spread = drawn.std(axis=0)[[0, 2]]
    assert (spread > 0).all()
    assert (np.abs(drawn.mean(axis=0) - mean)[[0, 2]] < 5 * spread / np.sqrt(400)).all()


@pytest.mark.parametrize("name", CASES)
def test_means_instead_of_draws_never_lower_the_log_joint(name):
    problem = learned(name)[0]
    steps = loop.run(ALS(iterations=10, noise=0.1, tolerance=1e-12), problem, 0).steps
    assert (np.diff([info.figures["log_joint"] for info in steps]) > -1e-8).all()


@pytest.mark.parametrize("name", CASES)
def test_whitened_rows_have_the_covariance_of_weights(name):
    """Of prior draws of E, which the residual keeps or has columns for: the identity times sd^2."""
    problem = learned(name)[0]
    residual = problem.design.modes[0].residual
    rng = np.random.default_rng(3)
    squares = []
    for _ in range(1000):
        own = residual.init(2, 0.7, rng)
        columns = residual.columns()
        E = residual.values(own) if columns is None else columns @ (0.7 * rng.standard_normal((columns.shape[1], 2)))
        squares.append(np.mean(residual.whitened(np.asarray(E), own) ** 2))
    assert np.mean(squares) == pytest.approx(0.49, rel=0.08)


@pytest.mark.parametrize("name", CASES)
def test_variational_inference_learns_exchangeable_rows_alone(name):
    problem = learned(name)[0]
    if problem.design.modes[0].residual.exchangeable:
        assert loop.run(VI(iterations=2), problem, 0).steps
    else:
        with pytest.raises(InputError):
            loop.run(VI(iterations=2), problem, 0)


@pytest.mark.parametrize("name", [kind.__name__ for kind in (*MARKS, LineSum)])
def test_a_file_keeps_it(name, tmp_path):
    mark, kernel = CASES[name]
    X = table_of(PLACES).columns
    modes = [Mode(["t", "scale"], kernel, features=mark), Mode("x", SE(1.0))]
    model = TuckerGPRegressor(modes, rank=1, draws=4, warmup=2, random_state=0).fit(X, PLACES)
    model.save(tmp_path / "model.tgp")
    new = table_of([9.0, 0.1]).columns
    for a, b in zip(*(m.predict(new, return_std=True) for m in (model, load(tmp_path / "model.tgp"))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_residuals_that_take_in_no_new_rows_say_so():
    with pytest.raises(InputError, match="residual is NoResidual takes in no new rows; fit again"):
        NoResidual().grown(None, np.zeros(1, dtype=np.uint64), 1)
    with pytest.raises(InputError, match="takes in no new rows"):
        NoResidual().with_rows(None, np.zeros((1, 1, 1)), None)
    assert "no rows of their own" in NoResidual().fault(1, 1)
