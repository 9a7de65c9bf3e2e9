"""Whatever a user calls a table, as a stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from deltalakedb.errors import InvalidArgument

ACCEPTED = (
    "a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or Polars DataFrame, a list of"
    " record batches, a list of dicts, or anything with __arrow_c_stream__"
)


def to_reader(data: Any) -> pa.RecordBatchReader:
    """The data as Arrow, without copying where it is Arrow already."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if _is("pandas", "DataFrame", data):
        return _from_pandas(data)
    if _is("polars", "LazyFrame", data):
        return to_reader(data.collect())
    if _is("polars", "DataFrame", data):
        return _from_polars(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _from_stream(data)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | dict):
        return _from_items(list(data))
    raise InvalidArgument(f"cannot write {type(data).__name__}: give {ACCEPTED}", argument="data")


def _from_items(items: list[Any]) -> pa.RecordBatchReader:
    if items and all(isinstance(i, pa.RecordBatch) for i in items):
        if other := next((i.schema for i in items if i.schema != items[0].schema), None):
            raise InvalidArgument(
                f"the batches differ in schema:\n{items[0].schema}\nand\n{other}", argument="data"
            )
        return pa.RecordBatchReader.from_batches(items[0].schema, items)
    if items and all(isinstance(i, dict) for i in items):
        try:
            names = dict.fromkeys(name for item in items for name in item)
            return pa.table(
                {name: [item.get(name) for item in items] for name in names}
            ).to_reader()
        except (pa.ArrowException, TypeError) as e:
            raise InvalidArgument(f"the rows do not make a table: {e}", argument="data") from e
    raise InvalidArgument(f"cannot write this list: give {ACCEPTED}", argument="data")


def _from_pandas(frame: Any) -> pa.RecordBatchReader:
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as e:
        raise InvalidArgument(f"the DataFrame does not make a table: {e}", argument="data") from e
    return table.replace_schema_metadata().to_reader()


def _from_polars(frame: Any) -> pa.RecordBatchReader:
    """Without the notes Polars leaves for itself; they are nothing for a table's schema."""
    if objects := [name for name, kind in frame.schema.items() if str(kind) == "Object"]:
        raise InvalidArgument(
            f"column {objects[0]!r} holds Python objects, which are no values to store",
            argument="data",
        )
    batches = _from_stream(frame)
    schema = pa.schema([field.remove_metadata() for field in batches.schema])
    plain = (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in batches)
    return pa.RecordBatchReader.from_batches(schema, plain)


def _from_stream(data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowException as e:
        raise InvalidArgument(
            f"{type(data).__name__} has columns that Arrow does not know: {e}", argument="data"
        ) from e


def _is(package: str, name: str, data: Any) -> bool:
    kind = type(data)
    return kind.__name__ == name and kind.__module__.partition(".")[0] == package
