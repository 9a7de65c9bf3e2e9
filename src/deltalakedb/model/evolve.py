"""Which schemas Delta accepts, how one grows into another, and column mapping for new columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, Literal, TypeAlias

import msgspec

from deltalakedb.errors import InvalidSchema, ProtocolError, SchemaMismatch
from deltalakedb.model.schema import (
    COLUMN_ID,
    PHYSICAL_NAME,
    TYPE_CHANGES,
    VOID,
    ArrayType,
    DataType,
    MappingMode,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    UnknownType,
    parse_type,
    walk,
)

Path: TypeAlias = tuple[str, ...]

ILLEGAL_CHARACTERS: Final = frozenset(" ,;{}()\n\t=")
"""Parquet writers cannot take these in names; column mapping lifts the restriction."""


def validate_schema(
    schema: StructType, *, partition_columns: Sequence[str] = (), mode: MappingMode = "none"
) -> None:
    """Refuse a schema that Delta, or this build, cannot hold.

    Raises:
        InvalidSchema: names the column and the reason.
    """
    _check_struct(schema, (), mode)
    _check_partitioning(schema, partition_columns)


def _invalid(path: Sequence[str], reason: str) -> InvalidSchema:
    column = ".".join(path) or None
    where = f"column {column!r}" if column else "the schema"
    return InvalidSchema(f"{where}: {reason}", column=column, reason=reason)


def _check_struct(struct: StructType, path: Path, mode: MappingMode) -> None:
    if not struct.fields:
        raise _invalid(path, "it has no columns")
    seen: dict[str, str] = {}
    for field in struct.fields:
        here, lower = (*path, field.name), field.name.lower()
        if not field.name:
            raise _invalid(here, "a column needs a name")
        if lower in seen:
            reason = f"it differs from {seen[lower]!r} only in case"
            same = seen[lower] == field.name
            raise _invalid(here, "the name is used twice" if same else reason)
        seen[lower] = field.name
        if mode == "none" and (bad := sorted(ILLEGAL_CHARACTERS & set(field.name))):
            characters = " ".join(map(repr, bad))
            raise _invalid(here, f"the name holds {characters}, which needs column mapping")
        _check_type(field.type, here, mode)


def _check_type(kind: DataType, path: Path, mode: MappingMode) -> None:
    match kind:
        case StructType():
            _check_struct(kind, path, mode)
        case ArrayType():
            _check_type(kind.element_type, (*path, "element"), mode)
        case MapType():
            _check_type(kind.key_type, (*path, "key"), mode)
            _check_type(kind.value_type, (*path, "value"), mode)
        case PrimitiveType() if kind.decimal and not kind.supported:
            reason = f"{kind} is out of range: precision 1 to 38, scale 0 to precision"
            raise _invalid(path, reason)
        case PrimitiveType() | UnknownType():
            if not (isinstance(kind, PrimitiveType) and kind.supported):
                raise _invalid(path, f"type {kind} is not supported")


def _check_partitioning(schema: StructType, columns: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in columns:
        field = schema.field(name)
        if field is None or field.name != name:
            hint = f", only {field.name!r}" if field else ""
            raise _invalid([name], f"a partition column must be in the schema{hint}")
        if name in seen:
            raise _invalid([name], "it partitions the table twice")
        seen.add(name)
        if not isinstance(field.type, PrimitiveType) or field.type.name == "variant":
            raise _invalid([name], f"type {field.type} cannot partition a table")
    if columns and len(seen) == len(schema.fields):
        raise _invalid([], "every column is a partition column; one must hold data")


# -- widening ----------------------------------------------------------------------------------


_WIDER: Final = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}
_DIGITS: Final = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""How wide a decimal must be to take over; the protocol asks the same of the small integers."""
_PREVIEW_DIGITS: Final = _DIGITS | {"byte": 3, "short": 5}
"""The preview of type widening asked for no more than is needed, and such tables exist."""


def can_widen(old: DataType, new: DataType) -> bool:
    """Whether the protocol's type widening changes one type into the other."""
    return _widens(old, new, _DIGITS)


def _widens(old: DataType, new: DataType, digits: Mapping[str, int]) -> bool:
    if not (isinstance(old, PrimitiveType) and isinstance(new, PrimitiveType)):
        return False
    if new.decimal is None:
        return new.name in _WIDER.get(old.name, ())
    precision, scale = new.decimal
    whole, fraction = old.decimal or (digits.get(old.name, 99), 0)
    return old != new and precision - whole >= scale - fraction >= 0


def check_type_changes(schema: StructType, *, table: str | None = None) -> None:
    """Refuse a table whose columns changed type in a way this build cannot follow in old files.

    Raises:
        ProtocolError: names every such column and change.
    """
    missing = tuple(
        f"{'.'.join(path)} from {change['fromType']} to {change['toType']}"
        for path, field in walk(schema)
        for change in field.metadata.get(TYPE_CHANGES, ())
        if not _widens(
            parse_type(change["fromType"]), parse_type(change["toType"]), _PREVIEW_DIGITS
        )
    )
    if missing:
        raise ProtocolError(
            f"cannot read {table or 'the table'}: type changes that are not known:"
            f" {', '.join(missing)}",
            table=table,
            missing=missing,
            operation="read",
        )


def can_store(incoming: DataType, table: DataType) -> bool:
    """Whether values of one type may be cast into a column of another when they are written.

    Numbers may go into any numeric type: the cast, which must be a checked one, decides by value.
    """
    if incoming in (table, VOID) or can_widen(incoming, table):
        return True
    return (
        isinstance(incoming, PrimitiveType)
        and isinstance(table, PrimitiveType)
        and incoming.numeric
        and table.numeric
    )


# -- merging -----------------------------------------------------------------------------------


