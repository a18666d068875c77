"""Export of a recommender to a folder of files that other programs read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tuckergp
from tuckergp.checks import check, one_of, whole
from tuckergp.errors import InputError
from tuckergp.exports.formats import Faiss, Format, Hnswlib, Onnx, Parquet
from tuckergp.exports.vectors import Vectors, models_by
from tuckergp.files import as_path, check_writable, write_bytes, write_text
from tuckergp.recommender import TuckerRecommender

__all__ = ["EXPORTS", "WIDTH", "export"]

EXPORTS: dict[str, Format] = {each.name: each for each in (Parquet(), Faiss(), Hnswlib(), Onnx())}
"""The formats, by name."""

WIDTH = 128
"""The width of vectors unless it is given."""


def export(
    model: TuckerRecommender,
    path: str | Path,
    to: str,
    *,
    by: str | None = None,
    width: int | None = WIDTH,
    latent: bool = False,
) -> dict[str, Any]:
    """Write the vectors of users and items to a folder, with an index or a graph where asked for.

    Parameters
    ----------
    model : TuckerRecommender
    path : path
        A folder, which is made; files of an earlier export in it are replaced.
    to : {"parquet", "faiss", "hnswlib", "onnx"}
    by : {"value", "rating", "choice"} or None
        What inner products are to sort by; None is what `TuckerRecommender.recommend` sorts by.
    width : int or None
        The width of vectors; None puts all draws side by side, and inner products are exact.
    latent : bool
        Whether an index may hold latent utilities where predictions are no inner products. Their order is nearly that
        of predictions.

    Returns
    -------
    dict
        What ``about.json`` says: for each part what inner products are, the offset, the width, and the error.
    """
    check("to", to, one_of(*EXPORTS))
    check("by", by, one_of("value", "rating", "choice", None))
    check("width", width, whole(1) | one_of(None))
    check("latent", latent, one_of(True, False))
    if not isinstance(model, TuckerRecommender):
        raise InputError(f"Only recommenders have vectors to export; this is a {type(model).__name__}.")
    kind, folder = EXPORTS[to], as_path(path, "path")
    models = models_by(model, by)
    _refuse_what_no_index_holds(kind, models, latent)
    parts = {part: Vectors.of(own, part, width) for part, own in models.items()}
    about = {
        "format": to,
        "tuckergp": tuckergp.__version__,
        "without": [circumstance.reader.name for circumstance in model.layout_.circumstances],
        "parts": {part: own.about() for part, own in parts.items()},
    }
    kind.check(parts)
    folder.mkdir(parents=True, exist_ok=True)
    check_writable(folder / "about.json")
    for name, content in kind.files(parts):
        write_bytes(folder / name, content)
    for other in EXPORTS.values():  # an index of other vectors
        if other.file is not None and other.file != kind.file:
            (folder / other.file).unlink(missing_ok=True)
    write_text(folder / "about.json", json.dumps(about, indent=2) + "\n")
    return about


def _refuse_what_no_index_holds(kind: Format, models: dict[str, TuckerRecommender], latent: bool) -> None:
    if not kind.index:
        return
    if len(models) > 1:
        raise InputError(
            "Lists of this model are by value, a product of two predictions and no inner product; export by='rating' "
            "(--by rating), or to='parquet', which has both parts. by='choice' also needs latent=True (--latent)."
        )
    (likelihood,) = (own.fit_.likelihood for own in models.values())
    if not likelihood.linear and not latent:
        raise InputError(
            f"Predictions of this model are no inner products, only its {likelihood.latent} is: latent=True "
            "(--latent) exports that, which sorts items nearly alike; to='parquet' has it with what is needed beside."
        )
