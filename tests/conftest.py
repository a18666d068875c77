"""Fixtures of all tests: the public data sets where they are on this machine, and a cache of the tests' own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Tests run side by side: one thread each, before numba and BLAS are loaded.
for _threads in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import pytest  # noqa: E402
from xdist.scheduler import LoadFileScheduling  # noqa: E402

from tuckergp.data.datasets import MovieLens, load_movielens_100k  # noqa: E402

# Folders whose files share a fixture that takes long to make.
TOGETHER = ("tests/paper/report/", "tests/serve/page/", "tests/spark/")
# Tests that compile next to nothing: one worker runs them while another compiles what both will need.
LIGHT = ("tests/data/", "tests/kernels/", "tests/features/", "tests/gp/", "tests/evaluation/metrics/")
# What takes long is begun first, so that no worker is alone with it in the end.
FIRST = (
    *("tests/paper/report/", LIGHT, "tests/serve/page/", "tests/spark/", "tests/project/", "tests/running/"),
    *("tests/cli/", "tests/serve/", "tests/contracts/"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: [not item.nodeid.startswith(start) for start in FIRST])


class _ByFile(LoadFileScheduling):
    """One worker runs all tests of a file, so that its models are fitted once, all files of a folder `TOGETHER`, and
    all that are `LIGHT`.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        if file.startswith(LIGHT) and "test_grids" not in file:  # which fits models
            return "light"
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
