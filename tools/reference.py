"""Write the API reference, one Markdown page for each public module, from the docstrings.

`python tools/reference.py docs/api` makes the pages that `make docs` builds; they are not kept in the repository. A
name in single backticks that nobody knows stops the build: it is a cross reference to something that is gone.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

MODULES = {
    "tuckergp": "The estimators",
    "tuckergp.kernels": "Kernels",
    "tuckergp.features": "Features",
    "tuckergp.likelihoods": "Likelihoods",
    "tuckergp.inference": "Inference",
    "tuckergp.cores": "Cores",
    "tuckergp.metrics": "Metrics",
    "tuckergp.evaluate": "Evaluation",
    "tuckergp.splits": "Splits",
    "tuckergp.datasets": "Data sets",
    "tuckergp.baselines": "Baselines",
    "tuckergp.tuning": "Tuning",
    "tuckergp.describe": "Descriptions of data",
    "tuckergp.gp": "Exact Gaussian processes",
    "tuckergp.errors": "Errors and warnings",
}

SECTION = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
CODE = re.compile(r"(``.+?``|`[^`\n]+`)", re.DOTALL)
NAME = re.compile(r"`(?P<name>[A-Za-z_][\w.]*)`")
FIELD = re.compile(r"^\s*(\w+(?:, \w+)*) : ", re.MULTILINE)
LINE = 100


class BrokenReference(Exception):
    """A docstring refers to a name that does not exist."""


class Entry(NamedTuple):
    """Something with a heading of its own: a public name of a module, or a member of such a class."""

    page: str
    path: str  # as users write it: tuckergp.kernels.SE.gradient
    value: Any
    owner: Any  # the class of a member

    @property
    def doc(self) -> str:
        """Its own docstring."""
        return inspect.cleandoc(self.value.__doc__ or "") if documented(self.value) else ""


def documented(value: Any) -> bool:
    """Whether a value has a docstring of its own, as opposed to one of its type."""
    return inspect.isclass(value) or inspect.isfunction(value) or isinstance(value, (property, cached_property))


def source(module: str) -> Any:
    """The module with the code of a public module, which may be an alias."""
    alias = importlib.import_module("tuckergp")._MODULES.get(module.removeprefix("tuckergp."), module)
    return importlib.import_module(alias)


def page_of(module: str) -> str:
    """The file name of the page of a module."""
    return f"{module.removeprefix('tuckergp.')}.md"


def entries() -> dict[str, Entry]:
    """All that has a heading in the reference, by its path, in the order of the pages."""
    public = {
        f"{module}.{name}": getattr(importlib.import_module(module), name)
        for module in MODULES
        for name in source(module).__all__
        if not name.startswith("__")
    }
    classes = {value for value in public.values() if inspect.isclass(value)}
    found = {}
    for path, value in public.items():
        page = page_of(path.rpartition(".")[0])
        found[path] = Entry(page, path, value, None)
        if inspect.isclass(value):
            found |= {f"{path}.{name}": Entry(page, f"{path}.{name}", member, value)
                      for name, member in members(value, classes)}  # fmt: skip
    return found


def members(kind: type, public: set[type]) -> Iterator[tuple[str, Any]]:
    """Methods and properties with a docstring, of a class and of its bases, except what a public base has, too."""
    elsewhere = {base for parent in kind.__mro__[1:] if parent in public for base in parent.__mro__}
    seen: set[str] = set()
    for base in kind.__mro__:
        if base in elsewhere or not base.__module__.startswith("tuckergp"):
            continue
        for name, member in vars(base).items():
            raw = getattr(
                member, "__func__", getattr(member, "fn", member)
            )  # class methods; scikit-learn's available_if
            if not name.startswith("_") and name not in seen and documented(raw) and raw.__doc__:
                yield name, raw
            seen.add(name)


class Writer:
    """Turns docstrings into Markdown, with links between them."""

    def __init__(self) -> None:
        self.entries = entries()

    def text(self, text: str, entry: Entry) -> str:
        """Prose as Markdown: symbols are no markup, and names in backticks are links."""
        pieces = CODE.split(text)
        for k, piece in enumerate(pieces):
            if k % 2 == 0:
                pieces[k] = re.sub(r"([*_<\[\]|\\])", r"\\\1", piece)
            elif name := NAME.fullmatch(piece):
                pieces[k] = self.link(name["name"], entry)
        return "".join(pieces)

    def link(self, name: str, entry: Entry) -> str:
        """A name in backticks as a link to its heading, or as code where it has none."""
        for target in self.candidates(name, entry):
            if target in self.entries:
                found = self.entries[target]
                return f"[`{name}`]({'' if found.page == entry.page else found.page}#{target})"
            if target in MODULES:
                return f"[`{name}`]({page_of(target)})"
        if not known(name, entry) and not any(path.endswith(f".{name}") for path in self.entries):
            raise BrokenReference(f"The docstring of {entry.path} refers to `{name}`, and there is no such name.")
        return f"`{name}`"

    def candidates(self, name: str, entry: Entry) -> Iterator[str]:
        """The paths that a name may stand for, the nearest first."""
        parts = entry.path.split(".")
        yield from (".".join([*parts[:k], name]) for k in range(len(parts), 0, -1))
        yield name
        yield from (path for path in self.entries if path.endswith(f".{name}") and name[0].isupper())

    def doc(self, entry: Entry) -> str:
        """A docstring: its prose, then each of its sections."""
        prose, *sections = SECTION.split(entry.doc)
        written = [self.prose(prose, entry)]
        for title, body in zip(sections[::2], sections[1::2], strict=True):
            fields = title in {"Parameters", "Attributes", "Class attributes", "Returns", "Raises"}
            written += [f"**{title}**", self.fields(body, entry) if fields else self.prose(body, entry)]
        return "\n\n".join(written)

    def prose(self, body: str, entry: Entry) -> str:
        """Paragraphs: examples are fenced, indented formulas stay as they are."""
        written = []
        for paragraph in re.split(r"\n\s*\n", body.strip()):
            if paragraph.startswith(">>>"):
                written.append(f"```pycon\n{paragraph}\n```")
            else:
                written.append(paragraph if paragraph.startswith("    ") else self.text(paragraph, entry))
        return "\n\n".join(written)

    def fields(self, body: str, entry: Entry) -> str:
        """Parameters and their like: one list entry for each, its name, its type and what it is."""
        written = []
        for field in re.split(r"\n(?=\S)", body.strip()):
            head, _, rest = field.partition("\n")
            name, colon, kind = head.partition(" : ")
            label = f"**`{name}`** ({self.text(kind, entry)})" if colon else f"**{self.text(name, entry)}**"
            about = self.text(" ".join(inspect.cleandoc(rest).split()), entry)
            written.append(f"- {label}" + (f": {about}" if about else ""))
        return "\n".join(written)

    def section(self, entry: Entry) -> str:
        """Heading, signature and docstring of one name."""
        name = ".".join(entry.path.rsplit(".", 2 if entry.owner else 1)[1:])
        heading = f"{'###' if entry.owner else '##'} {name} {{ #{entry.path} }}"
        if not documented(entry.value):
            return f"{heading}\n\nA {type(entry.value).__name__} of {', '.join(f'`{shown(v)}`' for v in entry.value)}."
        call = signature(entry, name)
        return "\n\n".join([heading, *([f"```python\n{call}\n```"] if call else []), self.doc(entry)])

    def page(self, module: str) -> str:
        """The page of one module."""
        about = Entry(page_of(module), module, source(module), None)
        intro = self.prose(inspect.cleandoc(about.value.__doc__), about)
        sections = [self.section(entry) for entry in self.entries.values() if entry.page == about.page]
        return "\n\n".join([f"# {MODULES[module]}: `{module}`", intro, *sections]) + "\n"

    def summary(self, entry: Entry) -> str:
        """The first paragraph of a docstring, for the index."""
        return self.text(entry.doc.partition("\n\n")[0].replace("\n", " "), entry._replace(page="index.md"))

    def index(self) -> str:
        """All public names, each with the first sentence of its docstring."""
        written = ["# API reference", "Everything public, from the docstrings of this version."]
        for module, title in MODULES.items():
            names = [entry for entry in self.entries.values() if entry.page == page_of(module) and entry.owner is None]
            rows = [
                f"| [`{entry.path.rpartition('.')[2]}`]({entry.page}#{entry.path}) | {self.summary(entry)} |"
                for entry in names
            ]
            written += [f"## [{title}]({page_of(module)})", "\n".join([f"| `{module}` | |", "|---|---|", *rows])]
        return "\n\n".join(written) + "\n"

    def pages(self) -> dict[str, str]:
        """The text of every page, by its file name."""
        return {"index.md": self.index()} | {page_of(module): self.page(module) for module in MODULES}


def shown(value: Any) -> str:
    """An element of a constant, by its name."""
    return str(getattr(value, "__name__", value))


def known(name: str, entry: Entry) -> bool:
    """Whether a name is a parameter, an attribute, something in the module of the entry, or can be imported."""
    owner = entry.owner or entry.value
    heads = [head for doc in (entry.doc, owner.__doc__ or "") for head in FIELD.findall(doc)]
    fields = {field for head in heads for field in head.split(", ")}
    if inspect.isfunction(entry.value):
        fields |= set(inspect.signature(entry.value).parameters)
    home = owner if inspect.ismodule(owner) else sys.modules[owner.__module__]
    return name in fields or hasattr(owner, name) or hasattr(home, name) or importable(name)


def importable(path: str) -> bool:
    """Whether a dotted path is a module, or an attribute of one."""
    parts = path.split(".")
    for k in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        try:
            for part in parts[k:]:
                value = getattr(value, part)
        except AttributeError:
            return False
        return True
    return False


def signature(entry: Entry, name: str) -> str:
    """How it is called, without annotations: the docstring has the types."""
    if isinstance(entry.value, (property, cached_property)):
        return ""
    try:
        given = inspect.signature(entry.value)
    except ValueError:
        return ""
    parameters = [p.replace(annotation=p.empty) for p in given.parameters.values() if p.name not in {"self", "cls"}]
    call = f"{name}{given.replace(parameters=parameters, return_annotation=inspect.Signature.empty)}"
    if len(call) <= LINE:
        return call
    star = next((k for k, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY), None)
    shown = [str(p) for p in parameters]
    if star is not None and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        shown.insert(star, "*")
    return f"{name}(\n" + "".join(f"    {line},\n" for line in shown) + ")"


def main(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in Writer().pages().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
