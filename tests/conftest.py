"""Fixtures of all tests: the public data sets where they are on this machine, and a cache of the tests' own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Tests run side by side: one thread each, before numba and BLAS are loaded.
for _threads in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# Processes that tests start would else compile every module of the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

import pytest  # noqa: E402
from xdist.scheduler import LoadFileScheduling  # noqa: E402

from tests.compiled import compile_all  # noqa: E402
from tuckergp.data.datasets import MovieLens, load_movielens_100k  # noqa: E402

# Folders whose files share a fixture that takes long to make.
TOGETHER = ("tests/paper/report/", "tests/serve/page/", "tests/spark/")
# What takes long is begun first, so that no worker is alone with it in the end.
FIRST = (*TOGETHER, "tests/project/", "tests/running/", "tests/cli/", "tests/serve/", "tests/contracts/")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile before workers start; a run in one process compiles what it needs."""
    if getattr(session.config.option, "numprocesses", None):
        compile_all()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: [not item.nodeid.startswith(start) for start in FIRST])


class _ByFile(LoadFileScheduling):
    """One worker runs all tests of a file, so that its models are fitted once, and all files of a folder `TOGETHER`."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    return _ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's real cache, subprocesses included."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUCKERGP_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder that holds ml-100k, california and wind."""
    named = os.environ.get("TUCKERGP_DATA")
    beside = Path(__file__).parents[2] / "shared" / "data"
    if named:
        return Path(named).expanduser().resolve()
    if not beside.is_dir():
        pytest.skip("no real data here: set TUCKERGP_DATA to a folder with ml-100k/, california/ and wind/")
    return beside


@pytest.fixture(scope="session")
def movielens(data_dir: Path) -> MovieLens:
    if not (data_dir / "ml-100k").is_dir():
        pytest.skip(f"no MovieLens here: unpack ml-100k.zip in {data_dir}")
    return load_movielens_100k(data_dir)
