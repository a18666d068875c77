"""Rows that are added without a copy of those that are there."""

import numpy as np

from tuckergp.residuals.grown import grown


def test_each_holder_keeps_what_it_saw_however_its_rows_are_grown():
    rng = np.random.default_rng(0)
    base = rng.standard_normal((4, 3, 2)).astype(np.float32)
    held, expected = [base], [base]
    # any version may be grown again, the latest as well as an older one
    for step in range(200):
        k = len(held) - 1 if step % 3 else int(rng.integers(len(held)))
        more = rng.standard_normal((int(rng.integers(3)), 3, 2)).astype(np.float32)
        held.append(grown(held[k], more))
        expected.append(np.concatenate([expected[k], more]))
    for rows, whole in zip(held[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(np.asarray(rows), whole)
        np.testing.assert_array_equal(rows[np.arange(len(rows))[::-1]], whole[::-1])
        np.testing.assert_array_equal(rows[:, [2, 0]][:], whole[:, [2, 0]])


def test_rows_added_one_by_one_are_copied_rarely():
    rows, buffers = np.zeros((1, 2)), set()
    for k in range(1000):
        rows = grown(rows, np.full((1, 2), k))
        buffers.add(rows.more.__array_interface__["data"][0])
    assert len(buffers) <= 12
    np.testing.assert_array_equal(rows.more[:, 0], np.arange(1000))
