"""Files that are cut, changed, of another version or made by somebody else are refused in one sentence."""

from __future__ import annotations

import copy
import json
import os
import re
import tracemalloc
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.store.files import learned, rewrite
from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender, load
from tuckergp.errors import InputError
from tuckergp.kernels import Identity, Linear, Matern12
from tuckergp.store.cells import write_columns

SENTENCE = re.compile(r"model\.tgp is damaged or no tuckergp model: [^\n]+\. Fit and save it again\.")


@pytest.fixture(scope="module")
def ratings():
    return {"user_id": [1, 2, 3, 1], "item_id": [5, 5, 6, 6], "rating": [1.0, 2.0, 3.0, 5.0]}


@pytest.fixture(scope="module")
def model(ratings):
    users = {"user_id": [1, 2, 3, 4], "town": ["a", "b", "a", "b"]}
    return TuckerRecommender(rank=2, draws=3, warmup=1, random_state=0).fit(ratings, users)


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.tgp")
    return tmp_path / "model.tgp"


def refusal_or_model(path):
    """The sentence with which a file is refused, or what it holds; any other exception is an error."""
    try:
        return None, load(path, verify=True)
    except InputError as error:
        return str(error), None


def refusal(path) -> str:
    """The one sentence with which a file is refused."""
    with pytest.raises(InputError) as caught:
        load(path)
    return str(caught.value)


def test_a_file_cut_at_any_byte_is_refused(path):
    size = path.stat().st_size
    ends = {*range(2_000), *range(0, size, 3), *range(size - 3_000, size)}
    for end in sorted(ends, reverse=True):
        os.truncate(path, end)
        assert SENTENCE.fullmatch(refusal(path))


def test_a_changed_byte_is_refused_or_does_not_matter(path, model):
    content = path.read_bytes()
    expected = learned(model)
    rng = np.random.default_rng(0)
    directory = content.rindex(b"PK\x01\x02")
    places = [*rng.integers(len(content), size=250), *range(directory, len(content)), *range(60)]
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << rng.integers(8)
        path.write_bytes(changed)
        sentence, found = refusal_or_model(path)
        assert SENTENCE.fullmatch(sentence) if found is None else learned(found) == expected


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x05\x06" + bytes(18), b"\x80\x04K\x01.", bytes(10_000)])
def test_other_files_are_refused(content, tmp_path):
    path = tmp_path / "model.tgp"
    path.write_bytes(content)
    assert SENTENCE.fullmatch(refusal(path))


def test_places_without_a_model_are_refused(tmp_path, path):
    assert refusal(tmp_path / "none.tgp") == f"There is no model file {tmp_path / 'none.tgp'}."
    assert refusal(tmp_path) == f"{tmp_path} is a folder; name the model file in it."


def test_files_without_permission_are_refused(path, monkeypatch):
    def closed(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", closed)
    assert refusal(path) == f"{path} cannot be read: Permission denied."


def test_other_major_versions_are_refused(path):
    rewrite(path, lambda known: known.update(version="3.0", kind="Oracle"))
    assert refusal(path) == (
        "model.tgp was written in format 3.0; this tuckergp reads formats 1.x to 2.x: update tuckergp."
    )
    rewrite(path, lambda known: known.update(version="0.3"))
    assert "reads formats 1.x to 2.x: fit and save it again." in refusal(path)
    for version in ("2", 2.0, "one", None, "2.0.0"):
        rewrite(path, lambda known, version=version: known.update(version=version))
        assert SENTENCE.fullmatch(refusal(path))


def test_newer_minor_versions_are_read_without_what_is_new(path, model, ratings):
    def newer(known):
        known["version"] = "2.9"
        known["more"] = {"type": "Unheard", "fields": {}}
        known["parameters"]["colour"] = "red"
        known["state"]["fit_"]["fields"]["mood"] = "good"
        known["state"]["layout_"]["fields"]["sides"]["tuple"][0]["fields"]["mode"]["fields"]["shine"] = 3

    rewrite(path, newer)
    assert np.array_equal(load(path).predict(ratings), model.predict(ratings))

    def unheard(known):
        newer(known)
        known["state"]["fit_"]["fields"]["mood"] = {"type": "Mood", "fields": {}}

    rewrite(path, unheard)
    assert refusal(path).endswith("and holds a Mood, which this tuckergp does not know: update tuckergp.")


def test_fields_that_a_file_lacks_have_their_defaults(path, model, ratings):
    def older(known):
        del known["parameters"]["negatives"]
        draws = known["state"]["fit_"]["fields"]["draws"]["fields"]
        for name in ("traces", "watched", "names"):
            del draws[name]
        del known["state"]["history_"]["fields"]["clicks"]

    rewrite(path, older)
    again = load(path)
    assert np.array_equal(again.predict(ratings), model.predict(ratings))
    assert (again.negatives, again.fit_.draws.traces, again.history_.clicks) == (16, (), False)


@pytest.mark.parametrize("name", ["os:system", "subprocess:Popen", "tuckergp.files:write_text", "Thing", "", 3, None])
def test_only_listed_classes_are_built(name, path):
    def other(known):
        known["state"]["fit_"]["type"] = name

    rewrite(path, other)
    assert SENTENCE.fullmatch(refusal(path))
    rewrite(path, lambda known: known.update(kind=name))
    assert SENTENCE.fullmatch(refusal(path))


def test_nothing_of_a_file_takes_the_place_of_code(path, ratings):
    def sly(known):
        known["state"] |= {"predict": 3, "__class__": 4, "_fit_": 5, "save": None}

    rewrite(path, sly)
    again = load(path)
    assert type(again) is TuckerRecommender
    assert len(again.predict(ratings)) == 4
    assert not {"predict", "__class__", "_fit_", "save"} & set(vars(again))


def test_names_of_members_lead_nowhere(path):
    def outside(known):
        known["state"]["tables_"]["tuple"][0]["table"]["file"] = "../../escaped"
        known["members"]["tables/../../escaped.parquet"] = {"size": 1, "crc32": zlib.crc32(b"x")}

    before = sorted(path.parent.parent.rglob("*"))
    rewrite(path, outside, **{"tables/../../escaped.parquet": b"x"})
    assert SENTENCE.fullmatch(refusal(path))
    assert sorted(path.parent.parent.rglob("*")) == before


def test_compressed_members_are_refused(path):
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(10**6))
    assert "bomb is compressed" in refusal(path)


