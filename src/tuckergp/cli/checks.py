"""The checks of `tuckergp doctor`: versions, machine, folders, and a small model from fit to prediction."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Any, cast

__all__ = ["CHECKS", "Check", "checked"]

DEVELOPERS = ("all", "docs", "test")


@dataclass(frozen=True)
class Check:
    """The result of one check: its group and name, the finding, whether it is ``ok``, and the remedy if not."""

    group: str
    name: str
    found: str
    ok: bool = True
    remedy: str = ""


def checked(run_check: Callable[[], Iterator[Check]]) -> list[Check]:
    """The results of a function of checks; one result that says so if the function itself fails."""
    try:
        return list(run_check())
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        remedy = "Install again: pip install --force-reinstall tuckergp"
        return [Check(run_check.__name__, "failed", what, ok=False, remedy=remedy)]


def versions() -> Iterator[Check]:
    """Versions of Python, this package and its requirements."""
    group = "versions"
    yield Check(group, "Python", f"{platform.python_version()} ({sys.executable})")
    yield Check(group, "platform", platform.platform())
    yield Check(group, "tuckergp", f"{version('tuckergp')} ({Path(__file__).parents[1]})")
    for text in requires("tuckergp") or []:
        if "extra ==" not in text:
            yield _package(group, text)


def extras() -> Iterator[Check]:
    """Optional packages, which some features need."""
    for extra in metadata("tuckergp").get_all("Provides-Extra") or []:
        if extra in DEVELOPERS:
            continue
        needed = [text for text in requires("tuckergp") or [] if re.search(rf"extra == ['\"]{extra}['\"]", text)]
        missing = [_name(text) for text in needed if not _package("extras", text).ok]
        hint = f"not installed: pip install 'tuckergp[{extra}]'"
        yield Check("extras", extra, hint if missing else "installed")


def _name(requirement: str) -> str:
    return re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0]


def _package(group: str, requirement: str) -> Check:
    """Check that a package is installed and new enough."""
    name = _name(requirement)
    least = re.search(r">=\s*([\d.]+)", requirement)
    remedy = f"pip install '{requirement.partition(';')[0].strip()}'"
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Check(group, name, "not installed", ok=False, remedy=remedy)
    if least is not None and _parts(installed) < _parts(least[1]):
        return Check(group, name, f"{installed}, older than {least[1]}", ok=False, remedy=remedy)
    return Check(group, name, installed)


def _parts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def machine() -> Iterator[Check]:
    """Cores, threads and memory."""
    import numba
    from threadpoolctl import threadpool_info

    group = "machine"
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Check(group, "cores", f"{usable} usable of {os.cpu_count()}")
    yield Check(group, "threads", f"{numba.get_num_threads()} (NUMBA_NUM_THREADS changes it)")
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            name = f"{pool['internal_api']} {pool.get('version') or ''}".strip()
            yield Check(group, "BLAS", f"{name}, {pool['num_threads']} threads")
    yield Check(group, "memory", _memory())


def _memory() -> str:
    sizes = {}
    for label, name in (("in all", "SC_PHYS_PAGES"), ("free", "SC_AVPHYS_PAGES")):
        if name in getattr(os, "sysconf_names", {}):
            sizes[label] = os.sysconf(name) * os.sysconf("SC_PAGE_SIZE") / 2**30
    return ", ".join(f"{size:.1f} GiB {label}" for label, size in sizes.items()) or "unknown"


def folders() -> Iterator[Check]:
    """Folders of compiled code and data sets."""
    from tuckergp.compute.blocks import sort
    from tuckergp.data.datasets.files import cache_directory

    group = "folders"
    compiled = Path(cast(Any, sort).stats.cache_path or __file__)
    remedy = "Set NUMBA_CACHE_DIR to a folder that can be written to; else every run compiles again."
    yield Check(group, "compiled code", str(compiled), _can_write(compiled), remedy)
    yield Check(group, "TUCKERGP_DATA", os.environ.get("TUCKERGP_DATA") or "not set")
    cache = cache_directory()
    yield Check(
        group, "data cache", str(cache), _can_write(cache), "Set TUCKERGP_CACHE to a folder that can be written to."
    )
    yield from _data_sets()


def _can_write(folder: Path) -> bool:
    """Whether a folder can be written to, or its nearest existing parent if it does not exist."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    return nearest.is_dir() and os.access(nearest, os.W_OK)


def _data_sets() -> Iterator[Check]:
    from tuckergp.data.datasets import california, lastfm, movielens, wind
    from tuckergp.data.datasets.files import find_folder
    from tuckergp.errors import InputError

    for module in (movielens, lastfm, california, wind):
        collection = module.COLLECTION
        try:
            where = str(find_folder(collection, None, download=False))
        except InputError:
            where = "not here; its loader downloads it"
        yield Check("folders", collection.title, where)


def self_test() -> Iterator[Check]:
    """Fit, save and load a small model, and compare its predictions."""
    import numpy as np

    from tuckergp import TuckerRecommender, load
    from tuckergp.cli.notes import collected
    from tuckergp.data.datasets import make_ratings

    group = "self test"
    data = make_ratings(n_users=40, n_items=30, n_ratings=600, random_state=0)
    began = time.perf_counter()
    with collected():
        model = TuckerRecommender(rank=4, draws=20, warmup=10, random_state=0)
        model.fit(data.train, data.users, data.items, progress=False)
    predicted = model.predict(data.test)
    right = bool(np.isfinite(predicted).all())
    seconds = f"{time.perf_counter() - began:.1f} seconds; the first run compiles"
    yield Check(group, "fit and predict", seconds, right, "Predictions are not finite; install again.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tgp"
        model.save(path)
        same = bool(np.array_equal(load(path).predict(data.test), predicted))
    yield Check(group, "save and load", "the same predictions" if same else "other predictions", same, "Install again.")


CHECKS = (versions, extras, machine, folders, self_test)
