"""Writes blocks and finished cells as Markdown for documentation and as one HTML file for a browser.

The HTML file, whose template is `report.html`, opens from disk and needs no network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from tuckergp.paper.experiment import Block, Cells, Experiment, Picture, Rows, Table, Text

__all__ = ["Section", "markdown", "page"]

Section = tuple[str, str, Sequence[tuple[Experiment, Cells]]]
"""A name for links, a title, and the experiments below it with their cells."""


def markdown(rows: Rows) -> str:
    """A table in Markdown.

    Examples
    --------
    >>> print(markdown([["model", "RMSE"], ["GP", "0.29"]]))
    | model | RMSE |
    |---|---|
    | GP | 0.29 |
    """
    head, *lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *lines])


def page(sections: Sequence[Section], facts: Mapping[str, str], folder: Path) -> str:
    """The whole HTML file.

    Parameters
    ----------
    sections : sequence of Section
    facts : mapping
        What the figures depend on, such as versions; shown at the end.
    folder : Path
        The folder with ``figures``; missing ones are left out.
    """
    links = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title, _ in sections)
    terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    body = "\n".join(_section(*section, folder / "figures") for section in sections)
    template = Template(resources.files("tuckergp.paper").joinpath("report.html").read_text())
    return template.substitute(links=links, facts=terms, body=body)


def _section(name: str, title: str, experiments: Sequence[tuple[Experiment, Cells]], figures: Path) -> str:
    parts = [f"<h2>{_words(title)}</h2>"]
    for experiment, cells in experiments:
        if len(experiments) > 1:
            parts.append(f"<h3>{_words(experiment.title)}</h3>")
        parts += [_html(block, cells, figures) for block in experiment.blocks]
    return f'<section id="{name}">\n' + "\n".join(filter(None, parts)) + "\n</section>"


def _html(block: Block, cells: Cells, figures: Path) -> str:
    """One block as HTML; empty if there is nothing to show."""
    if isinstance(block, Text):
        return f"<p>{_words(block.words)}</p>"
    if isinstance(block, Table):
        head, *rows = block.rows(cells)
        return _table(block.caption, head, rows) if rows else ""
    return _picture(block, figures / f"{block.name}.svg")


def _table(caption: str, head: list[str], rows: Rows) -> str:
    top = "".join(f'<th scope="col">{_words(cell)}</th>' for cell in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    table = f"<table><caption>{_words(caption)}</caption>\n<thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table>"
    return f'<div class="table" tabindex="0">{table}</div>'


def _cell(text: str) -> str:
    number = re.fullmatch(r"[-−+]?[\d.,]+( ± [\d.,]+)?( ?%)?", text)
    return f"<td{' class=number' * bool(number)}>{_words(text)}</td>"


def _picture(picture: Picture, svg: Path) -> str:
    if not svg.is_file():
        return ""
    label = escape(picture.alt, quote=True)
    inside = f'<div class="picture" tabindex="0" role="img" aria-label="{label}">{svg.read_text()}</div>'
    return f'<figure id="figure-{picture.name}">{inside}<figcaption>{_words(picture.caption)}</figcaption></figure>'


def _words(text: str) -> str:
    """Text as HTML: escaped, with code and bold text marked."""
    html = escape(text, quote=False)
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", html)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", html)
