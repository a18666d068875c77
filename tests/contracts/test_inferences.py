"""What every inference algorithm must satisfy, those of the registry and the one to copy: no other code asks which."""

import ast
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.project.test_docs import blocks_of, run
from tuckergp import TuckerGPRegressor, TuckerRecommender
from tuckergp.errors import InputError
from tuckergp.inference import INFERENCES, Inference
from tuckergp.inference.algorithm import Converging, Sampled
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.store.schema import class_of

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tuckergp"
# Of files that may name algorithms: the package itself, likelihoods, which list those that learn them, and the paper's
# own settings; and Spark, which runs two of them.
FREE = ("inference", "likelihoods", "paper", "spark")
# Where estimators have the settings that a name stands for: as strings, to look them up by.
DEFAULTS = ("regressor/choosing.py", "recommender/choosing.py")


def skeleton():
    """The one to copy, from the page that has it."""
    page = ROOT / "docs" / "extending.md"
    namespace = {"__name__": __name__}
    blocks = blocks_of(page.read_text())
    (block,) = (block for block in blocks if "class Ascent(" in block.code)
    run(page, [blocks[0], block], namespace)
    return namespace["Ascent"]


ALL = {**INFERENCES, "ascent": skeleton()}


def outside():
    paths = [(path.relative_to(SOURCE), ast.parse(path.read_text())) for path in SOURCE.rglob("*.py")]
    return [(path.as_posix(), tree) for path, tree in paths if path.parts[0] not in FREE]


def test_nothing_else_names_an_algorithm():
    """No import of a class of one, no string that is the name of one, but for the default and where defaults are."""
    names, classes = set(INFERENCES), {kind.__name__ for kind in INFERENCES.values()}
    found = []
    for path, tree in outside():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tuckergp.inference"):
                found += [(path, node.lineno, alias.name) for alias in node.names if alias.name in classes]
            if isinstance(node, ast.Constant) and node.value in names - {"gibbs"} and path not in DEFAULTS:
                found.append((path, node.lineno, node.value))
            if isinstance(node, ast.Compare):
                parts = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
                found += [
                    (path, node.lineno, part.value)
                    for part in parts
                    if isinstance(part, ast.Constant) and part.value in names
                ]
    assert not found


@pytest.mark.parametrize("name", ALL)
def test_it_says_what_it_is(name):
    kind, settings = ALL[name], {each.name for each in fields(ALL[name])}
    assert kind.name == name
    assert issubclass(kind, Sampled) != issubclass(kind, Converging)
    assert set(kind.takes) <= settings & {"draws", "warmup", "chains", "noise"}
    assert set(kind.of_noise) <= settings
    assert not (kind.point and issubclass(kind, Sampled))
    assert kind.resumes == (kind.resumed is not Inference.resumed)
    assert not kind.weighs_blocks or kind().block_prior() is not None
    assert kind.learns(LIKELIHOODS["gaussian"])
    assert kind.__doc__


@pytest.mark.parametrize("name", INFERENCES)
def test_files_know_it(name):
    assert class_of(INFERENCES[name].__name__) is INFERENCES[name]


@pytest.mark.parametrize("name", ALL)
def test_estimators_take_it_by_its_name_and_as_an_object(name, monkeypatch):
    """One line in the registry is enough; the skeleton shows it."""
    monkeypatch.setitem(INFERENCES, name, ALL[name])
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(40, 1))
    sampled = issubclass(ALL[name], Sampled)
    lengths = {"draws": 4, "warmup": 3, "chains": 2} if sampled else {}
    for inference, settings in ((name, lengths), (ALL[name](**lengths), {})):
        model = TuckerGPRegressor(rank=1, inference=inference, random_state=0, **settings).fit(X, np.sin(X[:, 0]))
        draws = model.fit_.draws
        assert draws.sampled != ALL[name].point
        assert draws.lengths == ((4, 4) if sampled else (1,) if ALL[name].point else (ALL[name]().draws,))
        assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("name", ALL)
