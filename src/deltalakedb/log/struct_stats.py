"""Statistics that a checkpoint holds as columns (`stats_parsed`), as the JSON text of a commit."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

_encoder = msgspec.json.Encoder()


def stats_text(parsed: pa.StructArray, utc: Collection[str] = (), path: str = "") -> pa.Array:
    """One JSON object for each row, null where nothing is known.

    Values that JSON statistics do not have (binary, the parts of variants) are left out, as are
    nulls. `utc` names the timestamps (dotted, below `path`) that are UTC although their Arrow type
    has no zone, which is how Parquet's INT96 arrives.
    """
    members = []
    for field in parsed.type:
        inner = f"{path}.{field.name}" if path else field.name
        values = pc.struct_field(parsed, field.name)  # null where the struct is
        text = (
            stats_text(values, utc, inner)
            if pa.types.is_struct(field.type)
            else _value_text(values, as_utc=inner in utc)
        )
        if text is not None:
            members.append(pc.binary_join_element_wise(f",{_json(field.name)}:", text, ""))
    if not members:
        return pa.nulls(len(parsed), pa.string())
    # Not null_handling="skip": it drops rows in which every member is null.
    inside = pc.binary_join_element_wise(*members, "", null_handling="replace")
    known = pc.if_else(pc.equal(inside, ""), None, pc.utf8_slice_codeunits(inside, 1))
    return pc.binary_join_element_wise("{", known, "}", "")


def _value_text(values: pa.Array, *, as_utc: bool) -> pa.Array | None:
    """The values as JSON, or None for a type without a place in statistics."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        return _float_text(values)
    if pa.types.is_date(kind):
        return _quoted(values.cast(pa.date32()).cast(pa.string()))
    if pa.types.is_timestamp(kind):
        zone = "UTC" if kind.tz or as_utc else None
        moments = values.cast(pa.timestamp("us", kind.tz)).view(pa.timestamp("us", zone))
        return _quoted(pc.replace_substring(moments.cast(pa.string()), " ", "T"))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.array([_json(v) for v in values.to_pylist()], pa.string())
    return None


def _json(value: Any) -> str | None:
    return None if value is None else _encoder.encode(value).decode()


def _float_text(values: pa.Array) -> pa.Array:
    """Numbers, and the words that Delta uses for what JSON has no number for.

    A float is written as the double it is: its own shortest text may lie beside it.
    """
    values = values.cast(pa.float64())
    finite = pc.is_finite(values)
    word = pc.case_when(
        pc.make_struct(pc.is_nan(values), pc.greater(values, 0)), "NaN", "Infinity", "-Infinity"
    )
    return pc.if_else(finite, values.cast(pa.string()), _quoted(word))


def _quoted(text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', text, '"', "")
