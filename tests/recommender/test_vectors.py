"""Columns of vectors, such as embeddings, as attributes."""

import numpy as np
import pytest

from tuckergp import TuckerRecommender, load
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.kernels import SE, Cosine
from tuckergp.recommender.attributes import Attributes

FAST = {"rank": 3, "draws": 20, "warmup": 20, "time": None, "implicit": False, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    """Tastes for items are linear in an embedding of theirs."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((80, 8)) * [1, 10, 0.1, 1, 1, 1, 1, 1] + 3
    user, item = rng.integers(60, size=3000), rng.integers(60, size=3000)
    f = rng.standard_normal((60, 2)) @ ((vectors - 3) / [1, 10, 0.1, 1, 1, 1, 1, 1] @ rng.standard_normal((8, 2))).T
    rating = 3 + 0.4 * f[user, item] + 0.2 * rng.standard_normal(3000)
    items = {"item_id": np.arange(80), "embedding": [row.tolist() for row in vectors]}
    return {"user_id": user, "item_id": item, "rating": rating}, items, f


def encoded(cells, **choices):
    table = as_table({"item_id": list(range(len(cells))), "v": cells}, "items")
    attributes = Attributes.fit("item_id", table, choices)
    return attributes, attributes.encode(table)


def test_a_vector_is_one_attribute_with_standardised_coordinates():
    cells = [[1.0, 5.0], (3.0, 5.0), None, np.array([5.0, 5.0])]
    attributes, table = encoded(cells)
    (attribute,) = attributes.used
    assert (attribute.use, attribute.note) == ("vector", "vector of 2, standardised; 1 missing")
    np.testing.assert_allclose(table["v[0]"], np.array([-2.0, 0.0, 0.0, 2.0]) / np.sqrt(8 / 3))
    np.testing.assert_array_equal(table["v[1]"], np.zeros(4))
    # lists of whole numbers are sets of things, as they were
    assert encoded([[1, 2], [2, 3], [1, 3]])[0].used[0].use == "bag"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([[1.0, 2.0], [1.0]], "items column 'v' at row 1 has a vector of length 1, and others are of length 2"),
        ([[1.0, 2.0], [1.0, np.nan]], "at row 1 has a vector with NaN or infinity"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(cells, message):
    with pytest.raises(InputError, match=message):
        encoded(cells)


@pytest.mark.parametrize("kernel", [None, SE(2.0), Cosine()])
def test_new_items_are_predicted_from_their_vectors(data, kernel, tmp_path):
    ratings, items, f = data
    choice = None if kernel is None else {"items": {"embedding": kernel}}
    rec = TuckerRecommender(**FAST, attributes=choice).fit(ratings, items=items, progress=False)
    cold = np.arange(60, 80)
    pairs = {"user_id": np.repeat(np.arange(60), 20), "item_id": np.tile(cold, 60)}
    correlation = np.corrcoef(rec.predict(pairs, clip=False), f[:, cold].ravel())[0, 1]
    assert correlation > (0.9 if kernel is None else 0.5)
    assert "vector of 8" in str(rec.features_)
    assert "item embedding=vector of 8" in str(rec.explain(0, 60))
    rec.save(tmp_path / "m.tgp")
    np.testing.assert_array_equal(load(tmp_path / "m.tgp").predict(pairs), rec.predict(pairs))
    alike = rec.similar_items({"embedding": [items["embedding"][3]]}, n=5)
    assert 3 in list(alike["item_id"])
    new = {"item_id": [99], "embedding": [[1.0] * 7]}
    with pytest.raises(InputError, match="has a vector of length 7, and others are of length 8"):
        rec.fold_in({"user_id": [1], "item_id": [99], "rating": [3.0]}, items=new)