def test_recommenders_take_those_that_are_for_ratings(name, monkeypatch):
    monkeypatch.setitem(INFERENCES, name, ALL[name])
    ratings = {"user_id": list("aabbcc"), "item_id": [1, 2, 1, 3, 2, 3], "rating": [1.0, 2.0, 3.0, 4.0, 5.0, 1.0]}
    lengths = {"draws": 3, "warmup": 2} if issubclass(ALL[name], Sampled) else {}
    model = TuckerRecommender(rank=1, inference=name, random_state=0, **lengths)
    if not ALL[name].for_ratings:
        with pytest.raises(InputError, match=r"^inference must be 'gibbs', .*or an object \(Gibbs, .*\), not '"):
            model.fit(ratings)
        return
    assert np.isfinite(model.fit(ratings).predict(ratings)).all()
    if ALL[name].resumes:
        assert np.isfinite(model.partial_fit(ratings).predict(ratings)).all()
    else:
        with pytest.raises(InputError, match="partial_fit needs"):
            model.partial_fit(ratings)


@pytest.mark.parametrize("name", ALL)
def test_settings_of_an_estimator_that_it_does_not_take_are_refused(name, monkeypatch):
    monkeypatch.setitem(INFERENCES, name, ALL[name])
    for setting, value in {"draws": 7, "warmup": 7, "chains": 3, "noise": "rows"}.items():
        if setting not in ALL[name].takes:
            model = TuckerGPRegressor(inference=name, **{setting: value})
            with pytest.raises(InputError, match=f"^{setting} is a setting of inference='gibbs'") as caught:
                model.fit([[0.0], [1.0]], [0.0, 1.0])
            able = [each for each in INFERENCES if f"'{each}'" in str(caught.value).split(";")[0]]
            assert able == [each for each, kind in INFERENCES.items() if setting in kind.takes]


@pytest.mark.parametrize("name", [name for name, kind in ALL.items() if kind.of_noise])
def test_settings_of_noise_are_refused_where_there_is_none(name):
    for likelihood in LIKELIHOODS.values():
        changed = ALL[name](**{ALL[name].of_noise[0]: 0.123})
        if ALL[name].learns(likelihood) and not likelihood.has_noise:
            ALL[name]().check_likelihood(likelihood)
            with pytest.raises(InputError, match=rf"{ALL[name].of_noise[0]} .*for a Gaussian likelihood; .* leave"):
                changed.check_likelihood(likelihood)


# Values that no number may be; 0 and -1 are wrong where None, "a" and the like are, but for what may be 0.
NEVER = [float("nan"), float("inf"), -float("inf"), "a", [], -1, -0.5]
MAY_BE_ZERO = {"overrelaxation", "warmup", "begin", "validation", "decay"}
MAY_BE_BOOL = {"factorised", "precondition", "shrinkage"}
MAY_BE_NONE = {"sigma_u", "sigma_w", "step_w", "scale", "noise"}
WHOLE = {"draws", "warmup", "thin", "chains", "iterations", "epochs", "batch_size", "patience", "leapfrogs"}
WHOLE |= {"max_depth", "begin"}


def wrong_values():
    for kind in ALL.values():
        for each in fields(kind):
            wrong = list(NEVER)
            wrong += [] if each.name in MAY_BE_ZERO else [0]
            wrong += [1, 0] if each.name in MAY_BE_BOOL else [True, np.True_]
            wrong += [] if each.name in MAY_BE_NONE and each.default is None else [None]
            wrong += [2.5, 2.0] if each.name in WHOLE else []
            yield pytest.param(kind, each.name, wrong, id=f"{kind.__name__}-{each.name}")


@pytest.mark.parametrize("kind", ALL.values(), ids=ALL)
def test_every_setting_is_declared_and_its_default_is_allowed(kind):
    assert all("allowed" in each.metadata for each in fields(kind))
    kind()


@pytest.mark.parametrize(("kind", "name", "wrong"), list(wrong_values()))
def test_a_wrong_setting_is_refused_with_a_sentence_that_names_class_and_setting(kind, name, wrong):
    for value in wrong:
        with pytest.raises(InputError, match=rf"^{kind.__name__}: {name} must be .*, not .*\.$"):
            kind(**{name: value})


@pytest.mark.parametrize("kind", ALL.values(), ids=ALL)
def test_numbers_of_numpy_are_allowed(kind):
    for each in fields(kind):
        if isinstance(each.default, bool | int | float):
            kind(**{each.name: np.asarray(each.default)[()]})


@pytest.mark.parametrize("name", [name for name, kind in ALL.items() if issubclass(kind, Sampled)])
def test_a_sampler_keeps_at_least_one_draw(name):
    kind = ALL[name]
    assert kind(draws=3, thin=3).n_steps == kind().warmup + 3
    with pytest.raises(InputError, match=f"^{kind.__name__}: thin=4 would keep none of 3 draws"):
        kind(draws=3, thin=4)
