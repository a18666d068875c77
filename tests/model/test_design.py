"""From tables to modes with distinct rows, feature blocks and at most one residual."""

import numpy as np
import pytest
from scipy import sparse

from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.features import Cholesky, Exact, Field, Fourier, Hashing, Line, LineSum, Nystrom, Rows
from tuckergp.kernels import SE, Constant, Identity, Linear, Matern12, Matern32, Matern52, Periodic
from tuckergp.model.design import Design
from tuckergp.model.mode import Mode
from tuckergp.model.mode_table import ModeTable
from tuckergp.residuals import NoResidual
from tuckergp.residuals import Rows as FreeRows

TABLE = as_table(
    {
        "user": ["ann", "bob", "ann", "cat"],
        "week": [1, 1, 2, 1],
        "lon": [0.0, 1.0, 0.0, 1.0],
        "lat": [5.0, 6.0, 5.0, 7.0],
        "tags": [["a"], ["a", "b"], ["a"], []],
    },
    "data",
)


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def gram(design, d):
    table = dense(design.modes[d].table)
    rows = table[design.index[:, d]]
    return rows @ rows.T


def test_the_table_of_a_mode_reproduces_its_kernel_on_every_pair_of_observations():
    kernels = [
        0.5 * Identity("user") + 2.0 * Linear("tags") + Constant(),
        SE([1.0, 2.0], columns=["lon", "lat"]) + 0.1 * Identity("lon", "lat"),
        Identity("user", "week") + Identity("user") + Identity("week"),
    ]
    modes = [
        Mode(["user", "tags"], kernels[0]),
        Mode(["lon", "lat"], kernels[1], constant=False),
        Mode(["user", "week"], kernels[2], constant=False),
    ]
    design, _ = Design.fit(modes, TABLE)
    for d, kernel in enumerate(kernels):
        np.testing.assert_allclose(gram(design, d), kernel(TABLE), atol=1e-8)


def test_the_constant_stays_the_column_of_ones_when_rows_are_numbered_anew():
    design, _ = Design.fit([Mode(["user", "tags"], Identity("user") + Linear("tags"))], TABLE)
    before = design.modes[0]
    rows = before.take(np.array([0, 0, 1, 2, 2]))
    after = rows.with_residual(rows.residual.renumbered(5))
    assert after.residual.n_columns != before.residual.n_columns
    for mode in (before, after):
        np.testing.assert_array_equal(dense(mode.table)[:, mode.constant], 1.0)


def test_duplicates_of_one_input_share_a_row_and_several_columns_make_one_input():
    design, _ = Design.fit([Mode("user", Identity()), Mode(["lon", "lat"], SE())], TABLE)
    assert [mode.n_rows for mode in design.modes] == [3, 3]
    assert design.index[:, 0].tolist() == [0, 1, 0, 2]
    assert design.index[0, 1] == design.index[2, 1]
    assert design.index.dtype == np.int32


def test_the_finest_identity_is_the_residual_and_coarser_ones_are_blocks():
    mode = Mode(["user", "week"], Identity("week") + Identity("user") + Identity("user", "week"), constant=False)
    design, (fitted,) = Design.fit([mode], TABLE)
    assert fitted.residual is not None
    assert [repr(block.kernel) for block in fitted.blocks] == ["Identity('week')", "Identity('user')"]
    assert design.modes[0].residual.columns().shape == (4, 4)


def test_an_input_never_seen_has_no_residual_but_its_other_terms():
    mode = Mode(["user", "tags"], Identity("user") + Linear("tags"))
    _, fitted = Design.fit([mode], TABLE)
    new = Design.transform(fitted, as_table({"user": ["dan", "bob"], "tags": [["b"], ["a", "b"]]}, "new"))
    table = new.modes[0]
    dan, bob = new.index[:, 0]
    assert dense(table.residual.columns())[dan].tolist() == [0, 0, 0]
    assert dense(table.residual.columns())[bob].tolist() == [0, 1, 0]
    assert dense(table.features)[dan].tolist() == [1, 0, 1]  # constant, a, b
    assert dense(table.features)[bob].tolist() == [1, 1, 1]


def test_features_can_be_given_for_all_terms_or_one_by_one():
    _, (one,) = Design.fit([Mode("lon", SE() + Matern12(), features=Fourier(6))], TABLE)
    assert [block.map.n_features_ for block in one.blocks] == [1, 6, 6]
    _, (each,) = Design.fit([Mode("lon", SE() + Identity(), features=[Nystrom(2), Exact()], constant=False)], TABLE)
    assert [block.map.n_features_ for block in each.blocks] == [2, 2]
    assert each.residual is None
    _, (hashed,) = Design.fit([Mode("user", Identity(), features=Hashing(8), constant=False)], TABLE)
    assert hashed.residual is None
    assert hashed.blocks[0].map.n_features_ == 8
    _, (rows,) = Design.fit([Mode("user", Identity(), features=Rows())], TABLE)
    assert rows.residual is not None


