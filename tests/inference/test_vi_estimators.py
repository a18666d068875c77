"""Variational inference in the estimators: what they answer, what they refuse, how good it is."""

import numpy as np
import pytest

from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender, load
from tuckergp.data.datasets import load_movielens_100k, make_ratings
from tuckergp.errors import InputError
from tuckergp.evaluation.baselines import Biases
from tuckergp.evaluation.metrics import rmse
from tuckergp.inference import VI
from tuckergp.kernels import Matern12
from tuckergp.model.cores import Learned
from tuckergp.paper.movielens_data import entities_of


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=80, n_items=60, n_ratings=2400, random_state=1)


@pytest.fixture(scope="module")
def recommender(data):
    return TuckerRecommender(rank=3, inference="vi", random_state=0).fit(data.train, data.users, data.items)


@pytest.fixture(scope="module")
def surface():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 2))
    return X, np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.standard_normal(300)


def test_the_regressor_knows_the_surface_and_how_sure_it_is(surface):
    X, y = surface
    model = TuckerGPRegressor(rank=3, inference="vi", random_state=0).fit(X[:200], y[:200])
    mean, band = model.predict(X[200:], interval=0.9)
    assert rmse(y[200:], mean) < 0.2
    assert 0.75 < np.mean((band[:, 0] <= y[200:]) & (y[200:] <= band[:, 1])) <= 1.0
    _, std = model.predict(X[200:], return_std=True)
    _, of_f = model.predict(X[200:], return_std=True, include_noise=False)
    assert (of_f < std).all()
    _, far = model.predict([[5.0, 5.0]], return_std=True, include_noise=False)
    assert far > of_f.mean()
    assert {"elbo", "train_rmse", "noise"} == set(model.fit_.steps[-1].figures)


def test_a_matern_term_becomes_features(surface):
    X, y = surface
    modes = [Mode(name, Matern12(1.0)) for name in ("x0", "x1")]
    model = TuckerGPRegressor(modes, rank=2, inference=VI(iterations=20), random_state=0)
    model.fit({"x0": X[:, 0].round(1), "x1": X[:, 1].round(1)}, y)
    assert model.fit_.draws.modes[0].B.shape[2] == 2


def test_weights_count_observations(surface):
    X, y = surface
    twice = np.repeat(np.arange(50), 2)
    model = TuckerGPRegressor(rank=2, inference=VI(iterations=10, draws=8), random_state=0)
    histories = [model.fit(*given).fit_.steps for given in [(X[:50], y[:50], np.full(50, 2.0)), (X[twice], y[twice])]]
    curves = [[info.figures["elbo"] for info in history] for history in histories]
    np.testing.assert_allclose(*curves, rtol=1e-8)


def test_a_recommender_beats_the_mean_and_answers_all_questions(recommender, data, tmp_path):
    y = data.test["rating"]
    mean, band = recommender.predict(data.test, interval=0.9)
    for part in (data.test_known, data.new_user, data.new_item):
        assert rmse(y[part], mean[part]) < 0.97 * rmse(y[part], np.full(part.sum(), data.train["rating"].mean()))
    assert 0.85 < np.mean((band[:, 0] <= y) & (y <= band[:, 1])) < 0.96
    assert len(recommender.recommend(data.train["user_id"][:1], n=5)["item_id"]) == 5
    recommender.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    np.testing.assert_array_equal(again.predict(data.test), mean)
    assert again.fit_.steps[-1].figures == recommender.fit_.steps[-1].figures
    liked = data.items["item_id"][:3]
    asked = {"user_id": ["new"], "item_id": liked[:1]}
    before, unsure = again.predict(asked, return_std=True, include_noise=False)
    again.fold_in({"user_id": ["new"] * 3, "item_id": liked, "rating": [5.0, 5.0, 5.0]})
    after, sure = again.predict(asked, return_std=True, include_noise=False)
    assert after > before
    assert sure < unsure


def test_settings_are_kept_in_files(surface, tmp_path):
    X, y = surface
    inference = VI(iterations=3, draws=8, factorised=True)
    TuckerGPRegressor(rank=2, inference=inference, random_state=0).fit(X, y).save(tmp_path / "model.tgp")
    assert load(tmp_path / "model.tgp").inference == inference


def test_the_same_seed_gives_the_same_model(surface):
    X, y = surface
    found = [
        TuckerGPRegressor(rank=2, inference=VI(iterations=5), random_state=3).fit(X, y).predict(X, return_std=True)[1]
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*found)


def test_what_makes_no_sense_is_refused(recommender, data, surface, tmp_path):
    X, y = surface
    for settings, message in [
        ({"likelihood": "bernoulli"}, "needs inference='gibbs', 'hmc', 'nuts', 'sgld' or 'sgd'"),
        ({"likelihood": "poisson"}, "likelihood='poisson' needs inference='hmc', 'nuts', 'sgld' or 'sgd', not VI"),
        ({"noise": "rows"}, "noise is a setting of inference='gibbs'"),
        ({"draws": 10}, "draws is a setting of inference='gibbs'"),
        ({"core": "pairwise"}, "VI is for cores whose entries have a component of every mode"),
        ({"core": Learned()}, "cores.Learned needs inference='gibbs'"),
    ]:
        with pytest.raises(InputError, match=message):
            TuckerGPRegressor(rank=2, inference="vi", **settings).fit(X, (y > 0).astype(float))
    with pytest.raises(InputError, match="checkpoint is an argument for samplers, such as inference='gibbs'"):
        TuckerGPRegressor(rank=2, inference="vi").fit(X, y, checkpoint=tmp_path)
    with pytest.raises(InputError, match="with VI call fit with all ratings"):
        recommender.partial_fit(data.train)
    with pytest.raises(InputError, match="judge it by elbo"):
        recommender.fit_.draws.diagnostics()
    with pytest.raises(InputError, match="no chains to hand over"):
        recommender.inference_data()


def test_on_movielens_it_beats_biases(data_dir):
    movielens = load_movielens_100k(data_dir)
    train, held = movielens.split(1)
    entities = entities_of(movielens)
    model = TuckerRecommender(rank=8, inference=VI(iterations=15, draws=16), random_state=0)
    model.fit(train, entities.users, entities.items)
    truth = held.numeric("rating")
    biases = rmse(truth, Biases(damping="auto").fit(train).predict(held))
    assert rmse(truth, model.predict(held)) < biases - 0.02