def test_members_that_are_missing_or_of_another_model_are_named(path):
    rewrite(path, lambda known: known["members"].update({"tables/more.parquet": {"size": 1, "crc32": 1}}))
    assert "it lacks tables/more.parquet" in refusal(path)
    rewrite(path, lambda known: known["members"]["arrays.safetensors"].update(crc32=1))
    assert "arrays.safetensors is of another model" in refusal(path)


def put(place, value):
    def change(tensor):
        tensor = tensor.copy()
        tensor[place] = value
        return tensor

    return change


SIDE, MODEL = "layout_.sides.0.", "fit_.draws.model."
PSI, B, NOISE = (f"fit_.draws.modes.0.{name}" for name in ("rows.psi", "B", "row_noise"))
INCONSISTENT = {
    "sparse indices": (SIDE + "table.features.indices", put(0, 99)),
    "negative indices": (SIDE + "table.features.indices", put(0, -1)),
    "row ends": (SIDE + "table.features.indptr", put(1, 99)),
    "last row end": (SIDE + "table.features.indptr", put(-1, -1)),
    "rows backwards": (SIDE + "table.features.indptr", put(2, 0)),
    "places of rows": (SIDE + "table.residual.place", put(0, 3)),
    "places below none": (SIDE + "table.residual.place", put(0, -2)),
    "places of other numbers": (SIDE + "table.residual.place", lambda tensor: tensor.astype(float)),
    "numbers of rows": (SIDE + "table.residual.column", put(0, 1)),
    "averages": (SIDE + "average", lambda tensor: tensor[1:]),
    "ranks": (MODEL + "core.ranks", put(0, 3)),
    "all ranks": (MODEL + "core.ranks", put(slice(None), 3)),
    "prior scales": (MODEL + "sigma_u", lambda tensor: tensor[1:]),
    "core": ("fit_.draws.W", lambda tensor: np.zeros((3, 4))),
    "noise precision": ("fit_.draws.unknowns.alpha", lambda tensor: tensor[1:]),
    "noise precision that is none": ("fit_.draws.unknowns.alpha", put(0, np.nan)),
    "covariance": ("fit_.draws.modes.0.covariance", lambda tensor: tensor[:, 1:]),
    "rows of factors": (PSI, lambda tensor: tensor[1:]),
    "draws of factors": (PSI, lambda tensor: tensor[:, 1:]),
    "rank of factors": (PSI, lambda tensor: tensor[:, :, 1:]),
    "numbers of factors": (PSI, lambda tensor: tensor.astype(np.float64)),
    "rows of weights": (B, lambda tensor: tensor[1:]),
    "rank of weights": (B, lambda tensor: tensor[:, :, 1:]),
    "rows of noise": (NOISE, lambda tensor: tensor[:2]),
    "draws of noise": (NOISE, lambda tensor: tensor[:, 1:]),
    "number of ratings": ("history_.value", lambda tensor: tensor[1:]),
    "number of items": ("history_.item", lambda tensor: tensor[1:]),
    "items that are no numbers": ("history_.item", lambda tensor: tensor.astype(float)),
    "starts of ratings": ("history_.starts", put(1, 5)),
    "starts backwards": ("history_.starts", put(1, 4)),
    "last start of ratings": ("history_.starts", put(-1, 3)),
    "axes of starts": ("history_.starts", lambda tensor: tensor[:, None]),
}


