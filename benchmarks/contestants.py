"""The contestants of the benchmark of Gibbs sweeps, each run in a process of its own, and the data they share."""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
import zlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20260101
THREADS = 2
SMALL_SWEEPS = 20  # of MovieLens in one round
MANY = 2**22  # ratings that are kept by user

Timing = dict[str, float]  # {"cpu": ..., "wall": ...}, seconds a sweep


def clock() -> np.ndarray:
    return np.array([time.process_time(), time.perf_counter()])


def timing(spent: np.ndarray) -> Timing:
    return {"cpu": float(spent[0]), "wall": float(spent[1])}


# Data: a folder of arrays, so that every process reads the same


def write_synthetic(folder: Path, n_users: int, n_items: int, n: int) -> None:
    """Distinct pairs in no order: activities of users lognormal, popularities of items a power law."""
    rng = np.random.default_rng(SEED)
    users = np.cumsum(rng.lognormal(0.0, 1.0, n_users) + 0.15)
    items = np.cumsum((np.arange(n_items) + 20.0) ** -1.1)
    pairs = np.zeros(0, dtype=np.int64)
    while len(pairs) < n:
        more = int(1.2 * (n - len(pairs))) + 1000
        user = np.searchsorted(users, rng.random(more) * users[-1])
        item = np.searchsorted(items, rng.random(more) * items[-1])
        pairs = np.unique(np.concatenate([pairs, user * n_items + item]))
    pairs = rng.permutation(pairs)[:n]
    y = rng.standard_normal(n) * 0.8 + 3.5
    U, V = rng.standard_normal((n_users, 8)), rng.standard_normal((n_items, 8))
    for first in range(0, n, 1 << 20):
        part = pairs[first : first + (1 << 20)]
        y[first : first + len(part)] += 0.25 * np.einsum("ij,ij->i", U[part // n_items], V[part % n_items])
    store(folder, pairs // n_items, pairs % n_items, y, (n_users, n_items))


def write_stars(given: Path, folder: Path) -> Path:
    """Another set with its ratings as people give them, from half a star to five."""
    user, item, y, sizes = arrays(given)
    store(folder, user, item, np.clip(np.round(2 * y) / 2, 0.5, 5.0), sizes)
    return folder


def write_attributed(given: Path, folder: Path) -> Path:
    """Another set with attributes as 0 and 1: three of users, with 7, 2 and 21 levels, and 18 flags of items."""
    rng = np.random.default_rng(SEED)
    user, item, y, sizes = arrays(given)
    store(folder, user, item, y, sizes)
    of_users = [rng.integers(levels, size=sizes[0])[:, None] == np.arange(levels) for levels in (7, 2, 21)]
    np.save(folder / "user_attributes.npy", np.hstack(of_users).astype(float))
    np.save(folder / "item_attributes.npy", (rng.random((sizes[1], 18)) < 0.1).astype(float))
    return folder


def write_movielens(folder: Path, n: int) -> None:
    """MovieLens 100K; attributes of users (age, sex, occupation) and of items (genres) as 0 and 1."""
    from tuckergp.data.datasets import load_movielens_100k
    from tuckergp.paper.movielens_data import entities_of, ratings_of

    data = load_movielens_100k(download=False)
    entities = entities_of(data)
    ratings = ratings_of(entities, data.ratings)
    store(folder, *ratings.index[:n].T, ratings.rating[:n], (len(entities.users), len(entities.items)))
    columns = [entities.users[name] for name in ("age", "sex", "occupation")]
    attributes = [(column[:, None] == np.unique(column)).astype(float) for column in columns]
    genres = sorted({genre for film in entities.items["genres"] for genre in film})
    films = np.array([[genre in film for genre in genres] for film in entities.items["genres"]], dtype=float)
    np.save(folder / "user_attributes.npy", np.hstack(attributes))
    np.save(folder / "item_attributes.npy", films)
    np.save(folder / "user_groups.npy", np.array([block.shape[1] for block in attributes]))


def write_words(folder: Path, n: int) -> None:
    """The same with the words of titles among the attributes of items, as 256 hashed columns."""
    from tuckergp.data.datasets import load_movielens_100k

    write_movielens(folder, n)
    titles = load_movielens_100k(download=False).items["title"]
    words = np.zeros((len(titles), 256))
    for row, title in enumerate(titles):
        words[row, [zlib.crc32(word.encode()) % 256 for word in title.lower().split()]] = 1.0
    np.save(folder / "item_attributes.npy", np.hstack([np.load(folder / "item_attributes.npy"), words]))


def store(folder: Path, user: Any, item: Any, y: Any, sizes: Any) -> None:
    folder.mkdir()
    for name, values in {"user": np.int32(user), "item": np.int32(item), "y": y, "sizes": np.array(sizes)}.items():
        np.save(folder / f"{name}.npy", values)


def arrays(folder: Path) -> list[np.ndarray]:
    return [np.load(folder / f"{name}.npy") for name in ("user", "item", "y", "sizes")]


class Data:
    """What `store` wrote."""

    def __init__(self, folder: Path) -> None:
        self.user, self.item, self.y, self.sizes = arrays(folder)
        self.folder = folder

    @property
    def attributes(self) -> list[np.ndarray] | None:
        """Of users and of items."""
        files = [self.folder / f"{name}_attributes.npy" for name in ("user", "item")]
        return [np.load(file) for file in files] if files[0].is_file() else None


def beside(columns: Any, attributes: np.ndarray) -> Any:
    """Features of a mode, which may be sparse, and its attributes."""
    from scipy import sparse

    if sparse.issparse(columns):
        return sparse.csr_array(sparse.hstack([columns, attributes], format="csr"))
    return np.hstack([columns, attributes])


def together(data: Data) -> Data:
    """Very many ratings with those of each user together, as the recommender keeps them."""
    if len(data.y) > MANY:
        order = np.argsort(data.user, kind="stable")
        data.user, data.item, data.y = data.user[order], data.item[order], data.y[order]
    return data


# Contestants: made in a process of their own; each call times one round


class Ours:
    """Gibbs sampling with shared noise and the identity core, a row effect in both modes."""

    package, precision, noise = "tuckergp", "float64", "shared"

    def __init__(self, data: Data, rank: int) -> None:
        from tuckergp.inference.base import Problem
        from tuckergp.model.design import Design
        from tuckergp.model.mode_table import ModeTable
        from tuckergp.model.tucker import make_core
        from tuckergp.random import stream
        from tuckergp.residuals import Rows
        from tuckergp.running.threads import few_threads

        data = together(data)
        (index, sizes), y, attributes = self.index(data), self.targets(data.y), data.attributes
        weight = self.weights(y)
        modes = []
        for d, rows in enumerate(sizes):
            columns, blocks = self.features(index, d, sizes)
            if attributes:
                blocks = (*blocks, slice(columns.shape[1], columns.shape[1] + attributes[d].shape[1]))
                columns = beside(columns, attributes[d])
            modes.append(ModeTable(columns, Rows.of(rows), rows, blocks))
        self.few_threads, self.stream = few_threads, stream
        self.algorithm, model = self.learning(make_core("identity", (rank,) * len(sizes)))
        self.steps = SMALL_SWEEPS if len(y) < 1_000_000 else 1
        narrow = tuple(ModeTable(np.ones((rows, 1)), Rows.of(rows), rows, (slice(0, 1),)) for rows in sizes)
        some = None if weight is None else weight[:100].copy()
        small = Problem(model, Design(narrow, index[:100].copy()), y[:100].copy(), some)
        self.algorithm.step(small, self.algorithm.init(small, stream(SEED, 0)), stream(SEED, 1))  # compiles
        del data
        self.problem = Problem(model, Design(tuple(modes), index), y, weight)
        self.bound = 2 * (16 * len(y) + sum(8 * rank * mode.n_rows for mode in modes))
        self.before = start_peak()
        self.state = self.algorithm.init(self.problem, stream(SEED, 0))
        self.step = 0

    def index(self, data: Data) -> tuple[np.ndarray, list[int]]:
        """Rows of each observation, (N, D), and how many rows the modes have."""
        return np.stack([data.user, data.item], axis=1), [int(size) for size in data.sizes]

    def features(self, index: np.ndarray, d: int, sizes: list[int]) -> tuple[Any, tuple[slice, ...]]:
        """Features of a mode beside attributes, and their blocks: a constant."""
        return np.ones((sizes[d], 1)), (slice(0, 1),)

    def weights(self, y: np.ndarray) -> np.ndarray | None:
        """Of the observations; None for ones."""
        return None

    def targets(self, y: np.ndarray) -> np.ndarray:
        """What is learned, standardised."""
        return np.asarray((y - y.mean()) / y.std())

    def learning(self, core: Any) -> tuple[Any, Any]:
        """The algorithm, and its model with this core."""
        from tuckergp.inference.gibbs import Gibbs

        # earlier versions lack the setting
        algorithm = Gibbs(noise=self.noise, **({"precision": self.precision} if self.precision != "float64" else {}))
        return algorithm, algorithm.model(core, self.likelihood())

    def likelihood(self) -> Any:
        """Of the targets."""
        from tuckergp.likelihoods import Gaussian

        return Gaussian(0.5)

    def __call__(self) -> Timing:
        """Some sweeps."""
        start = clock()
        with self.few_threads(self.problem):
            for _ in range(self.steps):
                self.step += 1
                self.state, _ = self.algorithm.step(self.problem, self.state, self.stream(SEED, self.step))
        return timing((clock() - start) / self.steps)

    def facts(self) -> dict[str, float | None]:
        """Growth of memory since the data were there, sorting them included, and twice data and factors."""
        peak = memory("VmHWM")
        return {"growth_bytes": None if peak is None else peak - (self.before or 0), "bound_bytes": self.bound}

    def hello(self) -> dict[str, float]:
        """CPU seconds of what is made once for all sweeps."""
        start = clock()
        with self.few_threads(self.problem):
            _ = self.problem.regressions
        return {"once_cpu_seconds": timing(clock() - start)["cpu"]}


class OursSingle(Ours):
    """The same with products of factors in float32."""

    precision = "float32"


class OursClicks(Ours):
    """Gibbs sampling of clicks: every pair is a choice, and all others are zeros."""

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Choices without counts."""
        return np.ones(len(y))

    def learning(self, core: Any) -> tuple[Any, Any]:
        """The algorithm, and its model with usual weights of zeros."""
        from tuckergp.likelihoods import Clicks

        algorithm = self.algorithm_of(core)
        return algorithm, algorithm.model(core, Clicks(counting="none").settled())

    def algorithm_of(self, core: Any) -> Any:
        """What learns."""
        from tuckergp.inference.gibbs import Gibbs

        return Gibbs(precision=self.precision)


class OursClicksALS(OursClicks):
    """ALS of clicks."""

    def algorithm_of(self, core: Any) -> Any:
        """What learns."""
        from tuckergp.inference.als import ALS

        return ALS(sigma_u=2 * float(core.default_sigma_u()[0]))


class OursStatistics:
    """The statistics of items' rows alone, and the machine's matrix products, on the same threads."""

    package = "tuckergp"

    def __init__(self, data: Data, rank: int) -> None:
        from tuckergp.model.design import Design
        from tuckergp.model.mode_table import ModeTable
        from tuckergp.model.tucker import make_core
        from tuckergp.statistics.evidence import Evidence, Precision, sort_by_row

        rng = np.random.default_rng(SEED)
        index = np.stack([data.user, data.item], axis=1)
        design = Design(tuple(ModeTable(np.ones((rows, 1))) for rows in map(int, data.sizes)), index)
        psi = [rng.standard_normal((rows, rank)) for rows in map(int, data.sizes)]
        core = make_core("identity", (rank, rank))
        self.evidence = Evidence(sort_by_row(design, 1), data.y, Precision(), core, 1, psi, np.ones(1))
        self.flops = len(data.y) * rank * (rank + 1)  # of the lower triangle
        self.rates: dict[str, list[float]] = {"statistics": [], "float32": [], "float64": []}

    def __call__(self) -> Timing:
        """Each once."""
        start = clock()
        self.evidence.statistics()
        spent = clock() - start
        self.rates["statistics"].append(self.flops / spent[1] / 1e9)
        for kind in ("float32", "float64"):
            X = np.ones((2000, 2000), dtype=kind)
            X @ X
            began = time.perf_counter()
            X @ X
            self.rates[kind].append(2 * 2000**3 / (time.perf_counter() - began) / 1e9)
        return timing(spent)

    def facts(self) -> dict[str, float]:
        """Gigaflops by wall time: the median of the statistics, the best of the matrix products."""
        return {
            "statistics_gigaflops": statistics.median(self.rates["statistics"]),
            "sgemm_gigaflops": max(self.rates["float32"]),
            "dgemm_gigaflops": max(self.rates["float64"]),
        }


class MyFM:
    """Gibbs sampling of a factorisation machine on one-hot users and items, in relation blocks with attributes."""

    package = "myfm"

    def __init__(self, data: Data, rank: int) -> None:
        from myfm import MyFMRegressor, RelationBlock  # type: ignore[import-not-found]
        from scipy import sparse

        n, attributes = len(data.y), data.attributes
        groups = list(map(int, data.sizes))
        if attributes:
            tables = [
                sparse.hstack([sparse.identity(rows), sparse.csr_matrix(side)], format="csr")
                for rows, side in zip(groups, attributes, strict=True)
            ]
            user_groups = map(int, np.load(data.folder / "user_groups.npy"))
            groups = [groups[0], *user_groups, groups[1], attributes[1].shape[1]]
            X: Any = sparse.csr_matrix((n, 0))
            rows = [np.int64(data.user), np.int64(data.item)]
            blocks = [RelationBlock(where, table) for where, table in zip(rows, tables, strict=True)]
        else:
            columns = np.stack([data.user, data.item + data.sizes[0]], axis=1).ravel()
            X = sparse.csr_matrix((np.ones(2 * n), columns, np.arange(0, 2 * n + 1, 2)), shape=(n, sum(groups)))
            blocks = []
        self.sweeps = SMALL_SWEEPS if n < 1_000_000 else 1
        self.fit: Callable[[int, Any], Any] = lambda sweeps, call: MyFMRegressor(rank, random_seed=1).fit(
            X, data.y, X_rel=blocks, n_iter=sweeps, n_kept_samples=1, group_shapes=groups, callback=call
        )

    def __call__(self) -> Timing:
        """A fit of some sweeps; the clock starts after the first, so that setting up does not count."""
        times: list[np.ndarray] = []

        def call(*_: Any) -> tuple[bool, None]:
            times.append(clock())
            return False, None

        self.fit(self.sweeps + 1, call)
        return timing((times[-1] - times[0]) / (len(times) - 1))


class Implicit:
    """ALS for implicit feedback with exact solves; the ratings are its confidences."""

    package = "implicit"

    def __init__(self, data: Data, rank: int) -> None:
        from implicit.cpu.als import AlternatingLeastSquares  # type: ignore[import-not-found]
        from scipy import sparse

        y = np.maximum(data.y, 0.5).astype(np.float32)
        self.ratings = sparse.csr_matrix((y, (data.user, data.item)), shape=tuple(data.sizes))
        self.model = AlternatingLeastSquares(rank, use_cg=False, iterations=1, num_threads=THREADS, random_state=1)

    def __call__(self) -> Timing:
        """One iteration, without the conversions before it (by its own clock, so CPU time has a share of them)."""
        inner: list[float] = []
        start = clock()
        self.model.fit(self.ratings, show_progress=False, callback=lambda _, seconds, *more: inner.append(seconds))
        spent = clock() - start
        return {"cpu": float(spent[0] * inner[0] / spent[1]), "wall": inner[0]}


class Cmfrec:
    """ALS for ratings with exact solves: a fit of three iterations less a fit of one, by two."""

    package = "cmfrec"

    def __init__(self, data: Data, rank: int) -> None:
        from cmfrec import CMF  # type: ignore[import-not-found]
        from scipy import sparse

        self.ratings = sparse.coo_matrix((data.y, (data.user, data.item)), shape=tuple(data.sizes))
        settings = {"use_cg": False, "user_bias": False, "item_bias": False, "precompute_for_predictions": False}
        self.make = lambda n: CMF(k=rank, niter=n, nthreads=THREADS, verbose=False, random_state=1, **settings)

    def __call__(self) -> Timing:
        """Two fits."""
        start = clock()
        self.make(1).fit(self.ratings)
        middle = clock()
        self.make(3).fit(self.ratings)
        return timing((clock() - middle - (middle - start)) / 2)


CONTESTANTS: dict[str, Any] = {
    "ours": Ours, "ours, float32": OursSingle, "statistics": OursStatistics,
    "clicks, Gibbs": OursClicks, "clicks, ALS": OursClicksALS,
    "myfm": MyFM, "implicit": Implicit, "cmfrec": Cmfrec,
}  # fmt: skip


def memory(field: str) -> float | None:
    """A figure of this process in bytes, where the system tells."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return 1024.0 * int(line.split()[1])


def start_peak() -> float | None:
    """Forget the peak of memory so far; memory now."""
    forget = Path("/proc/self/clear_refs")
    if forget.is_file():
        forget.write_text("5")
    return memory("VmRSS")


def work(contestants: dict[str, Any], name: str, folder: Path, rank: int) -> None:
    """What a contestant's process runs: a round for every line it reads; at the end, its facts."""
    contestant = contestants[name]
    try:
        ready = contestant(Data(folder), rank)
    except ImportError as error:
        print(json.dumps({"missing": f"{contestant.package}: {error}"}), flush=True)
        return
    facts = {"version": version(contestant.package), "python": platform.python_version()}
    print(json.dumps(facts | (ready.hello() if hasattr(ready, "hello") else {})), flush=True)
    for _ in sys.stdin:
        print(json.dumps(ready()), flush=True)
    print(json.dumps(ready.facts() if hasattr(ready, "facts") else {}), flush=True)
