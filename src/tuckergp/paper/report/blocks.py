"""What a report is made of: sections of paragraphs, tables and pictures; and how they are written in HTML and Markdown.

Words may have `code` between backticks and **bold** ones; tables are those of the documentation, in Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

__all__ = ["Block", "Picture", "Section", "Table", "Text", "to_html", "to_markdown"]


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str


@dataclass(frozen=True)
class Table:
    """A table in Markdown, and what it shows."""

    caption: str
    markdown: str


@dataclass(frozen=True)
class Picture:
    """A drawing.

    Attributes
    ----------
    name : str
    caption : str
    alt : str
        What is to be seen, for those who cannot see it.
    svg : str
    """

    name: str
    caption: str
    alt: str
    svg: str


Block: TypeAlias = Text | Table | Picture


@dataclass(frozen=True)
class Section:
    """A part of the report: a name for links, a title, and what stands below it."""

    name: str
    title: str
    blocks: Sequence[Block]


def to_html(section: Section) -> str:
    """The section as an HTML element."""
    inside = "\n".join(map(_html_of, section.blocks))
    return f'<section id="{section.name}">\n<h2>{_words(section.title)}</h2>\n{inside}\n</section>'


def _html_of(block: Block) -> str:
    if isinstance(block, Text):
        return f"<p>{_words(block.words)}</p>"
    if isinstance(block, Table):
        return _table(block)
    label = escape(block.alt, quote=True)
    picture = f'<div class="picture" tabindex="0" role="img" aria-label="{label}">{block.svg}</div>'
    return f'<figure id="figure-{block.name}">{picture}<figcaption>{_words(block.caption)}</figcaption></figure>'


def _table(block: Table) -> str:
    head, _, *rows = [_cells(line) for line in block.markdown.strip().splitlines()]
    top = "".join(f'<th scope="col">{_words(cell)}</th>' for cell in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    table = f"<table><caption>{_words(block.caption)}</caption>\n<thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody>"
    return f'<div class="table" tabindex="0">{table}</table></div>'


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _cell(text: str) -> str:
    number = re.fullmatch(r"[-−+]?[\d.,]+( ± [\d.,]+)?( ?%)?", text)
    return f"<td{' class=number' * bool(number)}>{_words(text)}</td>"


def _words(text: str) -> str:
    """Escaped, with code and bold words."""
    found = escape(text, quote=False)
    found = re.sub(r"`([^`]+)`", r"<code>\1</code>", found)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", found)


def to_markdown(section: Section) -> str:
    """The section for the documentation; pictures are in the report alone and leave their captions out."""
    found = [f"## {section.title}"]
    for block in section.blocks:
        if isinstance(block, Text):
            found.append(block.words)
        elif isinstance(block, Table):
            found += [f"{block.caption}:", block.markdown.strip()]
    return "\n\n".join(found)