@pytest.mark.parametrize(("name", "change"), INCONSISTENT.values(), ids=INCONSISTENT)
def test_parts_that_do_not_fit_together_are_refused(name, change, path):
    with zipfile.ZipFile(path) as archive:
        by_rows = f"rows/{name}.safetensors" in archive.namelist()
    if by_rows:
        rewrite(path, rows={name: change})
    else:
        rewrite(path, arrays=lambda tensors: tensors.update({name: change(tensors[name])}))
    assert SENTENCE.fullmatch(refusal(path))


def test_a_file_written_anew_without_a_change_is_read(path, model, ratings):
    rewrite(path, rows={PSI: lambda tensor: tensor}, arrays=lambda tensors: None)
    assert np.array_equal(load(path, verify=True).predict(ratings), model.predict(ratings))


def test_a_missing_tensor_is_named(path):
    rewrite(path, arrays=lambda tensors: tensors.pop("fit_.draws.W"))
    assert "fit_.draws.W" in refusal(path)


def test_numbers_that_are_not_finite_are_found_in_draws(path, ratings):
    rewrite(path, rows={PSI: put((0, 0, 0), np.inf)})
    again = load(path)
    with pytest.raises(InputError, match=r"rows 0 to 2 of fit_.draws.modes.0.rows.psi hold numbers that make no sense"):
        again.predict(ratings)
    assert SENTENCE.fullmatch(refusal_or_model(path)[0])


@pytest.mark.parametrize(("name", "value"), [("item", 2), ("item", -1), ("place", 4)])
def test_ratings_of_what_is_not_there_are_found_when_they_are_used(name, value, path, ratings):
    rewrite(path, rows={f"history_.{name}": put(1, value)})
    again = load(path)
    assert len(again.predict(ratings)) == 4  # which needs none of them
    with pytest.raises(InputError, match=rf"rows 0 to 3 of history_.{name} hold numbers that make no sense"):
        again.partial_fit({name: [] for name in ratings})
    assert SENTENCE.fullmatch(refusal_or_model(path)[0])


def test_bounds_are_those_of_the_model(path):
    def unbounded(known):
        known["state"]["history_"]["fields"]["item"]["rows"]["below"] = None

    rewrite(path, unbounded)
    assert "users or items that it does not have" in refusal(path)


# Files that claim to be larger than they are


def claim(where, value):
    def change(known):
        node = known["state"]
        for step in where[:-1]:
            node = node[step]
        node[where[-1]] = value

    return change


SIDES = ("layout_", "fields", "sides", "tuple", 0, "fields")
MODE = (*SIDES, "mode", "fields")
DRAWS = ("fit_", "fields", "draws", "fields")
CLAIMS = {
    "a count": claim((*SIDES, "base", "fields", "values"), {"count": 10**9}),
    "a stack": claim(("fit_", "fields", "history"), {"stack": [10**9, {"same": None}]}),
    "rows of draws": claim((*DRAWS, "modes", "tuple", 0, "fields", "B", "rows", "shape"), [10**9, 3, 2]),
    "ratings": claim(("history_", "fields", "item", "rows", "shape"), [10**9]),
    "rows of a table": claim(("tables_", "tuple", 0, "table", "n_rows"), 10**9),
    "rows without columns": claim((*MODE, "residual", "fields", "onehot_", "fields", "rows_"),
        {"table": {"name": "x", "n_rows": 10**9, "first_line": None, "file": None, "columns": []}}),
    "rows of a matrix": claim((*SIDES, "table", "fields", "features", "sparse", "shape"), [10**9, 3]),
    "columns of a matrix": claim((*SIDES, "table", "fields", "features", "sparse", "shape"), [5, 10**12]),
    "training rows": claim((*SIDES, "table", "fields", "residual", "fields", "n_train"), 10**9),
    "draws of a chain": claim((*DRAWS, "lengths"), {"tuple": [10**9]}),
    "features": claim((*MODE, "blocks", "tuple", 0, "fields", "map", "fields", "n_features_"), 10**9),
}  # fmt: skip


@pytest.mark.parametrize("change", CLAIMS.values(), ids=CLAIMS)
def test_sizes_are_compared_before_memory_is_taken(change, path):
    rewrite(path, change)
    refused_with_little_memory(path)