def merge(
    table: StructType, incoming: StructType, *, types: Literal["keep", "widen"] = "keep"
) -> StructType:
    """The table's schema after data of another schema came in.

    Columns keep their order, their case and their metadata; new ones follow, nullable. With
    `types="widen"` a column takes a wider type where the protocol has a widening, and its history
    of types is recorded.

    Raises:
        SchemaMismatch: shows both schemas side by side and names the columns that clash.
    """
    merging = _Merge(widen=types == "widen")
    merged = merging.struct(table, incoming)
    if merging.clashes:
        raise SchemaMismatch(
            f"the data does not fit the table in {', '.join(merging.clashes)}\n"
            + side_by_side(table, incoming),
            expected=table,
            found=incoming,
            columns=tuple(merging.clashes),
        )
    return merged


def side_by_side(table: StructType, incoming: StructType) -> str:
    """Both schemas as text, a line per column; `!` marks the lines that differ in type."""
    rest = {field.name.lower(): field for field in incoming.fields}
    pairs = [(field, rest.pop(field.name.lower(), None)) for field in table.fields]
    rows = [("table", "data", " ")]
    for left, right in (*pairs, *((None, field) for field in rest.values())):
        differs = left is not None and right is not None and left.type != right.type
        rows.append((str(left or "-"), str(right or "-"), "!" if differs else " "))
    width = max(len(left) for left, _, _ in rows)
    return "\n".join(f"{mark} {left:<{width}} | {right}" for left, right, mark in rows)


class _Merge:
    """One merge under way: what it may do, and where the schemas clash."""

    def __init__(self, *, widen: bool) -> None:
        self._widen = widen
        self.clashes: list[str] = []

    def struct(self, table: StructType, incoming: StructType, path: Path = ()) -> StructType:
        fields = []
        for field in table.fields:
            other = incoming.field(field.name)
            fields.append(field if other is None else self._column(field, other, path))
        new = (field for field in incoming.fields if table.field(field.name) is None)
        return StructType((*fields, *(_new_column(field) for field in new)))

    def _column(self, field: StructField, other: StructField, path: Path) -> StructField:
        changes: list[dict[str, str]] = []
        kind = self._type(field.type, other.type, (*path, field.name), (), changes)
        made = msgspec.structs.replace(field, type=kind)
        if not changes:
            return made
        history = [*field.metadata.get(TYPE_CHANGES, ()), *changes]
        return made.with_metadata(**{TYPE_CHANGES: history})

    def _type(
        self,
        table: DataType,
        incoming: DataType,
        path: Path,
        inner: Path,
        changes: list[dict[str, str]],
    ) -> DataType:
        """Merge below one column; `inner` is the way from it through arrays and maps."""

        def below(step: str, old: DataType, new: DataType) -> DataType:
            return self._type(old, new, (*path, step), (*inner, step), changes)

        match table, incoming:
            case StructType(), StructType():
                return self.struct(table, incoming, path)
            case ArrayType(), ArrayType():
                element = below("element", table.element_type, incoming.element_type)
                return ArrayType(element, table.contains_null)
            case MapType(), MapType():
                key = below("key", table.key_type, incoming.key_type)
                value = below("value", table.value_type, incoming.value_type)
                return MapType(key, value, table.value_contains_null)
        if self._widen and can_widen(table, incoming):
            change = {"fromType": str(table), "toType": str(incoming)}
            changes.append(change | {"fieldPath": ".".join(inner)} if inner else change)
            return incoming
        if not can_store(incoming, table):
            self.clashes.append(".".join(path))
        return table


def _new_column(field: StructField) -> StructField:
    metadata = {k: v for k, v in field.metadata.items() if k not in (COLUMN_ID, PHYSICAL_NAME)}
    return msgspec.structs.replace(field, nullable=True, metadata=metadata)


# -- column mapping ----------------------------------------------------------------------------


def assign_column_mapping(
    schema: StructType, *, mode: MappingMode, max_id: int, new_name: Callable[[str], str]
) -> tuple[StructType, int]:
    """Give ids and physical names to the columns that lack them, nested ones too.

    Args:
        schema: Columns that have an id or a physical name keep it.
        mode: With `none` nothing happens.
        max_id: The table's `delta.columnMapping.maxColumnId`, 0 for a new table.
        new_name: Physical name for a column of this name: a fresh unique one, or the name itself
            when column mapping is turned on for a table that has data.

    Returns:
        The schema and the new highest id, never lower than `max_id`.
    """
    if mode == "none":
        return schema, max_id
    known = (field.column_id for _, field in walk(schema))
    ids = count(max([max_id, *(i for i in known if i is not None)]) + 1)
    made = _assign(schema, ids, new_name)
    assert isinstance(made, StructType)
    return made, next(ids) - 1


def _assign(kind: DataType, ids: Iterator[int], new_name: Callable[[str], str]) -> DataType:
    match kind:
        case StructType():
            return StructType(tuple(_assign_field(field, ids, new_name) for field in kind.fields))
        case ArrayType():
            return ArrayType(_assign(kind.element_type, ids, new_name), kind.contains_null)
        case MapType():
            key = _assign(kind.key_type, ids, new_name)
            return MapType(key, _assign(kind.value_type, ids, new_name), kind.value_contains_null)
    return kind


def _assign_field(
    field: StructField, ids: Iterator[int], new_name: Callable[[str], str]
) -> StructField:
    metadata = dict(field.metadata)
    if COLUMN_ID not in metadata:
        metadata[COLUMN_ID] = next(ids)
    if PHYSICAL_NAME not in metadata:
        metadata[PHYSICAL_NAME] = new_name(field.name)
    kind = _assign(field.type, ids, new_name)
    return msgspec.structs.replace(field, type=kind, metadata=metadata)
