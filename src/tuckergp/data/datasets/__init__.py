"""Data sets for examples: four public ones, read from disk or downloaded, and synthetic ratings.

Every loader looks in its ``directory`` argument; without one, in the folder that the environment variable
``TUCKERGP_DATA`` names, then in the cache, then it downloads into the cache (``TUCKERGP_CACHE`` moves that).
"""

from __future__ import annotations

from tuckergp.data.datasets.california import California, load_california
from tuckergp.data.datasets.lastfm import LastFM, load_lastfm_2k
from tuckergp.data.datasets.movielens import MovieLens, load_movielens_100k
from tuckergp.data.datasets.synthetic import SyntheticRatings, make_ratings
from tuckergp.data.datasets.wind import Wind, load_wind

__all__ = [
    "California",
    "LastFM",
    "MovieLens",
    "SyntheticRatings",
    "Wind",
    "load_california",
    "load_lastfm_2k",
    "load_movielens_100k",
    "load_wind",
    "make_ratings",
]