def refused_with_little_memory(path):
    tracemalloc.start()
    try:
        assert SENTENCE.fullmatch(refusal(path))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_table_that_claims_many_rows_is_not_read(path):
    import pyarrow as pa

    n = 20_000_000
    content, _ = write_columns({"user_id": np.zeros(n, dtype=np.int8), "town": np.zeros(n, dtype=np.int8)})
    before = pa.total_allocated_bytes()
    rewrite(path, claim(("tables_", "tuple", 0, "table", "n_rows"), n), **{"tables/tables_.0.parquet": content})
    refused_with_little_memory(path)
    assert pa.total_allocated_bytes() - before < 1_000_000


@pytest.mark.parametrize("value", [{"count": 10**9}, {"stack": [10**9, {"same": None}]}], ids=str)
def test_counts_of_format_1_are_not_believed(value, tmp_path):
    path = tmp_path / "model.tgp"
    path.write_bytes((Path(__file__).parent / "fixtures" / "model-1.0.tgp").read_bytes())
    rewrite(path, claim(("fit_", "fields", "draws", "fields", "observations"), value))
    refused_with_little_memory(path)


def test_levels_of_encoders_and_marks_of_residuals_out_of_range_are_refused(tmp_path):
    X = {"town": ["a", "b", "a"], "t": [1.0, 2.0, 3.0]}
    modes = [Mode("town", Linear()), Mode("t", Matern12(1.0)), Mode("town", Identity())]
    model = TuckerGPRegressor(modes, rank=1, draws=2, warmup=1, random_state=0).fit(X, [1.0, 2.0, 3.0])
    path = tmp_path / "model.tgp"
    changed = copy.deepcopy(model)
    changed.modes_[0].blocks[1].map.encoders_[0].levels["a"] = 50
    changed.save(path)
    assert "the levels of 'town' are not numbered in order" in refusal(path)
    model.save(path)
    rewrite(path, rows={"fit_.draws.modes.1.rows.states": lambda tensor: tensor[:-1]})
    assert "other rows, ranks or numbers than its modes" in refusal(path)
    model.save(path)
    knots = "modes_.1.residual.knots_"
    rewrite(path, arrays=lambda tensors: tensors.update({knots: tensors[knots][::-1]}))
    assert "its chains are not in order" in refusal(path)
    for mode, name, value, sentence in (
        (2, "column_", np.array([0, 0], dtype=np.int32), "its rows are not numbered"),
        (2, "column_", np.array([0, -1], dtype=np.int32), "its rows are not numbered"),
        (2, "column_", np.array([0.0, 1.0]), "column_ of a Rows is a ndarray that cannot be there"),
        (1, "order_", 4, "its chains are of another order"),
    ):
        changed = copy.deepcopy(model)
        setattr(changed.modes_[mode].residual, name, value)
        changed.save(path)
        assert sentence in refusal(path)
    changed = copy.deepcopy(model)
    del changed.modes_[2].residual.onehot_.kernel_
    changed.save(path)
    assert "its features were not learned" in refusal(path)
    changed = copy.deepcopy(model)
    changed.modes_ = (*model.modes_[:2], replace(model.modes_[2], residual_sd=1e-300))
    changed.save(path)
    assert "the scale of its residuals is none" in refusal(path)
    changed = copy.deepcopy(model)
    changed.modes_[0].blocks[1].map.kernel_ = Linear("t")
    changed.save(path)
    assert "its features are of other columns than their kernel" in refusal(path)
    changed = copy.deepcopy(model)
    changed.modes_[2].residual.onehot_.n_features_ = 10**12  # more than there is memory for
    changed.save(path)
    assert "its rows are not numbered" in refusal(path) or "do not fit to their kernel" in refusal(path)


def test_any_value_of_the_structure_may_be_wrong(path):
    """Every leaf of the structure in turn becomes something else: refused, or read without a crash."""
    with zipfile.ZipFile(path) as archive:
        known = json.loads(archive.read("model.json"))
    places = list(leaves(known["state"]))
    rng = np.random.default_rng(0)
    original = path.read_bytes()
    for chosen in rng.permutation(len(places))[:150]:
        where, last = places[chosen]

        def spoil(found, where=where, last=last):
            node = found["state"]
            for step in where:
                node = node[step]
            node[last] = rng.choice(np.array(["x", -1, None, 10**9, [], {}], dtype=object))

        path.write_bytes(original)
        rewrite(path, spoil)
        sentence, found = refusal_or_model(path)
        assert found is not None or SENTENCE.fullmatch(sentence)


def leaves(node, where=()):
    steps = node.items() if isinstance(node, dict) else enumerate(node)
    for step, value in steps:
        if isinstance(value, dict | list) and value:
            yield from leaves(value, (*where, step))
        else:
            yield where, step
