"""A recommender as it is served: plain answers to plain questions, from one state of the model.

An object of this class never changes: ratings folded in make another one. So an answer is from the model before or
after, never a mixture, and a reload is one assignment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from tuckergp.data.frames import COLUMNS
from tuckergp.data.history import History
from tuckergp.data.names import COUNT, KEYS, RATING, TIMESTAMP
from tuckergp.data.periods import times
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.recommender.answering import explain_pair
from tuckergp.recommender.explanation import Contribution, Explanation
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.fold_in import check_withheld, ratings_of
from tuckergp.recommender.growth import repacked, with_described_users
from tuckergp.recommender.reading import Given
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.recommender.updating import with_ratings
from tuckergp.serve.entities import Entities, Texts
from tuckergp.stopping import stop_if_unwanted

__all__ = ["ServedRecommender", "as_columns", "counted"]

Row = Mapping[str, Any]


class ServedRecommender:
    """A recommender at one moment.

    Parameters
    ----------
    model : TuckerRecommender
        Not to be changed by others from now on.
    texts : tuple of Texts or None
        Of an earlier state of the same file.
    """

    kind = "recommender"
    outputs = None

    def __init__(self, model: TuckerRecommender, texts: tuple[Texts, Texts] | None = None) -> None:
        # the usual names of columns, whatever those of the training tables were; and all workers draw the same
        seed = 0 if model.random_state is None else model.random_state
        self.model = _copied(model, backend_=COLUMNS, columns=None, columns_={}, random_state=seed)
        sides, tables = self.model.layout_.sides, self.model.tables_
        self.texts = texts or (Texts(sides[0], tables[0]), Texts(sides[1], tables[1]))

    @cached_property
    def users(self) -> Entities:
        """The users."""
        return Entities(self.model.layout_.sides[0], self.model.tables_[0], self.texts[0])

    @cached_property
    def items(self) -> Entities:
        """The items."""
        return Entities(self.model.layout_.sides[1], self.model.tables_[1], self.texts[1])

    @property
    def fitted(self) -> FittedRecommender:
        """The model as the functions of `tuckergp.recommender` take it."""
        return self.model._fitted

    @property
    def facts(self) -> dict[str, Any]:
        """What the model is, in a few numbers and words."""
        model, (users, items) = self.model, self.model.layout_.sides
        clicks = model.history_.clicks
        return {
            "kind": self.kind,
            "of": "choices" if clicks else "ratings",
            "likelihood": model.fit_.likelihood.name,
            "users": int(np.count_nonzero(users.current)),
            "items": int(np.count_nonzero(items.current)),
            "ratings": len(model.history_),
            "rating_range": None if clicks else list(model.rating_range_),
            "draws": len(model.fit_.draws),
            "sampled": model.fit_.draws.sampled,
            "by": self.by,
            "circumstances": list(model.history_.base.occasion_columns),
            "attributes": {"users": self.attributes_of_users, "items": self.columns_of_items},
        }

    @property
    def by(self) -> list[str]:
        """What lists can be sorted by, the usual first."""
        usual = self.model.ranks_by_
        return [usual] if usual != "value" else ["value", "rating", "choice"]

    @property
    def added(self) -> int:
        """How many users and items were added, or changed, since the fit."""
        return sum(len(side.more) for side in self.model.layout_.sides)

    @property
    def attributes_of_users(self) -> list[str]:
        """The attributes that describe a new user."""
        used = {attribute.column for attribute in self.model.layout_.sides[0].attributes.used}
        return [name for name in self._columns(0) if name in used]

    @property
    def columns_of_items(self) -> list[str]:
        """The columns of the item table, for filters."""
        return self._columns(1)

    def _columns(self, d: int) -> list[str]:
        table = self.model.tables_[d]
        return [] if table is None else [name for name in table.columns if name != KEYS[d]]

    # Answers

    def predict(self, rows: Sequence[Row], unknown: str | None = "average", **asked: Any) -> Any:
        """Predictions of pairs, as `TuckerRecommender.predict` gives them."""
        self._refuse_other_columns("rows", rows, {*KEYS, TIMESTAMP})
        columns = as_columns(rows)
        for key, side in zip(KEYS, (self.users, self.items), strict=True):
            missing = next((number for number, row in enumerate(rows) if row.get(key) is None), None)
            if missing is not None:
                raise InputError(f"rows, row {missing + 1}: {key} is missing; a pair has user_id and item_id.")
            columns[key] = (side.known_all if unknown == "refuse" else side.read_all)(columns[key])
        return self.model.predict(counted(columns, "rows"), **asked)

    def recommend(self, users: Sequence[Any], reasons: int = 0, **asked: Any) -> list[list[dict[str, Any]]]:
        """The best items for each of some users, best first, with titles and with so many reasons."""
        by_user: dict[Any, list[dict[str, Any]]] = {user: [] for user in users}
        lists = self.model.recommend(list(by_user), **asked)
        for user, line in zip(lists[KEYS[0]], self._lines(lists), strict=True):
            stop_if_unwanted()
            by_user[user].append(self._with_reasons(user, line, reasons, asked.get("by")))
        return [by_user[user] for user in users]

    def recommend_together(self, users: Sequence[Any], **asked: Any) -> list[dict[str, Any]]:
        """The best items for a group."""
        return self._lines(self.model.recommend_together(list(users), **asked))

    def similar(self, d: int, value: Any, n: int) -> list[dict[str, Any]]:
        """The users (d = 0) or items (d = 1) most similar to a known one."""
        return self._lines((self.model.similar_users, self.model.similar_items)[d](value, n), d)

    def explain(self, user: Any, item: Any, circumstances: Mapping[str, str]) -> dict[str, Any]:
        """The parts of a prediction, and of that of a choice where the model knows both; circumstances are text."""
        occasion = self.model.history_.base.occasion
        for name in circumstances:
            if name not in occasion.columns:
                taken = ", ".join([*KEYS, *occasion.columns])
                raise InputError(f"For this model there is no parameter {name[:80]!r}; it takes {taken}.")
        read = {name: _as_in(occasion[name], name, text) for name, text in circumstances.items()}
        found = explain_pair(self.fitted, user, item, None, read)
        (title,) = self.items.titles([item])
        known = {"user_id": user, "item_id": item, "title": title}
        choice = None if found.choice is None else _explained(found.choice)
        return {**known, **_explained(found), "choice": choice, "value": found.value}

    def ratings_of(self, user: Any) -> list[dict[str, Any]]:
        """What a known user has rated, or chosen, with titles."""
        history = self.model.history_
        side = self.model.layout_.sides[0]
        own = ratings_of(history, [user], side)
        items = [own.ids[1][code] for code in own.codes[1].tolist()]
        pairs = zip(items, self.items.titles(items), own.rating.tolist(), strict=True)
        return [{"item_id": item, "title": title, "rating": rating} for item, title, rating in pairs]

    def _with_reasons(self, user: Any, line: dict[str, Any], reasons: int, by: Any) -> dict[str, Any]:
        if not reasons:
            return line
        found = self.model.explain(user, line["item_id"], by)
        each = [found] if found.choice is None else [found, found.choice]
        return {**line, "reasons": [part for why in each for part in _parts(why)[:reasons]]}

    def _lines(self, columns: Any, d: int = 1) -> list[dict[str, Any]]:
        """Lists as records, with titles."""
        ids = columns[KEYS[d]]
        numbers = {name: np.asarray(columns[name]).tolist() for name in columns if name not in KEYS}
        entities = (self.users, self.items)[d]
        return [
            {KEYS[d]: value, "title": title, **dict(zip(numbers, cells, strict=True))}
            for value, title, *cells in zip(ids, entities.titles(ids), *numbers.values(), strict=True)
        ]

    # Changes, each of which makes another object

    def read_ratings(self, ratings: Sequence[Row]) -> list[dict[str, Any]]:
        """Ratings with ids as the model spells them and times as text, however they came; wrong ones are refused."""
        clicks = self.model.history_.clicks
        self._refuse_other_columns("ratings", ratings, {*KEYS, COUNT if clicks else RATING, TIMESTAMP})
        ids = [side.read_all([row[key] for row in ratings])
               for key, side in zip(KEYS, (self.users, self.items), strict=True)]  # fmt: skip
        read = [{**row, KEYS[0]: user, KEYS[1]: item} for row, user, item in zip(ratings, *ids, strict=True)]
        if not clicks:
            self._refuse_no_rating(read)
            self._refuse_off_scale(read)
        if TIMESTAMP in self.model.history_.base.occasion_columns:
            column = times(counted(as_columns(read, TIMESTAMP), "ratings"), TIMESTAMP)
            read = [{**row, TIMESTAMP: None if np.isnat(time) else str(time)}
                    for row, time in zip(read, column, strict=True)]  # fmt: skip
        return read

    def _refuse_no_rating(self, ratings: Sequence[Row]) -> None:
        missing = next((number for number, row in enumerate(ratings) if row.get(RATING) is None), None)
        if missing is not None:
            raise InputError(
                f"ratings, row {missing + 1}: rating is missing; a model of ratings needs one in each row."
            )

    def _refuse_off_scale(self, ratings: Sequence[Row]) -> None:
        """Refuse what the scale does not have: one such rating would change it for everybody."""
        low, high = self.model.rating_range_
        for number, row in enumerate(ratings):
            rating = row.get(RATING)
            if isinstance(rating, int | float) and not low <= rating <= high:
                raise InputError(
                    f"ratings, row {number + 1}: rating is {rating:g}, but those of this model are from {low:g} to "
                    f"{high:g}; fit with rating_scale=(low, high) for others."
                )

    def with_ratings(self, ratings: Sequence[Row], users: Sequence[Row] = ()) -> ServedRecommender:
        """The model with ratings folded in; one of an item that the user rated before takes the place of that.

        Clicks add up. Users who have no rating among these, but new attributes, are drawn again with those.
        """
        rows = self.read_ratings(ratings)
        given = {row[KEYS[0]] for row in rows}
        self._refuse_other_attributes(users)
        self._refuse_no_attributes(users, given)
        about = {row[KEYS[0]]: row for row in self.completed(users)}
        fitted, again = self.fitted, [user for user in about if user not in given]
        check_withheld(fitted.history, again)
        mine = _rows(ratings_of(fitted.history, again, fitted.layout.sides[0])) if again else []
        rated = given | {row[KEYS[0]] for row in mine}
        with_some = [row for user, row in about.items() if user in rated]
        with_none = [row for user, row in about.items() if user not in rated]
        if with_none:
            fitted = with_described_users(fitted, as_table(as_columns(with_none), "users"))
        if mine:
            fitted = _unrated(fitted, [user for user in again if user in rated])
        if rated:
            settings = RecommenderSettings.of(self.model)
            settings = replace(settings, duplicates="keep" if self.model.history_.clicks else "last")
            table = counted(as_columns([*mine, *rows]), "ratings", 1 - len(mine))
            new = Given(table, as_columns(with_some) if with_some else None)
            fitted = with_ratings(fitted, settings, new)
        model = _copied(self.model)
        model._keep(repacked(fitted))
        return ServedRecommender(model, self.texts)

    def _refuse_other_columns(self, what: str, rows: Sequence[Row], known: set[str]) -> None:
        """Refuse names that the model does not read, before columns are made of them."""
        known = known | set(self.model.history_.base.occasion_columns)
        for number, row in enumerate(rows):
            other = next((name for name in row if name not in known), None)
            if other is not None:
                raise InputError(
                    f"{what}, row {number + 1}: there is no column {other[:80]!r} in this model; it takes "
                    f"{', '.join(sorted(known))}."
                )

    def without(self, user: Any) -> ServedRecommender:
        """The model that has forgotten a known user."""
        return ServedRecommender(_copied(self.model).forget(user), self.texts)

    def _refuse_other_attributes(self, users: Sequence[Row]) -> None:
        known = self.attributes_of_users
        for number, row in enumerate(users, start=1):
            other = next((name for name in row if name not in (KEYS[0], *known)), None)
            if other is not None:
                listed = ", ".join(known) or "none"
                raise InputError(
                    f"users, row {number}: the model has no attribute {other[:80]!r} of users; it uses {listed}."
                )

    def _refuse_no_attributes(self, users: Sequence[Row], rated: set[Any]) -> None:
        """Refuse an id of which nothing is said, neither here nor by ratings: nobody would be added."""
        ids = self.users.read_all([row[KEYS[0]] for row in users])
        for number, (user, row) in enumerate(zip(ids, users, strict=True), start=1):
            if len(row) == 1 and user not in rated:
                listed = ", ".join(self.attributes_of_users) or "none"
                raise InputError(
                    f"users, row {number}: neither attributes nor ratings are given; give some, or leave "
                    f"{row[KEYS[0]]!r} out. The model's attributes are {listed}."
                )

    def completed(self, users: Sequence[Row]) -> list[dict[str, Any]]:
        """One row per user: the attributes that are given, and what the model knows where nothing, or null, is."""
        ids = self.users.read_all([row[KEYS[0]] for row in users])
        told: dict[Any, dict[str, Any]] = {}
        for user, row in zip(ids, users, strict=True):
            if len(row) > 1:
                told.setdefault(user, {}).update({name: value for name, value in row.items() if value is not None})
        names = dict.fromkeys(name for row in users for name in row if len(row) > 1)
        known = self.users.cells(list(told), [name for name in names if name != KEYS[0]])
        return [{**before, **row, KEYS[0]: user} for before, (user, row) in zip(known, told.items(), strict=True)]


def _explained(found: Explanation) -> dict[str, Any]:
    parts = [_part(row, found) for row in found.rows[1:]]
    sums = {"total": found.total, "std": found.std, "predicted": found.predicted, "latent": found.latent}
    return {"base": found.rows[0].contribution, "parts": parts, **sums, "words": found.words}


def _as_in(column: Any, name: str, text: str) -> Any:
    """The text of a circumstance as a value such as a training column has."""
    if name == TIMESTAMP or column.dtype.kind not in "biuf":
        return text
    if column.dtype.kind == "b" and text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if column.dtype.kind == "b" or not np.isfinite(number):
        what = "true or false" if column.dtype.kind == "b" else "a number"
        raise InputError(f"{name} must be {what}, as in training, not {text[:80]!r}.")
    return int(number) if number.is_integer() else number


def _parts(found: Explanation) -> list[dict[str, Any]]:
    """The parts of a prediction but the base, the largest first."""
    return [_part(row, found) for row in sorted(found.rows[1:], key=lambda row: -abs(row.contribution))]


def _part(row: Contribution, found: Explanation) -> dict[str, Any]:
    return {**row._asdict(), "label": row.label, "of": found.predicts}


def _unrated(fitted: FittedRecommender, users: Sequence[Any]) -> FittedRecommender:
    """The model without the ratings of some users, who stay known."""
    choice = fitted.choice and _unrated(fitted.choice, users)
    return replace(fitted, history=fitted.history.without_users(users), choice=choice)


def _rows(history: History) -> list[dict[str, Any]]:
    """Ratings, or clicks with their counts, as rows."""
    value = COUNT if history.clicks else RATING
    columns = {name: [None if cell is None else str(cell) if name == TIMESTAMP else cell for cell in
                      history.occasion[name].tolist()] for name in history.occasion.columns}  # fmt: skip
    for key, ids, codes in zip(KEYS, history.ids, history.codes, strict=True):
        columns[key] = [ids[code] for code in codes.tolist()]
    columns[value] = history.rating.tolist()
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def as_columns(rows: Sequence[Row], *also: str) -> dict[str, list[Any]]:
    """Rows as columns, None where a row lacks one; also some that no row has."""
    names = dict.fromkeys([*also, *(name for row in rows for name in row)])
    return {name: [row.get(name) for row in rows] for name in names}


def counted(columns: Mapping[str, Sequence[Any]], name: str, first: int = 1) -> Table:
    """Columns of a request as a table whose rows messages count from 1, as those of its other faults."""
    table = as_table(columns, name)
    return replace(table, numbers=np.arange(first, first + len(table)))


def _copied(model: TuckerRecommender, **changed: Any) -> TuckerRecommender:
    """The same fitted model as another object, so that what is folded into one is not in the other."""
    other = TuckerRecommender.__new__(TuckerRecommender)
    other.__dict__ = {**model.__dict__, **changed}
    return other
