"""The walk for a prior scale: where it ends, and what it costs."""

import math

import numpy as np
import pytest

from tuckergp.inference.scale_search import FACTOR, FIRST, MOST_TRIALS, best_scale


class Counted:
    """A misfit that remembers where it was asked for."""

    def __init__(self, function):
        self.function, self.asked = function, []

    def __call__(self, scale):
        self.asked.append(scale)
        return self.function(scale)


@pytest.mark.parametrize("best", [0.15, 0.25, 0.4, 0.5, 0.7, 1.0])
def test_it_finds_the_vertex_of_a_parabola_on_either_side(best):
    misfit = Counted(lambda scale: 3.0 + 0.2 * math.log(scale / best) ** 2)
    assert best_scale(misfit) == pytest.approx(best, rel=1e-9)
    assert len(misfit.asked) <= MOST_TRIALS


def test_no_scale_is_tried_twice_and_a_middle_start_takes_three_trials():
    misfit = Counted(lambda scale: math.log(scale / FIRST) ** 2)
    assert best_scale(misfit) == pytest.approx(FIRST)
    np.testing.assert_allclose(misfit.asked, [FIRST, FIRST * FACTOR, FIRST / FACTOR])


@pytest.mark.parametrize("sign", [1, -1])
def test_where_it_falls_for_ever_the_walk_ends_at_its_last_trial(sign):
    misfit = Counted(lambda scale: sign * math.log(scale))
    found = best_scale(misfit)
    assert len(misfit.asked) == MOST_TRIALS
    assert found == pytest.approx((min if sign > 0 else max)(misfit.asked))


def test_the_answer_is_no_farther_than_half_a_ratio_from_the_best_trial():
    """The lopsided three points here would send an unbounded vertex no farther, flat ones nowhere."""
    assert best_scale(lambda scale: 0.0) == FIRST
    tilted = best_scale(lambda scale: 0.0 if scale >= FIRST * 0.99 and scale < 0.6 else 1e-12 if scale < FIRST else 5.0)
    assert FIRST * FACTOR**0.5 <= tilted <= FIRST


def test_misfits_that_are_not_finite_lose_and_a_first_one_ends_the_search():
    misfit = Counted(lambda scale: math.inf)
    assert best_scale(misfit) == FIRST
    assert misfit.asked == [FIRST]
    over = Counted(lambda scale: math.nan if scale > FIRST else math.log(scale / FIRST) ** 2)
    assert best_scale(over) == FIRST
