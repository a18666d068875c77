"""Files that are cut, changed, of another version or made by somebody else are refused in one sentence."""

from __future__ import annotations

import copy
import json
import os
import re
import zipfile
import zlib

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender, load
from tuckergp.errors import InputError
from tuckergp.kernels import Linear, Matern12
from tuckergp.store.schema import fitted
from tuckergp.store.trees import digest

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
        return None, load(path)
    except InputError as error:
        return str(error), None


def refusal(path) -> str:
    """The one sentence with which a file is refused."""
    with pytest.raises(InputError) as caught:
        load(path)
    return str(caught.value)


def rewrite(path, manifest=None, arrays=None, **members):
    """Write the file anew, in order but with other content."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    known = json.loads(content["model.json"])
    if arrays is not None:
        tensors = load_tensors(content["arrays.safetensors"])
        arrays(tensors)
        content["arrays.safetensors"] = save_tensors(tensors)
    content |= members
    for name in content.keys() & known["members"].keys():
        known["members"][name] = {"size": len(content[name]), "crc32": zlib.crc32(content[name])}
    if manifest is not None:
        manifest(known)
    content["model.json"] = json.dumps(known).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in content.items():
            archive.writestr(name, value)


def test_a_file_cut_at_any_byte_is_refused(path):
    size = path.stat().st_size
    ends = {*range(2_000), *range(0, size, 3), *range(size - 3_000, size)}
    for end in sorted(ends, reverse=True):
        os.truncate(path, end)
        assert SENTENCE.fullmatch(refusal(path))


def test_a_changed_byte_is_refused_or_does_not_matter(path, model):
    content = path.read_bytes()
    expected = digest(fitted(model))
    rng = np.random.default_rng(0)
    directory = content.rindex(b"PK\x01\x02")
    places = [*rng.integers(len(content), size=250), *range(directory, len(content)), *range(60)]
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << rng.integers(8)
        path.write_bytes(changed)
        sentence, found = refusal_or_model(path)
        assert SENTENCE.fullmatch(sentence) if found is None else digest(fitted(found)) == expected


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
    rewrite(path, lambda known: known.update(version="2.0", kind="Oracle"))
    assert refusal(path) == "model.tgp was written in format 2.0; this tuckergp reads format 1.x: update tuckergp."
    rewrite(path, lambda known: known.update(version="0.3"))
    assert "reads format 1.x: fit and save it again." in refusal(path)
    for version in ("1", 1.0, "one", None, "1.0.0"):
        rewrite(path, lambda known, version=version: known.update(version=version))
        assert SENTENCE.fullmatch(refusal(path))


def test_newer_minor_versions_are_read_without_what_is_new(path, model, ratings):
    def newer(known):
        known["version"] = "1.9"
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
        for name in ("traces", "watched", "first"):
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


def put(name, place, value):
    def change(tensors):
        tensors[name][place] = value

    return change


U = "fit_.draws.chains.0.parameters.U.0"
INCONSISTENT = {
    "sparse indices": put("layout_.sides.0.table.residual.indices", 0, 99),
    "negative indices": put("layout_.sides.0.table.residual.indices", 0, -1),
    "row ends": put("layout_.sides.0.table.features.indptr", 1, 99),
    "last row end": put("layout_.sides.0.table.features.indptr", -1, -1),
    "rows backwards": put("layout_.sides.0.table.features.indptr", 2, 0),
    "rows of U": lambda tensors: tensors.update({U: tensors[U][:, 1:]}),
    "rank of U": lambda tensors: tensors.update({U: tensors[U][:, :, 1:]}),
    "ranks": put("fit_.draws.model.core.ranks", 0, 3),
    "all ranks": put("fit_.draws.model.core.ranks", slice(None), 3),
    "number of draws": lambda tensors: tensors.update({U: tensors[U][1:]}),
    "dtype of U": lambda tensors: tensors.update({U: tensors[U].astype(np.int64)}),
    "a missing tensor": lambda tensors: tensors.pop(U),
}


@pytest.mark.parametrize("change", INCONSISTENT.values(), ids=INCONSISTENT)
def test_parts_that_do_not_fit_together_are_refused(change, path):
    rewrite(path, arrays=change)
    assert SENTENCE.fullmatch(refusal(path))


def test_ratings_of_nobody_are_refused(model, tmp_path, ratings):
    changed = copy.deepcopy(model)
    changed.history_.codes[0][0] = 7
    changed.save(tmp_path / "model.tgp")
    assert "users or items that it does not have" in refusal(tmp_path / "model.tgp")


def test_levels_of_encoders_out_of_range_are_refused(tmp_path):
    X = {"town": ["a", "b", "a"], "t": [1.0, 2.0, 3.0]}
    modes = [Mode("town", Linear()), Mode("t", Matern12(1.0))]
    model = TuckerGPRegressor(modes, rank=1, draws=2, warmup=1, random_state=0).fit(X, [1.0, 2.0, 3.0])
    path = tmp_path / "model.tgp"
    changed = copy.deepcopy(model)
    changed.modes_[0].blocks[1].map.encoders_[0].levels["a"] = 50
    changed.save(path)
    assert "the levels of 'town' are not numbered in order" in refusal(path)
    model.save(path)
    states = "fit_.draws.chains.0.parameters.paths.1.states"
    rewrite(path, arrays=lambda tensors: tensors.update({states: tensors[states][:, :-1]}))
    assert "other chains than its modes" in refusal(path)


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
            node[last] = rng.choice(np.array(["x", -1, None, 10**6], dtype=object))

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