def test_whitening_uses_training_mean_and_std_also_for_new_inputs():
    design, fitted = Design.fit([Mode("lat", Linear(), constant=False, whiten=True)], TABLE)
    values = dense(design.modes[0].table)[design.index[:, 0], 0]
    expected = (TABLE["lat"] - TABLE["lat"].mean()) / TABLE["lat"].std()
    np.testing.assert_allclose(values, expected)
    new = Design.transform(fitted, as_table({"lat": [9.0]}, "new"))
    assert dense(new.modes[0].table)[0, 0] == pytest.approx((9.0 - TABLE["lat"].mean()) / TABLE["lat"].std())


def test_numbers_of_a_kernel_are_in_units_of_the_column_unless_whitened():
    raw, _ = Design.fit([Mode("lat", SE(2.0), constant=False)], TABLE)
    np.testing.assert_allclose(gram(raw, 0), SE(2.0)(TABLE["lat"]), atol=1e-8)


def test_mistakes_get_one_clear_sentence():
    with pytest.raises(InputError, match="data has no column 'age'"):
        Design.fit([Mode("age", SE())], TABLE)
    with pytest.raises(InputError, match="at least one column"):
        Mode([], SE())
    with pytest.raises(InputError, match="must be a tuckergp kernel, not 'se'"):
        Mode("lon", "se")
    with pytest.raises(InputError, match="2 kernel terms but 1 entries in features"):
        Design.fit([Mode("lon", SE() + Identity(), features=[None])], TABLE)
    with pytest.raises(InputError, match="fits no term"):
        Design.fit([Mode("lon", Linear(), features=Fourier(4))], TABLE)
    with pytest.raises(InputError, match=r"Rows\(\) is for one Identity term"):
        Design.fit([Mode(["user", "week"], Identity("week"), features=Rows())], TABLE)
    with pytest.raises(InputError, match="data is empty"):
        Design.fit([Mode("lon", SE())], TABLE.take(np.array([], dtype=int)))
    with pytest.raises(InputError, match="at least one mode"):
        Design.fit([], TABLE)


def test_a_matern_on_one_column_is_a_chain_and_other_terms_are_features():
    kernel = Periodic(3.0) + 0.25 * Matern32(2.0) + Matern12(1.0)
    for features in ([None, None, Cholesky()], [None, Line(), Cholesky()]):
        design, (fitted,) = Design.fit([Mode("lat", kernel, features=features)], TABLE)
        line = design.modes[0].residual
        assert (line.order, line.lengthscale, line.sd, line.learn) == (2, 2.0, 0.5, True)
        assert line.knots.tolist() == [5.0, 6.0, 7.0]
        assert line.columns() is None
        assert [repr(block.kernel) for block in fitted.blocks] == [
            "Constant()",
            repr(Periodic(3.0)),
            repr(Matern12(1.0)),
        ]
    new = Design.transform([fitted], as_table({"lat": [8.0, 6.0]}, "new")).modes[0].residual
    assert new.t.tolist() == [6.0, 8.0]
    assert new.place.tolist() == [1, -1]


def test_materns_on_one_column_are_one_chain():
    kernel = 0.25 * Matern32(2.0) + Periodic(3.0) + Matern12(1.0)
    for features, learn in ((None, True), (Line(learn=False), False), ([Line(), None, Line()], True)):
        design, (fitted,) = Design.fit([Mode("lat", kernel, features=features)], TABLE)
        line = design.modes[0].residual
        assert (line.orders, line.lengthscale.tolist(), line.share.tolist()) == ((2, 1), [2.0, 1.0], [0.2, 0.8])
        assert (line.sd, line.learn) == (pytest.approx(1.25**0.5), (learn, learn))
        assert line.knots.tolist() == [5.0, 6.0, 7.0]
        assert [repr(block.kernel) for block in fitted.blocks] == ["Constant()", repr(Periodic(3.0))]
    design, (fitted,) = Design.fit([Mode("lat", kernel)], TABLE, any_residual=False)
    assert [repr(block.kernel) for block in fitted.blocks[1:]] == [repr(term) for term in kernel.terms()]
    two = Mode(["lon", "lat"], Matern12(columns="lon") + Matern32(columns="lat"), constant=False)
    _, (fitted,) = Design.fit([two], as_table({"lon": [0.0, 1.0, 3.0], "lat": [2.0, 0.0, 1.0]}, "data"))
    assert [type(fitted.residual), repr(fitted.blocks[0].kernel)] == [Line, repr(Matern32(columns="lat"))]


