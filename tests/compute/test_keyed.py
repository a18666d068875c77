"""Normal and gamma numbers by their names: independent, and the same whoever else is asked about."""

import numpy as np
import pytest
from scipy import stats

from tuckergp.compute import keyed
from tuckergp.compute.keyed import keyed_gammas, keyed_normals
from tuckergp.random import DrawStreams, mixed

ROWS = np.arange(400, dtype=np.uint64)
DRAWS = DrawStreams(5, np.array([(0, number) for number in range(150)])).keys


def twin(row, draw, r):
    """The same numbers one by one, with Python's integers."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1

    def mix(key):
        z = (key + golden) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    state, out = mix(int(row) ^ mix(int(draw))), []
    while len(out) < r:
        u, v = ((mix((state + k * golden) & mask) >> 11) * 2.0**-53 for k in (1, 2))
        state = (state + 2 * golden) & mask
        radius = np.sqrt(-2 * np.log(1 - u))
        out += [radius * np.cos(2 * np.pi * v), radius * np.sin(2 * np.pi * v)]
    return out[:r]


@pytest.mark.parametrize("few", [0, 10**6])
def test_they_are_those_of_a_plain_computation(few, monkeypatch):
    monkeypatch.setattr(keyed, "FEW", few)  # compiled, and by NumPy
    found = keyed_normals(ROWS[:4], DRAWS[:3], 5)
    expected = [[twin(row, draw, 5) for draw in DRAWS[:3]] for row in ROWS[:4]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert keyed_normals(ROWS[:2], DRAWS[:0], 4).shape == (2, 0, 4)
    assert keyed_normals(ROWS[:0], DRAWS[:2], 3).shape == (0, 2, 3)


def test_they_are_normal_and_independent_of_their_neighbours():
    z = keyed_normals(ROWS, DRAWS, 3)
    # fixed numbers: these pass or fail for ever; a wrong constant in the mixing makes some of them fail
    assert stats.kstest(z.ravel(), "norm").pvalue > 0.01
    for a, b in ((z[1:], z[:-1]), (z[:, 1:], z[:, :-1]), (z[..., 1:], z[..., :-1])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 4 / np.sqrt(a.size)
        assert abs(np.corrcoef(a.ravel() ** 2, b.ravel() ** 2)[0, 1]) < 4 / np.sqrt(a.size)


def test_gammas_have_their_shapes_and_are_independent_of_their_neighbours():
    for shape in (1.0, 2.25, 17.0, 500.0):
        g = keyed_gammas(ROWS, DRAWS, np.full(len(DRAWS), shape), 2)
        # fixed numbers again
        assert stats.kstest(g.ravel(), stats.gamma(shape).cdf).pvalue > 0.01
        for a, b in ((g[1:], g[:-1]), (g[:, 1:], g[:, :-1]), (g[..., 1:], g[..., :-1])):
            assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 4 / np.sqrt(a.size)
    each = np.where(ROWS[:, None] % 2 == 0, 1.5, 40.0) * np.ones(len(DRAWS))
    assert stats.kstest(keyed_gammas(ROWS, DRAWS, each)[::2].ravel(), stats.gamma(1.5).cdf).pvalue > 0.01


def test_a_row_has_the_same_numbers_whoever_else_is_asked_about():
    chosen = np.array([3, 77, 5])
    few, every = keyed_normals(ROWS[chosen], DRAWS[40:], 4), keyed_normals(ROWS, DRAWS, 4)
    np.testing.assert_allclose(few, every[chosen, 40:], rtol=1e-12)  # NumPy and compiled code round otherwise
    shapes = np.linspace(1, 9, len(DRAWS))
    few, every = keyed_gammas(ROWS[chosen], DRAWS, shapes, 2), keyed_gammas(ROWS, DRAWS, shapes, 3)
    np.testing.assert_array_equal(few, every[chosen, :, :2])


def test_keys_of_draws_differ_by_seed_chain_and_number():
    names = np.array([(chain, number) for chain in range(3) for number in range(50)])
    keys = np.concatenate([DrawStreams(seed, names).keys for seed in (0, 1)])
    assert len(np.unique(keys)) == 300
    assert len(np.unique(mixed(ROWS))) == len(ROWS)
