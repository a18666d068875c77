"""Samples, covariances and the summands of f of a fitted TuckerGPRegressor."""

import importlib
import itertools

import matplotlib as mpl
import numpy as np
import pytest

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.data.datasets import load_california
from tuckergp.errors import InputError
from tuckergp.kernels import SE, Identity, Matern12, Matern32
from tuckergp.model.tucker import SparseCore

mpl.use("Agg")

SHORT = {"draws": 40, "warmup": 40, "random_state": 0}
RNG = np.random.default_rng(0)
N = 120
X = {
    "day": RNG.permutation(N) / 10.0,
    "place": RNG.uniform(-2, 2, N),
    "station": RNG.choice(["a", "b", "c"], N).astype(object),
}
Y = 50 + 10 * np.sin(X["day"]) * np.cos(X["place"]) + 3 * (X["station"] == "a") + RNG.standard_normal(N)
MODES = [Mode("day", Matern32(2.0)), Mode("place", SE(1.0)), Mode("station", Identity())]
NEW = {
    "day": np.array([0.05, 3.33, 25.0, 25.0]),
    "place": np.array([0.0, 1.0, -1.0, -1.0]),
    "station": np.array(["a", "zz", "zz", "b"], dtype=object),
}


@pytest.fixture(scope="module")
def model():
    """A chain, features and rows; two chains of draws."""
    return TuckerGPRegressor(MODES, rank=(2, 3, 2), chains=2, **SHORT).fit(X, Y)


@pytest.fixture(scope="module")
def surface():
    """Two numeric modes, the most probable point."""
    points = np.stack([X["day"], X["place"]], axis=1)
    modes = [Mode("x0", SE(1.0), whiten=True), Mode("x1", SE(1.0), whiten=True)]
    return TuckerGPRegressor(modes, rank=2, inference="als", random_state=0).fit(points, Y), points


