"""Independent rows: names of random numbers follow the rows."""

import numpy as np

from tuckergp.residuals import Rows


def test_names_follow_rows_that_are_taken_and_joined():
    places, names = np.array([0, -1, -1], dtype=np.int32), np.array([0, 7, 9], dtype=np.uint64)
    rows = Rows(places, 1, names=names)
    both = rows.joined(rows.take(np.array([2, 0])))
    assert both.keys.tolist() == [0, 7, 9, 9, 0]
    assert both.undetermined.tolist() == [False, True, True, True, False]
    assert Rows.of(3).joined(rows).keys.tolist() == [0, 0, 0, 0, 7, 9]
    assert rows.named(names[::-1]).keys.tolist() == [9, 7, 0]
