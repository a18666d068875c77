"""Streams by blocks, slice steps, and overrelaxed draws."""

import numpy as np
import pytest

from tuckergp.errors import DivergenceError
from tuckergp.random import BLOCK, DrawStreams, gammas, log_slice, normals, normals_of_rows, overrelaxed, uniforms

MAKERS = {
    "normals": lambda n, rng: normals((n, 2), rng),
    "uniforms": lambda n, rng: uniforms((n, 3), rng),
    "gammas": lambda n, rng: gammas(np.full((n, 2), 0.7), rng),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_block_draws_the_same_whatever_follows_it(name):
    whole, part = (MAKERS[name](n, np.random.default_rng(1)) for n in (2 * BLOCK + 7, BLOCK))
    np.testing.assert_array_equal(whole[:BLOCK], part)
    assert not np.isin(whole[BLOCK : 2 * BLOCK], part).any()


@pytest.mark.parametrize("widen", [True, False])
def test_slice_steps_keep_a_normal(widen):
    """Mean and variance of 4,000 steps, which hardly depend on each other, within 5 standard errors and some room."""
    rng, x, found = np.random.default_rng(0), 0.0, []
    for _ in range(4000):
        x = log_slice(lambda value: -0.5 * (value - 1) ** 2 / 4, x, 3.0, rng, widen)
        found.append(x)
    assert np.mean(found) == pytest.approx(1.0, abs=0.25)
    assert np.std(found) == pytest.approx(2.0, rel=0.1)


def test_a_slice_that_is_not_widened_goes_no_further_than_its_width():
    rng = np.random.default_rng(0)
    steps = [log_slice(lambda value: 0.0, 0.0, 0.5, rng, widen=False) for _ in range(500)]
    assert 0.4 < np.abs(steps).max() <= 0.5


def test_a_slice_without_room_stays_where_it_is():
    for x in (0.0, 1e9):
        assert log_slice(lambda value: -np.inf, x, 1.0, np.random.default_rng(0)) == x


def test_a_slice_of_what_is_no_number_is_refused():
    with pytest.raises(DivergenceError, match="is not a number any more"):
        log_slice(lambda value: float("nan"), 0.0, 1.0, np.random.default_rng(0))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_an_overrelaxed_draw_is_on_the_other_side_of_the_mean_with_noise_that_keeps_the_variance(share):
    mean, noise, last = np.random.default_rng(0).standard_normal((3, 4))
    expected = mean - share * (last - mean) + np.sqrt(1 - share**2) * noise
    np.testing.assert_allclose(overrelaxed(lambda scale: mean + scale * noise, last, share), expected, rtol=1e-12)


@pytest.mark.parametrize(("first", "last"), [(0, 5), (1_000, 1_030), (1_024, 2_048), (2_040, 2_500), (7, 7)])
def test_rows_of_normals_are_made_without_the_others(first, last):
    rng = np.random.default_rng(0)
    seed = int(np.random.default_rng(0).integers(2**63))
    np.testing.assert_array_equal(normals_of_rows(first, last, 3, seed), normals((2_500, 3), rng)[first:last])


def test_chains_draws_and_modes_have_random_numbers_of_their_own():
    streams = DrawStreams(5, np.array([(chain, number) for chain in range(3) for number in range(4)]))
    of_modes = [streams, *(streams.of_mode(d) for d in range(4))]
    assert len(np.unique([each.keys for each in of_modes])) == 5 * 12
    assert len({float(each(s).standard_normal()) for each in of_modes for s in range(12)}) == 5 * 12
