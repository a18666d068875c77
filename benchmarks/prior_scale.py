"""Which prior scale of f the sampler should have with an identity core: held-out training ratings of MovieLens 100K.

From each of u1.base, ..., u5.base a tenth of the ratings is held out; the test parts are not used. A model learns
from the other nine tenths, or from a fifth of them, for every ``Gibbs(scale=)`` of a grid::

    TUCKERGP_DATA=... python benchmarks/prior_scale.py -o benchmarks/results/prior_scale.json

A run that was stopped goes on from the file.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from gibbs import facts
from reports import Resumed

SCALES = (0.02, 0.04, 0.08, 0.15, 0.25, 0.4)
"""0.65 and 1 lost in all cells of the first passes, which the file still has."""
HELD_OUT, SCARCE = 0.1, 0.2
LENGTHS = {"draws": 60, "warmup": 40}
# Splits and seeds: after two of them every cell has two seeds
PASSES = [(split, (split + turn) % 2) for turn in (1, 0) for split in range(1, 6)]


@dataclass(frozen=True)
class Setting:
    """A model and how many ratings it learns from."""

    rank: int
    implicit: bool
    share: float
    context: bool = False

    @property
    def title(self) -> str:
        """Its name in the results."""
        features = "who rated what" if self.implicit else "attributes alone"
        modes = ", day of the week as a third mode" if self.context else ""
        return f"rank {self.rank}, {features}, {'all' if self.share == 1 else 'a fifth of the'} ratings{modes}"


SETTINGS = (
    *(Setting(rank, implicit, share) for share, implicit, rank in product((1.0, SCARCE), (True, False), (16, 32))),
    *(Setting(16, False, share, context=True) for share in (1.0, SCARCE)),
)


def parts(ratings: Any, seed: int, share: float) -> tuple[Any, Any]:
    """Nine tenths of the training ratings, or a share of these, and the last tenth."""
    order = np.random.default_rng(seed).permutation(len(ratings))
    cut = round(HELD_OUT * len(order))
    return ratings.take(np.sort(order[cut:][: round(share * (len(order) - cut))])), ratings.take(np.sort(order[:cut]))


def score(movielens: Any, split: int, seed: int, setting: Setting, scale: float, lengths: dict[str, int]) -> Any:
    """Log density and error on the ratings held out."""
    from tuckergp import TuckerRecommender
    from tuckergp.inference import Gibbs

    train, held = parts(with_days(movielens.split(split)[0]), 1_000 * split + seed, setting.share)
    inference = Gibbs(scale=scale, noise="rows", **lengths)  # type: ignore[arg-type]
    context = ("day",) if setting.context else ()
    rec = TuckerRecommender(
        rank=setting.rank,
        inference=inference,
        implicit=setting.implicit,
        time=None,
        context=context,
        objective="rating",
        random_state=seed,
    )
    started = time.process_time()
    rec.fit(train, movielens.users, movielens.items, progress=False)
    y = held.numeric("rating")
    mean, interval = rec.predict(held, interval=0.9)
    return {
        "rmse": float(np.sqrt(np.mean((mean - y) ** 2))),
        "log_density": float(np.mean(rec.log_density(held))),
        "coverage": float(np.mean((interval[:, 0] <= y) & (y <= interval[:, 1]))),
        "cpu_seconds": time.process_time() - started,
    }


def with_days(ratings: Any) -> Any:
    """The ratings with the day of the week in a column of its own."""
    days = np.array(["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"])  # 1970-01-01 was a Thursday
    at = ratings.numeric("timestamp").astype(np.int64) // 86_400 % 7
    return replace(ratings, columns={**ratings.columns, "day": days[at].astype(object)})


def main() -> None:
    from tuckergp.data.datasets import load_movielens_100k

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few sweeps of small models, one split")
    parser.add_argument("--only", default="", help="settings whose title has this in it")
    parser.add_argument("--passes", type=int, default=len(PASSES), help="how many pairs of a split and a seed")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    movielens = load_movielens_100k()
    lengths = {"draws": 4, "warmup": 2} if options.quick else LENGTHS
    settings = (Setting(2, False, 1.0), Setting(2, False, SCARCE, context=True)) if options.quick else SETTINGS
    command = "python benchmarks/prior_scale.py"
    head = {"command": command, "machine": facts(), "lengths": lengths, "held_out": HELD_OUT}
    report = Resumed(head, "results", options.output)
    passes = PASSES[: 1 if options.quick else options.passes]
    wanted = [setting for setting in settings if options.only in setting.title]
    for (split, seed), setting, scale in product(passes, wanted, SCALES):
        name = f"u{split}, seed {seed}"
        run = partial(score, movielens, split, seed, setting, scale, lengths)
        if found := report.cell((setting.title, f"{scale:g}", name), run):
            print(setting.title, scale, name, found, flush=True)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains as short as these have not mixed
        main()
