"""One HTML file that opens from disk and asks nothing of the network: light or dark as the reader has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from tuckergp.paper.report.blocks import Section, to_html

__all__ = ["page"]

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


def page(sections: Sequence[Section], about: Mapping[str, str]) -> str:
    """The whole file.

    Parameters
    ----------
    sections : sequence of Section
    about : mapping
        What the figures depend on, such as versions; shown at the end.
    """
    links = "".join(f'<li><a href="#{one.name}">{escape(one.title)}</a></li>' for one in sections)
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in about.items())
    body = "\n".join(map(to_html, sections))
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
<section id="about"><h2>What the figures depend on</h2><dl>{facts}</dl></section>
</footer>
</body>
</html>
"""
