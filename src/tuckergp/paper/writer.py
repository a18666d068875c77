"""The one writer: blocks and finished cells become Markdown for documentation and one HTML file for a browser.

The HTML file opens from disk and asks nothing of the network: light or dark as the reader has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from tuckergp.paper.experiment import Block, Cells, Experiment, Picture, Rows, Table, Text

__all__ = ["Section", "markdown", "page"]

Section = tuple[str, str, Sequence[tuple[Experiment, Cells]]]
"""A name for links, a title, and the experiments below it with their cells."""

TITLE = "Tucker Gaussian processes: the paper, and beyond it"

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --paper: #ffffff; --soft: #5d6670; --line: #d7dce1; --stripe: #f5f7f9;
  --link: #0b62a8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7ea; --paper: #14171a; --soft: #9aa5af; --line: #343b42;
  --stripe: #1b2025; --link: #7cc0ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 2rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
a { color: var(--link); }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; margin: 1rem 0; }
p { max-width: 46rem; }
code { font-size: .9em; overflow-wrap: anywhere; }
.soft, figcaption, caption { color: var(--soft); font-size: .9rem; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; }
caption { text-align: left; padding-bottom: .4rem; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
tbody tr:nth-child(odd) { background: var(--stripe); }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; text-align: right; }
figure { margin: 1.5rem 0; }
.picture { overflow-x: auto; }
.picture svg { width: 100%; height: auto; min-width: 34rem; max-width: 60rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 36rem) { dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; } }
"""


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
        Whose ``figures`` hold the pictures; those that are not there are left out.
    """
    links = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title, _ in sections)
    terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    body = "\n".join(_section(*section, folder / "figures") for section in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{TITLE}</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{TITLE}</h1>
<p class="soft">Tables and figures of “Collaborative Filtering with Side Information: a Gaussian Process Perspective”
(Kim, Lu, Flaxman, Teh), with ours beside them, and models that the paper does not have.</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main>
{body}
</main>
<footer>
<section id="about"><h2>What the figures depend on</h2><dl>{terms}</dl></section>
</footer>
</body>
</html>
"""


def _section(name: str, title: str, experiments: Sequence[tuple[Experiment, Cells]], figures: Path) -> str:
    parts = [f"<h2>{_words(title)}</h2>"]
    for experiment, cells in experiments:
        if len(experiments) > 1:
            parts.append(f"<h3>{_words(experiment.title)}</h3>")
        parts += [_html(block, cells, figures) for block in experiment.blocks]
    return f'<section id="{name}">\n' + "\n".join(filter(None, parts)) + "\n</section>"


def _html(block: Block, cells: Cells, figures: Path) -> str:
    """One block; nothing where there is nothing to show."""
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
    """Escaped, with code and bold words."""
    found = escape(text, quote=False)
    found = re.sub(r"`([^`]+)`", r"<code>\1</code>", found)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", found)
