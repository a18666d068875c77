"""Synthetic ratings: people and films with attributes, and low-rank preferences that the attributes partly explain.

Everything that produced the ratings is known, the smallest error that any model can reach included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.datasets.files import objects
from tuckergp.data.datasets.shown import DataSet
from tuckergp.data.tables import Table
from tuckergp.errors import InputError

__all__ = ["SyntheticRatings", "make_ratings"]

LEVELS = np.arange(1.0, 5.01, 0.5)  # half stars

# standard deviations on the scale of the ratings, so that errors come out as large as those of MovieLens
_MEAN, _USER_BIAS, _ITEM_BIAS, _TASTE = 3.6, 0.45, 0.52, 0.56

_GENRES = {
    "Action": 5, "Adventure": 4, "Animation": 2, "Comedy": 8, "Crime": 4, "Documentary": 2, "Drama": 10, "Fantasy": 2,
    "Horror": 3, "Musical": 2, "Mystery": 2, "Romance": 5, "Science fiction": 3, "Thriller": 5, "War": 2, "Western": 1,
}  # fmt: skip
_OCCUPATIONS = {
    "artist": 4, "carpenter": 4, "cook": 4, "doctor": 3, "driver": 5, "engineer": 8, "farmer": 3, "lawyer": 3,
    "librarian": 2, "nurse": 6, "programmer": 8, "salesperson": 6, "scientist": 4, "teacher": 9, "writer": 3,
}  # fmt: skip
_ADJECTIVES = (
    "Amber Ancient Bitter Blue Borrowed Broken Burning Careless Crooked Crystal Dancing Distant Electric Empty Endless "
    "Fallen Final First Forgotten Frozen Gentle Gilded Golden Hidden Hollow Iron Last Little Lonely Long Lost Midnight "
    "Northern Painted Paper Patient Perfect Quiet Reckless Red Restless Sacred Second Secret Seventh Silent Silver "
    "Sleeping Southern Stolen Strange Sudden Thirsty Tender Unseen Velvet Wandering White Wild Winter"
)
_NOUNS = (
    "Affair Alibi Anthem Avenue Bargain Bridge Canyon Castle Circus City Clockmaker Coast Colony Confession Country "
    "Detective Dream Empire Express Farewell Fortune Garden Ghost Guest Harbour Harvest Heart Heir Honeymoon Horizon "
    "Hotel Hour Island Journey Kingdom Lantern Letter Lighthouse Mirror Mountain Neighbour Ocean Orchard Orchestra "
    "Parade Passenger Piano Planet Promise Rain River Road Season Shadow Stranger Summer Tide Train Valley Witness"
)


@dataclass(frozen=True, repr=False)
class SyntheticRatings(DataSet):
    """Synthetic ratings with everything that produced them.

    Attributes
    ----------
    train, test : Table
        ``user_id``, ``item_id`` (text), ``rating`` (1 to 5 by half stars), ``timestamp`` (seconds since 1970, int), in
        order of time. No pair of user and item occurs twice.
    users : Table
        ``user_id``, ``age`` (int), ``sex`` (M or F), ``occupation``.
    items : Table
        ``item_id``, ``title``, ``year`` (float), ``genres`` (a list of names each). Some may be in neither part.
    noise_floor : float
        The RMSE to expect on `test` of the best predictor that there can be, the mean of a rating given f.
    new_user, new_item : ndarray of bool, shape (n_test,)
        Which rows of `test` are about users, and about items, that `train` does not have.
    expected : ndarray, shape (n_test,)
        That best predictor at the rows of `test`.
    user_factors, item_factors : ndarray, shape (n_users, rank) and (n_items, rank)
        The taste behind f at the rows of `users` and `items`; columns have about zero mean and unit variance.
    explained : float
        The share of the factors' variance, and of the biases', that comes from attributes.
    """

    train: Table
    test: Table
    users: Table
    items: Table
    noise_floor: float
    new_user: npt.NDArray[np.bool_] = field(repr=False)
    new_item: npt.NDArray[np.bool_] = field(repr=False)
    expected: npt.NDArray[np.float64] = field(repr=False)
    user_factors: npt.NDArray[np.float64] = field(repr=False)
    item_factors: npt.NDArray[np.float64] = field(repr=False)
    explained: float

    @property
    def test_known(self) -> npt.NDArray[np.bool_]:
        """Which rows of `test` are about a user and an item that `train` has."""
        return ~(self.new_user | self.new_item)


def make_ratings(
    n_users: int = 600,
    n_items: int = 400,
    n_ratings: int = 20_000,
    *,
    rank: int = 4,
    explained: float = 0.5,
    noise: float = 0.89,
    test_size: float = 0.15,
    new_users: float = 0.05,
    new_items: float = 0.05,
    random_state: int | np.random.Generator | None = None,
) -> SyntheticRatings:
    """Make synthetic ratings much like MovieLens, with known true values.

    A rating is f + N(0, noise^2), put to the nearest half star from 1 to 5, where f is the mean, a bias of the user and
    one of the item, and the product of their factors. Factors and biases are linear in the attributes (age, sex,
    occupation; genres, year) plus an individual part. A few items get most of the ratings, and a few users give many.
    Tastes do not drift in time. With the default sizes, the RMSE is about 1.1 for the mean of all ratings and
    about 0.8 for the best predictor.

    Parameters
    ----------
    n_users, n_items, n_ratings : int
        All there are, in both parts together. Everyone rates at least one item, at most half of the pairs are rated.
    rank : int
        Number of factors.
    explained : float
        Between 0 and 1: the share of the variance of factors and biases that attributes explain.
    noise : float
        Standard deviation of the noise before rounding, in stars.
    test_size : float
        The share of the ratings between known users and known items that goes to the test part.
    new_users, new_items : float
        The share of users and of items whose ratings all go to the test part.
    random_state : int, Generator or None
        The same number gives the same data.

    Returns
    -------
    SyntheticRatings

    Examples
    --------
    >>> data = make_ratings(random_state=1)
    >>> len(data.users), len(data.items), len(data.train) + len(data.test)
    (600, 400, 20000)
    >>> 0.75 < data.noise_floor < 0.85
    True
    """
    _check_counts(n_users=n_users, n_items=n_items, n_ratings=n_ratings, rank=rank)
    _check_shares(explained=explained, test_size=test_size, new_users=new_users, new_items=new_items)
    _check_noise(noise)
    rng = _generator(random_state)
    users, user_attributes = _make_users(n_users, rng)
    items, item_attributes = _make_items(n_items, rng)
    # the last column is the bias
    psi_user = _factors(user_attributes, rank + 1, explained, rng)
    psi_item = _factors(item_attributes, rank + 1, explained, rng)

    user, item, timestamp = _who_rates_what(n_users, n_items, n_ratings, rng)
    taste = np.einsum("ir,ir->i", psi_user[user, :rank], psi_item[item, :rank]) / np.sqrt(rank)
    f = _MEAN + _USER_BIAS * psi_user[user, rank] + _ITEM_BIAS * psi_item[item, rank] + _TASTE * taste
    rating = _to_half_stars(f + noise * rng.standard_normal(n_ratings))

    ratings = Table(
        {
            "user_id": users["user_id"][user],
            "item_id": items["item_id"][item],
            "rating": rating,
            "timestamp": timestamp,
        },
        "ratings",
        n_ratings,
    )
    late_user = rng.permutation(n_users) < round(new_users * n_users)
    late_item = rng.permutation(n_items) < round(new_items * n_items)
    in_test = late_user[user] | late_item[item] | (rng.random(n_ratings) < test_size)
    train, test = np.flatnonzero(~in_test), np.flatnonzero(in_test)
    if len(train) == 0 or len(test) == 0:
        raise InputError(
            "All the ratings fell into one of train and test; make more ratings, or change test_size, new_users and "
            "new_items."
        )
    expected, variance = _moments_given(f[test], noise)
    return SyntheticRatings(
        train=ratings.take(train),
        test=ratings.take(test),
        users=users,
        items=items,
        noise_floor=float(np.sqrt(variance.mean())),
        # by what the training part holds: an item that is rated once may be new as well
        new_user=~np.isin(user[test], user[train]),
        new_item=~np.isin(item[test], item[train]),
        expected=expected,
        user_factors=psi_user[:, :rank],
        item_factors=psi_item[:, :rank],
        explained=float(explained),
    )


def _check_counts(**counts: Any) -> None:
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise InputError(f"{name} must be a whole number of at least 1; got {count!r}.")
    n_users, n_items, n_ratings = counts["n_users"], counts["n_items"], counts["n_ratings"]
    if n_users < 2 or n_items < 2:
        raise InputError("There must be at least 2 users and 2 items.")
    if not n_users <= n_ratings <= n_users * n_items // 2:
        raise InputError(
            f"n_ratings must lie between n_users ({n_users}) and half the number of pairs "
            f"({n_users * n_items // 2}); got {n_ratings}."
        )


def _check_shares(**shares: Any) -> None:
    for name, share in shares.items():
        if not isinstance(share, Real) or not 0 <= float(share) <= 1:
            raise InputError(f"{name} must be a number from 0 to 1; got {share!r}.")


def _check_noise(noise: Any) -> None:
    if not isinstance(noise, Real) or not 0 < float(noise) < math.inf:
        raise InputError(f"noise must be a number above 0; got {noise!r}.")


def _generator(random_state: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state must be None, a whole number of at least 0, or a numpy Generator; got {random_state!r}."
        ) from None


def _make_users(n_users: int, rng: np.random.Generator) -> tuple[Table, npt.NDArray[np.float64]]:
    """The table of users, and their attributes as numbers, shape (n_users, n_attributes)."""
    age = np.clip(16 + rng.gamma(2.5, 8.0, n_users), 16, 85).astype(np.int64)
    is_male = rng.random(n_users) < 0.55
    names, weights = objects(list(_OCCUPATIONS)), np.array(list(_OCCUPATIONS.values()), dtype=float)
    occupation = rng.choice(names, n_users, p=weights / weights.sum())
    occupation = np.where((age < 25) & (rng.random(n_users) < 0.7), "student", occupation)
    occupation = np.where((age > 64) & (rng.random(n_users) < 0.8), "retired", occupation)
    columns = {
        "user_id": _ids("u", n_users),
        "age": age,
        "sex": np.where(is_male, "M", "F").astype(object),
        "occupation": occupation.astype(object),
    }
    one_hot = occupation[:, None] == np.unique(occupation.astype(str))
    attributes = np.column_stack([_standardised(age), _standardised(is_male), one_hot])
    return Table(columns, "users", n_users), attributes


def _make_items(n_items: int, rng: np.random.Generator) -> tuple[Table, npt.NDArray[np.float64]]:
    """The table of items, and their attributes as numbers, shape (n_items, n_attributes)."""
    year = np.clip(2019 - rng.gamma(1.3, 12.0, n_items), 1935, 2018).astype(np.int64)
    names, weights = list(_GENRES), np.array(list(_GENRES.values()), dtype=float)
    n_genres = rng.choice([1, 2, 3], n_items, p=[0.4, 0.4, 0.2])
    # the largest of log weights plus Gumbel noise are a weighted draw without replacement
    order = np.argsort(-(np.log(weights) + rng.gumbel(size=(n_items, len(names)))), axis=1)
    chosen = [np.sort(row[:count]) for row, count in zip(order, n_genres, strict=True)]
    multi_hot = np.zeros((n_items, len(names)))
    for row, genres in enumerate(chosen):
        multi_hot[row, genres] = 1.0
    columns = {
        "item_id": _ids("i", n_items),
        "title": _titles(year, rng),
        "year": year.astype(np.float64),
        "genres": objects([[names[genre] for genre in genres] for genres in chosen]),
    }
    return Table(columns, "items", n_items), np.column_stack([_standardised(year), multi_hot])


def _titles(year: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.object_]:
    """Distinct titles such as The Silent Harbour (1994); once all are used, there are second parts."""
    adjectives, nouns = _ADJECTIVES.split(), _NOUNS.split()
    bases = [f"{article}{first} {last}" for article in ("The ", "") for first in adjectives for last in nouns]
    order = rng.permutation(len(bases))
    titles = []
    for number, released in enumerate(year):
        lap, place = divmod(number, len(bases))
        sequel = f" {lap + 1}" if lap else ""
        titles.append(f"{bases[order[place]]}{sequel} ({released})")
    return objects(titles)


def _factors(
    attributes: npt.NDArray[np.float64], n_factors: int, explained: float, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Factors of unit variance, shape (n_rows, n_factors): attributes times weights, plus an individual part."""
    weights = rng.standard_normal((attributes.shape[1], n_factors))
    from_attributes = _standardised(attributes @ weights)
    individual = rng.standard_normal((len(attributes), n_factors))
    return math.sqrt(explained) * from_attributes + math.sqrt(1 - explained) * individual


