"""Batches of Arrow as bytes: so they lie in RDDs, and in the columns of data frames whose rows are of several kinds."""

from __future__ import annotations

from typing import Any

__all__ = ["blob_of", "table_in"]


def blob_of(batch: Any) -> bytes:
    """A batch as a stream of Arrow."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def table_in(blob: Any) -> Any:
    """The table in a stream of Arrow."""
    import pyarrow as pa

    return pa.ipc.open_stream(blob).read_all()
