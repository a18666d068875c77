"""What a fit brings to the driver at its end, piece by piece, factors of users and ratings, and whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.compute.packed import packed_size
from tuckergp.errors import InputError
from tuckergp.memory import physical_memory
from tuckergp.posterior.draws import Draws, map_draws
from tuckergp.spark.problem import Workers
from tuckergp.spark.reading import Sharded, SparkRatings
from tuckergp.spark.sessions import returned
from tuckergp.spark.shards import Request, factors
from tuckergp.spark.summed import Drawn
from tuckergp.statistics.evidence import Number

__all__ = ["check_sizes", "collected_draws", "collected_ratings", "requests_of", "without_requests"]

# Bytes of factors that a partition returns at a time.
PIECE = 2**26


def check_sizes(data: SparkRatings, sharded: Sharded, rank: int, draws: int, stored: bool) -> None:
    """Refuse, before the first sweep, what Spark would not return or the driver could not hold."""
    users, items, ratings = sharded.plan.n_users, len(data.items), len(data)
    partitions = sharded.all.getNumPartitions()
    table = items * packed_size(rank)
    sweep = sharded.returned_by(table)
    collected = {} if stored else {"a draw of the users": 8 * users * rank, "the ratings": 16 * ratings}
    parts = {"a sweep": sweep, **{what: size // partitions for what, size in collected.items()}}
    most, (what, size) = _most_returned(sharded.context), max(parts.items(), key=lambda part: part[1])
    if most and size > most:
        raise InputError(
            f"Spark would return {size / 1e9:.2g} GB at a time to the driver, for {what}, and "
            f"spark.driver.maxResultSize allows {most / 1e9:.2g} GB; raise that setting, or take more partitions."
        )
    rows = users + items if not stored else 3 * items
    need = 3 * 8 * table + 300 * len(data.users.ids) + 4 * draws * rows * rank + (0 if stored else 16 * ratings)
    room = physical_memory()
    if need > room:
        advice = "keep fewer draws (keep=)" if stored else "keep fewer draws (keep=), or leave users where they are"
        raise InputError(
            f"The driver would need {need / 1e9:.3g} GB of memory and has {room / 1e9:.3g}; {advice}"
            f"{'' if stored else ' with store=folder'}."
        )


def _most_returned(context: Any) -> int:
    """`spark.driver.maxResultSize` in bytes; 0 for no limit."""
    text = context.getConf().get("spark.driver.maxResultSize", "1g").strip().lower().removesuffix("b")
    units = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
    return int(float(text[:-1]) * units[text[-1]]) if text[-1:] in units else int(text)


def requests_of(workers: Workers, draws: Draws, number: type[Number]) -> list[Request]:
    """What the users of each draw were drawn from."""
    values = draws.modes[0].values
    drawn = [Drawn(*(values[name][s] for name in Drawn._fields)) for s in range(len(draws))]
    return [workers.request(each, draws.model.core, number) for each in drawn]


def without_requests(draws: Draws, psi: npt.NDArray[Any]) -> Draws:
    """The draws with factors psi (users, S, r) in place of what they were drawn from."""
    kept = {name: values for name, values in draws.modes[0].values.items() if name not in Drawn._fields}
    return map_draws(draws, lambda d, mode: mode if d else replace(mode, rows={"psi": psi}, values=kept))


def collected_draws(workers: Workers, draws: Draws, number: type[Number]) -> Draws:
    """The draws with the factors of all users, which are drawn once more where their ratings are."""
    users, r = workers.sharded.plan.n_users, int(draws.model.core.ranks[0])
    dtype = "f4" if draws.sampled else "f8"
    psi = np.empty((users, len(draws), r), dtype=dtype)
    step = max(1, PIECE * workers.sharded.all.getNumPartitions() // (psi.itemsize * users * r))
    requests = requests_of(workers, draws, number)
    for begin in range(0, len(requests), step):
        with workers.sharded.sending(requests[begin : begin + step]) as sent, returned():
            found = workers.sharded.all.mapPartitions(
                lambda shards, sent=sent: ((shard.first, rows) for shard, rows in factors(shards, sent.value, dtype)),
                True,
            )
            for first, rows in found.toLocalIterator():
                psi[first : first + len(rows), begin : begin + rows.shape[1]] = rows
    return without_requests(draws, psi)


def collected_ratings(sharded: Sharded, per_user: npt.NDArray[np.int64]) -> Sequence[npt.NDArray[Any]]:
    """Users, items and ratings of all shards, sorted by user and item, in arrays of their size.

    ``per_user`` (users,) are numbers of ratings.
    """
    starts = np.concatenate([[0], np.cumsum(per_user)])
    n, hot = int(starts[-1]), {int(user): int(starts[user]) for user in sharded.plan.hot}
    user, item, rating = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)
    parts = sharded.all.map(lambda shard: (shard.first, shard.piece, shard.user, shard.item, shard.rating))
    with returned():
        for first, piece, users, items, ratings in parts.toLocalIterator():
            if piece:
                place: Any = slice(hot[first], hot[first] + len(users))
                hot[first] = place.stop
            else:
                begin = np.searchsorted(users, users)  # sorted, so where each user begins
                place = starts[users] + np.arange(len(users)) - begin
            user[place], item[place], rating[place] = users, items, ratings
    for number in sharded.plan.hot.tolist():
        mine = slice(int(starts[number]), int(starts[number + 1]))
        order = np.lexsort((rating[mine], item[mine]))
        item[mine], rating[mine] = item[mine][order], rating[mine][order]
    return user, item, rating
