"""Rows of a batch by the values of their partition columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def split(
    table: pa.Table, partition_by: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
    """Each combination of partition values with its rows, in the order they came.

    One sort on an integer code per row, however many partitions there are; the partition columns
    themselves are left out of the rows.
    """
    rest = table.drop_columns(list(partition_by))
    if table.num_rows == 0:
        return
    if not partition_by:
        yield (), rest
        return
    columns = [_encoded(table[name]) for name in partition_by]
    codes = _codes(columns)
    order = pc.sort_indices(codes)  # stable
    ends = pc.run_end_encode(codes.take(order)).run_ends.to_pylist()
    rest = rest.take(order)
    start = 0
    for end in ends:
        first = order[start].as_py()
        values = tuple(c.dictionary[i].as_py() for c, i in _at(columns, first))
        yield values, rest.slice(start, end - start)
        start = end


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Dictionary-encoded, a null being a value like any other."""
    flat = column.combine_chunks()
    if isinstance(flat, pa.ChunkedArray):  # more than 2 GiB of text
        flat = pa.concat_arrays([c.cast(pa.large_string()) for c in flat.chunks])
    return flat.dictionary_encode(null_encoding="encode")


def _codes(columns: Sequence[pa.DictionaryArray]) -> pa.Array:
    """One integer per row that tells combinations apart."""
    code = columns[0].indices.cast(pa.int64())
    for column in columns[1:]:
        base = pa.scalar(len(column.dictionary), pa.int64())
        code = pc.add(pc.multiply(code, base), column.indices.cast(pa.int64()))
        code = code.dictionary_encode().indices.cast(pa.int64())  # stays below the row count
    return code


def _at(
    columns: Sequence[pa.DictionaryArray], row: int
) -> Iterator[tuple[pa.DictionaryArray, int]]:
    for column in columns:
        yield column, column.indices[row].as_py()
