"""Model files taken apart and put together again, with something else in them."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from tuckergp.store.schema import fitted
from tuckergp.store.stored_rows import pieces_of
from tuckergp.store.tensors import as_bytes, header_of
from tuckergp.store.trees import digest


def rewrite(path, manifest=None, arrays=None, rows=None, **members):
    """Write the file anew, in order but with other content; no member is aligned any more.

    ``manifest`` and ``arrays`` change what they are given, ``rows`` has a function for some of the tensors by rows.
    """
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    known = json.loads(content["model.json"])
    if arrays is not None:
        tensors = load_tensors(content["arrays.safetensors"])
        arrays(tensors)
        content["arrays.safetensors"] = save_tensors(tensors)
    for key, change in (rows or {}).items():
        name = f"rows/{key}.safetensors"
        tensor = np.ascontiguousarray(change(load_tensors(content[name])[key]))
        content[name] = header_of({key: tensor}) + bytes(as_bytes(tensor))
        pieces = pieces_of(tensor, known["members"][name]["piece"])
        known["members"][name]["pieces"] = [zlib.crc32(as_bytes(piece)) for piece in pieces]
        set_shape(known, key, list(tensor.shape))
    content |= members
    for name in content.keys() & known["members"].keys():
        known["members"][name] |= {"size": len(content[name]), "crc32": zlib.crc32(content[name])}
    if manifest is not None:
        manifest(known)
    content["model.json"] = json.dumps(known).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in content.items():
            archive.writestr(name, value)


def learned(model):
    """What a model has learned, as a number; ratings in the order that was learned from."""
    found = fitted(model)
    return digest(found | {"history_": found["history_"].flat} if "history_" in found else found)


def set_shape(node, key, shape):
    """Say in the structure of a file that a tensor has a shape."""
    if isinstance(node, dict) and node.get("key") == key:
        node["shape"] = shape
    elif isinstance(node, list | dict):
        for value in node.values() if isinstance(node, dict) else node:
            set_shape(value, key, shape)


def starts(path):
    """Where in the file the content of each member begins, from the members' own headers."""
    found, content = {}, path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name, extra = struct.unpack_from("<HH", content, member.header_offset + 26)
            found[member.filename] = member.header_offset + 30 + name + extra
    return found


def flip(path, place):
    """Change one bit of a file, where it lies."""
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 4]))