def test_a_chain_is_in_units_of_the_whitened_column():
    design, _ = Design.fit([Mode("lat", Matern52(1.0), whiten=True)], TABLE)
    expected = (np.array([5.0, 6.0, 7.0]) - TABLE["lat"].mean()) / TABLE["lat"].std()
    np.testing.assert_allclose(design.modes[0].residual.knots, expected)


def test_rows_come_before_a_chain_unless_it_is_asked_for():
    _, (rows,) = Design.fit([Mode("lat", Matern12() + Identity(), constant=False)], TABLE)
    assert [type(rows.residual), type(rows.blocks[0].map)] == [Rows, Cholesky]
    for features in (Line(), [Line(), None], [Line(), Line()]):
        _, (chain,) = Design.fit([Mode("lat", Matern12() + Identity(), features=features, constant=False)], TABLE)
        assert [type(chain.residual), chain.residual.orders_, len(chain.blocks)] == [LineSum, (1, 0), 0]
    asked = Mode("lat", Matern12() + Identity(), features=[Line(), Exact()], constant=False)
    _, (chain,) = Design.fit([asked], TABLE)
    assert [type(chain.residual), type(chain.blocks[0].map)] == [Line, Exact]


def test_a_matern_of_several_columns_becomes_a_field():
    design, (fitted,) = Design.fit([Mode(["lon", "lat"], 4.0 * Matern12(), constant=False)], TABLE)
    assert [type(fitted.residual), fitted.residual_sd, len(fitted.blocks)] == [Field, 2.0, 0]
    np.testing.assert_array_equal(design.modes[0].residual.points, np.unique(design.modes[0].residual.train.X, axis=0))
    design, _ = Design.fit([Mode(["lon", "lat"], Matern12())], TABLE, any_residual=False)
    assert isinstance(design.modes[0].residual, NoResidual)


def test_a_matern_that_cannot_be_a_chain_becomes_features():
    several = Mode(["lon", "lat"], Matern12(), features=Cholesky(), constant=False)
    shared = Mode(["user", "week"], Matern12(columns="week"), constant=False)  # two inputs of one week
    product = Mode("lat", Matern12() * Periodic(2.0), constant=False)
    for mode in (several, shared, product, Mode("lat", Matern12(), features=Cholesky(), constant=False)):
        design, (fitted,) = Design.fit([mode], TABLE)
        assert isinstance(design.modes[0].residual, NoResidual)
        assert len(fitted.blocks) == 1
    design, _ = Design.fit([Mode("lat", Matern12())], TABLE, any_residual=False)
    assert isinstance(design.modes[0].residual, NoResidual)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        (Mode(["user", "week"], Matern12(columns="week"), features=Line()), "tells all inputs of the mode apart"),
        (Mode(["lon", "lat"], Matern12(), features=Line()), "one column that tells all inputs"),
        (Mode("lat", SE(), features=Line()), "fits no term"),
        (Mode("lat", SE(), features=[Line()]), "for Matern terms on one column"),
        (Mode("lat", Matern12() + SE(), features=[Line(), Line()]), "for Matern terms on one column"),
        (Mode("user", Matern12()), "'user' must be numeric, but row 0 holds 'ann'"),
        (Mode("lat", Matern12(-1.0)), "lengthscale"),
        (Mode("lat", Matern12() * -1.0), "scale of a kernel must be positive"),
    ],
)
def test_a_chain_that_cannot_be_is_refused(mode, message):
    with pytest.raises(InputError, match=message):
        Design.fit([mode], TABLE)


def test_a_chain_of_missing_numbers_is_refused():
    with pytest.raises(InputError, match=r"column 'day' is missing \(NaN\)"):
        Design.fit([Mode("day", Matern12())], as_table({"day": [1.0, np.nan, 2.0]}, "data"))


def test_rows_that_were_added_are_among_those_of_many_observations():
    rng = np.random.default_rng(0)
    first, added = rng.standard_normal((3, 2)), rng.standard_normal((2, 2))
    table = ModeTable(first, FreeRows(np.arange(3, dtype=np.int32), 5))
    grown = table.grown(ModeTable(added, FreeRows(np.array([3, 4], dtype=np.int32), 5)))
    index = rng.integers(5, size=(40, 1)).astype(np.int32)
    design = Design((grown,), index).compact()
    np.testing.assert_array_equal(design.modes[0].features[design.index[:, 0]], np.vstack([first, added])[index[:, 0]])
    np.testing.assert_array_equal(design.modes[0].residual.place[design.index[:, 0]], index[:, 0])