class TestSamples:
    def test_they_have_the_moments_of_predictions(self, model):
        for included in (True, False):
            mean, std = model.predict(NEW, return_std=True, include_noise=included)
            drawn = model.sample_y(NEW, 1500, include_noise=included)
            assert drawn.shape == (4, 1500)
            # 80 draws of the parameters decide, so this is no test of the mean to many digits
            np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=0.5 * std.max())
            np.testing.assert_allclose(drawn.std(axis=1), std, rtol=0.4)  # tails far from the data are heavy

    def test_they_are_joint(self, model):
        far = {"day": [25.0, 25.0, 99.0], "place": [-1.0, -1.1, -1.0], "station": ["zz"] * 3}
        f = model.sample_y({name: np.array(values) for name, values in far.items()}, 80, include_noise=False)
        # one draw of a day far beyond the others, at two places; another draw of another such day
        assert np.corrcoef(f)[0, 1] > 0.8 > np.corrcoef(f)[0, 2] + 0.3
        twice = model.sample_y({name: np.repeat(v, 2) for name, v in NEW.items()}, 5, include_noise=False)
        np.testing.assert_array_equal(twice[::2], twice[1::2])

    def test_the_seed_decides(self, model):
        first, again, other = (model.sample_y(NEW, 3, seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert (first != other).all()
        assert model.sample_y(NEW).shape == (4, 1)
        assert model.sample_y(NEW, 2, np.random.default_rng(0)).shape == (4, 2)

    def test_each_draw_is_used_before_one_is_used_again(self, surface):
        points = np.linspace(0, 1, 30)[:, None]
        gibbs = TuckerGPRegressor(rank=1, draws=10, warmup=5, random_state=0).fit(points, points[:, 0] ** 2)
        f = gibbs.sample_y(points, 20, include_noise=False)
        assert len(np.unique(f.round(12), axis=1).T) == 10
        functions = gibbs.fit_.draws.predicted(gibbs._inputs(points)).f.T
        expected = gibbs.fit_.mean + gibbs.fit_.scale * functions
        np.testing.assert_allclose(np.sort(f[:, :10], axis=1), np.sort(expected, axis=1), atol=1e-12)

    def test_levels_are_drawn_by_their_probabilities(self):
        level = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
        ordinal = TuckerGPRegressor(MODES[:2], rank=2, likelihood="ordinal", **SHORT).fit(X, level)
        near = {name: values[:2] for name, values in NEW.items()}  # far days are drawn anew in every sample
        drawn = ordinal.sample_y(near, 2000)
        assert set(np.unique(drawn)) <= {0.0, 1.0, 2.0}
        shares = np.stack([(drawn == k).mean(axis=1) for k in range(3)], axis=1)
        np.testing.assert_allclose(shares, ordinal.predict_proba(near), atol=0.06)
        means = ordinal.sample_y(NEW, 40, include_noise=False)
        assert ((means > 0) & (means < 2)).all()
        covariance = ordinal.predict(NEW, return_cov=True)[1]
        np.testing.assert_allclose(np.diag(covariance) ** 0.5, ordinal.predict(NEW, return_std=True)[1], rtol=0.02)

    def test_what_makes_no_sense_is_refused(self, model, surface):
        with pytest.raises(InputError, match="n_samples must be a whole number from 1 on, not 0"):
            model.sample_y(NEW, 0)
        with pytest.raises(InputError, match="for samples use inference='gibbs'"):
            surface[0].sample_y(surface[1])


class TestCovariances:
    @pytest.mark.parametrize("included", [True, False])
    def test_their_diagonal_are_the_variances(self, model, included):
        mean, covariance = model.predict(NEW, return_cov=True, include_noise=included)
        expected, std = model.predict(NEW, return_std=True, include_noise=included)
        np.testing.assert_array_equal(mean, expected)
        np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std)
        assert np.linalg.eigvalsh(covariance).min() > -1e-9

    def test_noise_is_on_the_diagonal_alone(self, model):
        with_noise, without = (model.predict(NEW, return_cov=True, include_noise=i)[1] for i in (True, False))
        off = ~np.eye(4, dtype=bool)
        np.testing.assert_array_equal(with_noise[off], without[off])

    @pytest.mark.parametrize("other", [{"return_std": True}, {"quantiles": [0.5]}, {"interval": 0.9}])
    def test_covariances_are_returned_alone(self, model, other):
        with pytest.raises(InputError, match="return_cov=True returns nothing beside covariances"):
            model.predict(NEW, return_cov=True, **other)

    def test_a_most_probable_point_has_none(self, surface):
        with pytest.raises(InputError, match="for covariances use inference='gibbs'"):
            surface[0].predict(surface[1], return_cov=True)


class TestComponents:
    @pytest.mark.parametrize("core", ["full", "identity", SparseCore(5)], ids=repr)
    @pytest.mark.parametrize("modes", [MODES, MODES[:2], MODES[:1]], ids=["three", "two", "one"])
    def test_they_add_up_to_f_of_the_draw(self, core, modes):
        if isinstance(core, SparseCore) and len(modes) < 3:
            core = SparseCore(2)
        model = TuckerGPRegressor(modes, rank=2, core=core, draws=4, warmup=4, random_state=0).fit(X, Y)
        for draw, inputs in itertools.product((0, -1), (X, NEW)):
            parts = model.components(inputs, draw)
            f = model.fit_.draws.predicted(model._inputs(inputs)).f[draw]
            expected = model.fit_.mean + model.fit_.scale * f
            np.testing.assert_allclose(parts.total(), expected, rtol=1e-10)
            np.testing.assert_allclose(parts.mean + parts.tensor().reshape(len(f), -1).sum(axis=1), expected)

    def test_they_are_products_of_a_core_entry_and_a_factor_a_mode(self, surface):
        model, points = surface
        parts = model.components(points)
        design, draws = model._inputs(points), model.fit_.draws
        psi = [mode.features @ draws.modes[d].B[:, 0] for d, mode in enumerate(design.modes)]
        rows, W = design.index, draws.W[0].reshape(2, 2)
        for i, j in itertools.product(range(2), range(2)):
            expected = model.fit_.scale * W[i, j] * psi[0][rows[:, 0], i] * psi[1][rows[:, 1], j]
            np.testing.assert_allclose(parts.tensor()[:, i, j], expected)

    def test_the_largest_come_first_and_the_others_are_added_up(self, model, monkeypatch):
        parts = model.components(X)
        assert parts.values.shape == (N, 12)
        assert (np.diff(parts.sizes) <= 0).all()
        np.testing.assert_allclose(parts.values.std(axis=0), parts.sizes, atol=1e-9)
        monkeypatch.setattr("tuckergp.regressor.components.BLOCK", 100)
        few = model.components(X, top=3)
        assert few.labels == parts.labels[:3]
        np.testing.assert_allclose(few.values, parts.values[:, :3])
        np.testing.assert_allclose(few.total(), parts.total())
        assert "9 more" not in repr(few)
        assert "6 more" in repr(parts)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"draw": 80}, "There are 80 draws, so draw must be from -80 to 79, not 80"),
            ({"draw": 1.5}, "draw must be the number of a draw"),
            ({"top": 0}, "top must be a whole number from 1 on"),
        ],
    )
    def test_what_is_not_there_is_refused(self, model, settings, message):
        with pytest.raises(InputError, match=message):
            model.components(X, **settings)


