"""Where values of the observations lie makes no difference to what they say."""

import numpy as np
import pytest

from tuckergp.likelihoods.precision import Precision
from tuckergp.model.tucker import make_core
from tuckergp.statistics import evidence
from tuckergp.statistics.evidence import NUMBERS, Evidence, Sorted, sort_index

SIZES = (7, 6, 5)
N = 400


def observations(modes: int, storage: int | None, d: int) -> tuple[Sorted, np.ndarray]:
    """Observations that come sorted by mode ``storage``, or in no order."""
    rng = np.random.default_rng(modes)
    index = np.stack([rng.integers(0, size, N) for size in SIZES[:modes]], axis=1).astype(np.int32)
    if storage is not None:
        index = index[np.argsort(index[:, storage], kind="stable")]
    return sort_index(index, d, SIZES[d]), index


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("few", [0, N])
@pytest.mark.parametrize("number", list(NUMBERS))
@pytest.mark.parametrize(("modes", "storage"), [(1, 0), (2, None), (2, 0), (2, 1), (3, None), (3, 0)])
def test_statistics_are_the_same_sums_wherever_targets_lie(monkeypatch, modes, storage, number, few, weighted):
    monkeypatch.setattr(evidence, "FEW", few)
    rng = np.random.default_rng(1)
    psi = [rng.standard_normal((size, 3)) for size in SIZES[:modes]]
    noise = [rng.uniform(0.5, 2.0, size) for size in SIZES[:modes]]
    core = make_core("identity", (3,) * modes)
    y, weight = rng.standard_normal(N), rng.uniform(0.5, 2.0, N) if weighted else None
    precision = Precision(1.3, weight, noise)
    for d in range(modes):
        data, index = observations(modes, storage, d)
        given = Evidence(data, y, precision, core, d, psi, np.ones(1), NUMBERS[number])
        A, b = given.statistics()
        squares = given.residuals().scaled
        z = np.prod([np.ones((N, 3)), *(psi[e][index[:, e]] for e in range(modes) if e != d)], axis=0)
        w, residual = precision.at(index), y - np.einsum("ik,ik->i", z, psi[d][index[:, d]])
        rounding = 1e-11 if number == "float64" else 1e-4
        for m in range(SIZES[d]):
            mine = index[:, d] == m
            np.testing.assert_allclose(A[m], (z[mine] * w[mine, None]).T @ z[mine], rtol=rounding, atol=rounding)
            np.testing.assert_allclose(b[m], z[mine].T @ (w * y)[mine], rtol=rounding, atol=rounding)
            others = (w[mine] / (1.3 * noise[d][m]) * residual[mine] ** 2).sum()
            np.testing.assert_allclose(squares[m], others, rtol=rounding, atol=rounding)


@pytest.mark.parametrize(
    ("storage", "few", "numbers"), [(None, 0, True), (None, N, False), (0, 0, False), (1, 0, False)]
)
def test_targets_are_fetched_by_number_only_where_copies_would_take_memory(monkeypatch, storage, few, numbers):
    monkeypatch.setattr(evidence, "FEW", few)
    y = np.random.default_rng(0).standard_normal(N)
    for d in range(2):
        data, index = observations(2, storage, d)
        given = Evidence(
            data, y, Precision(), make_core("identity", (2, 2)), d, [np.ones((7, 2)), np.ones((6, 2))], np.ones(1)
        )
        given.statistics()
        assert ("order" in vars(data)) == numbers
        assert data.in_order == (d == storage)
        values = data.copied("y", y, np.float64)
        np.testing.assert_array_equal(values, y[np.argsort(index[:, d], kind="stable")])
        assert (values is y) == data.in_order
        assert np.shares_memory(data.rows, index) == (storage == d == 0)
        np.testing.assert_array_equal(data.rows[:, -1], index[data.order, 1 - d])
