"""`tuckergp export`: the vectors of a model for other people's serving."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tuckergp.cli.options import Json, Model

__all__ = ["export"]


def export(
    model: Model,
    to: Annotated[Literal["parquet", "faiss", "hnswlib", "onnx"], typer.Option(help="Format.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.", show_default=False)],
    by: Annotated[
        Literal["value", "rating", "choice"] | None,
        typer.Option(help="What inner products sort by; else what recommend sorts by.", show_default=False),
    ] = None,
    width: Annotated[
        int | None, typer.Option(help="Width of the vectors; 128 unless it is given.", min=1, show_default=False)
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="All draws side by side: wide vectors, exact products.")
    ] = False,
    latent: Annotated[
        bool, typer.Option("--latent", help="Allow latent utilities where predictions are no inner products.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Export vectors of users and items whose inner products are predictions, for an index or a graph of your own."""
    from tuckergp.cli.models import load_recommender
    from tuckergp.cli.tables import to_json
    from tuckergp.errors import InputError
    from tuckergp.exports import export as write
    from tuckergp.exports.export import WIDTH

    if exact and width is not None:
        raise InputError("--exact vectors are as wide as all draws; leave out --width, or --exact.")
    wide = None if exact else width or WIDTH
    about = write(load_recommender(model), output, to, by=by, width=wide, latent=latent)
    if as_json:
        print(to_json(about))
        return
    for part, own in about["parts"].items():
        error = "exact" if own["exact"] else f"{own['error']['rms']:.2g} from it in the root mean square"
        print(f"{part}: {own['users']} users, {own['items']} items, width {own['width']}; "
              f"{own['offset']:.6g} + inner product is the {own['inner_product']}, {error}.")  # fmt: skip
    print(f"{output} has the files; about.json describes them.")