class TestPlots:
    @pytest.fixture(autouse=True)
    def _closed(self):
        from matplotlib import pyplot

        yield
        pyplot.close("all")

    def test_a_panel_a_component_with_one_colour_scale(self, surface):
        model, points = surface
        axes = model.plot_components(points)
        assert len(axes) == 4
        assert axes[0].get_title().startswith(model.components(points).labels[0])
        assert (axes[2].get_xlabel(), axes[2].get_ylabel()) == ("x0", "x1")
        assert {ax.collections[0].get_clim() for ax in axes} == {(0.0, 100.0)}
        shown = np.concatenate([ax.collections[0].get_array() for ax in axes])
        np.testing.assert_allclose(np.sort(shown), np.linspace(0, 100, 4 * N), atol=1e-9)  # percentiles of all
        bar = axes[0].figure.axes[-1]
        assert "percentile" in bar.get_ylabel()

    def test_uniform_colours_have_zero_in_the_middle(self, surface):
        model, points = surface
        (ax,) = model.plot_components(points, top=1, colour="uniform")
        low, high = ax.collections[0].get_clim()
        assert -low == high == np.abs(model.components(points).values[:, 0]).max()

    def test_an_extent_zooms_in(self, surface):
        model, points = surface
        axes = model.plot_components(points, top=2, extent=(2, 6, -1, 1))
        inside = (points[:, 0] >= 2) & (points[:, 0] <= 6) & (np.abs(points[:, 1]) <= 1)
        assert len(axes[0].collections[0].get_array()) == inside.sum()

    def test_one_column_is_drawn_as_lines_or_dots(self, model):
        axes = model.plot_components(X, columns="day", top=2)
        assert len(axes) == 2
        assert axes[0].get_lines()[-1].get_linestyle() == "-"
        repeated = {**X, "day": np.round(X["day"])}
        assert model.plot_components(repeated, columns="day", top=1)[0].get_lines()[-1].get_marker() == "."

    def test_grids_and_text_are_drawn_as_tiles(self, model):
        day, station = (axis.ravel() for axis in np.meshgrid(np.arange(5.0), ["a", "b", "c"]))
        grid = {"day": day, "place": np.zeros(15), "station": station.astype(object)}
        (ax,) = model.plot_components(grid, columns=["day", "station"], top=1)
        assert ax.collections[0].get_array().shape == (3, 5)
        assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b", "c"]

    def test_axes_may_be_given(self, surface):
        from matplotlib import pyplot

        model, points = surface
        _, ax = pyplot.subplots()
        assert model.plot_components(points, top=1, axes=ax)[0] is ax
        with pytest.raises(InputError, match="axes has 1 entries for 2 panels"):
            model.plot_components(points, top=2, axes=ax)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"colour": "rainbow"}, "colour must be 'percentile' or 'uniform'"),
            ({"columns": ["x0", "x1", "x0"]}, "one or two columns"),
            ({"columns": "z"}, "no column 'z'"),
            ({"extent": (0, 1)}, r"extent must be \(left, right, bottom, top\)"),
            ({"extent": (90, 91, 0, 1)}, "None of the 120 inputs is within"),
        ],
    )
    def test_bad_settings_get_a_sentence(self, surface, settings, message):
        with pytest.raises(InputError, match=message):
            surface[0].plot_components(surface[1], **settings)

    def test_without_numbers_a_column_must_be_named(self):
        levels = {"a": np.array(["x", "y"] * 10, dtype=object)}
        model = TuckerGPRegressor(rank=1, inference="als", random_state=0).fit(levels, np.arange(20.0))
        with pytest.raises(InputError, match="no numeric columns"):
            model.plot_components(levels)

    def test_without_matplotlib_one_sentence_says_so(self, surface, monkeypatch):
        def without(name):
            if name.startswith("matplotlib"):
                raise ImportError(name)
            return importlib.import_module(name)

        monkeypatch.setattr("tuckergp.regressor.plots.import_module", without)
        with pytest.raises(ImportError, match=r"pip install 'tuckergp\[plot\]'"):
            surface[0].plot_components(surface[1])


def test_a_chain_mode_alone_has_its_components_too():
    day = np.arange(30.0)
    model = TuckerGPRegressor([Mode("day", Matern12(5.0))], rank=1, inference="als", random_state=0)
    model.fit({"day": day}, np.sin(day / 4))
    between = {"day": np.array([3.5, 40.0])}
    np.testing.assert_allclose(model.components(between).total(), model.predict(between), rtol=1e-10)


def test_the_papers_picture_of_california(data_dir, tmp_path):
    house = load_california(data_dir)
    places = {name: house.table[name][house.train] for name in ("longitude", "latitude")}
    prices = np.log(house.table["house_value"][house.train])
    modes = [Mode("longitude", Matern12(0.3)), Mode("latitude", Matern12(0.3))]
    model = TuckerGPRegressor(modes, rank=2, draws=10, warmup=20, random_state=0).fit(places, prices)
    axes = model.plot_components(places, extent=(-119, -117, 33.5, 34.5))
    assert [ax.get_title()[:2] for ax in axes] == ["W["] * 4
    axes[0].figure.savefig(tmp_path / "angeles.png")
    assert (tmp_path / "angeles.png").stat().st_size > 10_000
