import numpy as np
import pytest

from tuckergp.likelihoods.precision import Precision
from tuckergp.model.tucker import make_core
from tuckergp.statistics import coding, evidence
from tuckergp.statistics.coding import coded
from tuckergp.statistics.evidence import Evidence, Sorted, sort_index


@pytest.mark.parametrize("chunk", [1, 7, coding.CHUNK])
def test_codes_give_the_values_back(monkeypatch, chunk):
    monkeypatch.setattr(coding, "CHUNK", chunk)
    monkeypatch.setattr(coding, "FIRST", 2 * chunk)
    values = np.random.default_rng(0).permutation(np.repeat([2.5, -1.0, 0.1, 7.0], 30))
    codes, (levels,) = coded(values)
    np.testing.assert_array_equal(levels, [-1.0, 0.1, 2.5, 7.0])
    np.testing.assert_array_equal(levels[codes], values)


def test_codes_tell_256_values_apart_and_no_more():
    values = np.random.default_rng(1).permutation(np.tile(np.arange(256.0), 3))
    codes, (levels,) = coded(values)
    np.testing.assert_array_equal(levels[codes], values)
    assert coded(np.append(values, 256.0)) is None
    assert coded(np.append(np.zeros(5000), values), np.append(np.ones(5000), values % 2)) is None


def test_codes_tell_rows_of_two_columns_apart():
    rng = np.random.default_rng(3)
    columns = rng.integers(0, 5, 4000) / 2, rng.integers(0, 3, 4000) / 7
    codes, levels = coded(*columns)
    for values, column in zip(levels, columns, strict=True):
        np.testing.assert_array_equal(values[codes], column)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [0, 1])
def test_the_evidence_of_coded_targets_is_that_of_the_targets_themselves(monkeypatch, d, weighted):
    rng = np.random.default_rng(2)
    index = np.stack([rng.integers(0, 6, 500), rng.integers(0, 5, 500)], axis=1).astype(np.int32)
    psi = [rng.standard_normal((6, 3)), rng.standard_normal((5, 3))]
    core, data = make_core("identity", (3, 3)), sort_index(index, d, len(psi[d]))
    weights = [rng.integers(1, 4, 500) / 2 if weighted else None for _ in range(2)]
    targets = [rng.integers(1, 11, 500) / 2, rng.integers(1, 6, 500) / 3]

    def of(y: np.ndarray, weight: np.ndarray | None, data: Sorted = data) -> Evidence:
        return Evidence(data, y, Precision(2.0, weight), core, d, psi, np.ones(1))

    # each in the place of the one before
    for y, weight in [(targets[0], weights[0]), (targets[1], weights[0]), (targets[1], weights[1])]:
        with monkeypatch.context() as context:
            context.setattr(coding, "MOST", 0)  # values are fetched by the numbers of the observations
            context.setattr(evidence, "FEW", 0)
            plain = of(y, weight, sort_index(index, d, len(psi[d])))
            expected = [*plain.statistics(), plain.residuals().squares]
        given = of(y, weight)
        for one, other in zip([*given.statistics(), given.residuals().squares], expected, strict=True):
            np.testing.assert_array_equal(one, other)
        assert data.coded(y, *([] if weight is None else [weight])) is not None
        z, w = psi[1 - d][index[:, 1 - d]], np.ones(500) if weight is None else weight
        b = np.array([2.0 * z[index[:, d] == m].T @ (w * y)[index[:, d] == m] for m in range(len(psi[d]))])
        np.testing.assert_allclose(given.statistics()[1], b, rtol=1e-12)