def _who_rates_what(
    n_users: int, n_items: int, n_ratings: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Distinct pairs and their times, in order of time: user, item, timestamp, each of shape (n_ratings,)."""
    activity = rng.lognormal(0.0, 0.9, n_users)
    log_popularity = -np.log(8 + rng.permutation(n_items))  # Zipf's law
    counts = _share_out(n_ratings, activity, n_items)
    item = np.concatenate(
        [np.argpartition(-(log_popularity + rng.gumbel(size=n_items)), count - 1)[:count] for count in counts]
    )
    user = np.repeat(np.arange(n_users), counts)
    # people come for the first time within two years of 2019-01-01 and stay for weeks
    came = 1_546_300_800 + rng.integers(0, 2 * 365 * 86_400, n_users)
    timestamp = came[user] + rng.exponential(20 * 86_400, n_ratings).astype(np.int64)
    order = np.argsort(timestamp, kind="stable")
    return user[order], item[order], timestamp[order]


def _share_out(total: int, weights: npt.NDArray[np.float64], largest: int) -> npt.NDArray[np.intp]:
    """Whole numbers from 1 to `largest`, about proportional to the weights, that add up to `total`."""
    low, high = 0.0, largest / weights.min()
    for _ in range(100):  # bisection on the factor of proportion, which the bounds make unequal to total / sum
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle * weights, 1, largest).sum() < total else (low, middle)
    exact = np.clip(high * weights, 1, largest)
    counts: npt.NDArray[np.intp] = np.floor(exact).astype(np.intp)
    missing = total - int(counts.sum())
    counts[np.argsort(np.where(counts < largest, counts - exact, 1.0), kind="stable")[:missing]] += 1
    return counts


def _to_half_stars(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.clip(np.round(2 * values) / 2, LEVELS[0], LEVELS[-1])


def _moments_given(f: npt.NDArray[np.float64], noise: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Mean and variance of a rating given f, exactly: sums over the levels that it can take."""
    from scipy.special import ndtr

    cuts = (LEVELS[:-1] + LEVELS[1:]) / 2
    below = np.column_stack([np.zeros(len(f)), ndtr((cuts - f[:, None]) / noise), np.ones(len(f))])
    probabilities = np.diff(below, axis=1)
    mean = probabilities @ LEVELS
    variance = np.einsum("il,il->i", probabilities, (LEVELS - mean[:, None]) ** 2)
    return mean, variance


def _standardised(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Columns of zero mean and unit variance; one without variance becomes zero."""
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0), dtype=np.float64)


def _ids(letter: str, n: int) -> npt.NDArray[np.object_]:
    width = max(4, len(str(n)))
    return objects([f"{letter}{number:0{width}d}" for number in range(1, n + 1)])
