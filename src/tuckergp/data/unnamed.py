"""Columns from tables that have no names for them: lists of tuples, arrays and sparse matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from tuckergp.data.cells import show_cell
from tuckergp.errors import InputError

__all__ = ["columns_by_order", "matrix_columns"]


def columns_by_order(data: Any, name: str) -> dict[str, Any] | None:
    """Columns of rows without names, ``column_1`` and so on; None for what is no such table.

    Rows are tuples, lists or arrays of one length; rows that are dicts, and structured arrays, have names.

    Examples
    --------
    >>> columns_by_order([("ann", "Heat", 4.0), ("bob", "Big", 3.5)], "ratings")["column_2"]
    ['Heat', 'Big']
    """
    if sparse.issparse(data):
        return matrix_columns(data)
    if isinstance(data, np.ndarray):
        if data.dtype.names:
            return {column: data[column] for column in data.dtype.names}
        return {f"column_{j + 1}": data[:, j] for j in range(data.shape[1])} if data.ndim == 2 else None
    if not isinstance(data, list | tuple) or not data:
        return None
    if all(isinstance(row, Mapping) for row in data):
        return {
            column: [row.get(column) for row in data] for column in dict.fromkeys(key for row in data for key in row)
        }
    if not all(isinstance(row, list | tuple | np.ndarray) for row in data):
        return None
    for place, row in enumerate(data):
        if len(row) != len(data[0]):
            raise InputError(
                f"{name} row {place} has {len(row)} values and row 0 has {len(data[0])}; give all as many."
            )
    return {f"column_{j + 1}": [row[j] for row in data] for j in range(len(data[0]))}


def matrix_columns(
    matrix: Any, users: Sequence[Any] | None = None, items: Sequence[Any] | None = None
) -> dict[str, Any]:
    """The stored entries of a matrix of users by items as ratings; without ids, their numbers from 0 on.

    Examples
    --------
    >>> matrix_columns(sparse.csr_array([[5, 0], [0, 3]]), users=["ann", "bob"])["user_id"]
    ['ann', 'bob']
    """
    is_sparse = bool(sparse.issparse(matrix))
    if not is_sparse or len(matrix.shape) != 2:
        raise InputError(f"The matrix must be a sparse matrix of SciPy, users by items, not {type(matrix).__name__}.")
    make: Any = sparse.csr_array
    entries = make(matrix).tocoo()  # repeated entries are summed, as SciPy does
    columns: dict[str, Any] = {}
    sides = zip(("user_id", "item_id"), ("users", "items"), entries.coords, (users, items), entries.shape, strict=True)
    for key, side, numbers, ids, size in sides:
        if ids is not None and len(ids) != size:
            raise InputError(f"{side} has {len(ids)} ids, but the matrix has {size}; give one for each.")
        if ids is not None and len(set(ids)) < size:
            twice = Counter(ids).most_common(1)[0][0]
            raise InputError(f"{side} has the id {show_cell(twice)} twice; give each row and column one of its own.")
        columns[key] = numbers.astype(np.int64) if ids is None else [ids[number] for number in numbers.tolist()]
    return {**columns, "rating": entries.data}
