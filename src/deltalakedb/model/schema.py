"""Delta's schema types as frozen values, and what may be done to a schema.

`parse_schema` and `to_json` are inverse to each other up to white space: column metadata of any
JSON kind and types this build does not know come back as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

import msgspec

from deltalakedb.errors import CorruptLog

MappingMode: TypeAlias = Literal["none", "name", "id"]

PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"
COLUMN_ID: Final = "delta.columnMapping.id"
NESTED_IDS: Final = "delta.columnMapping.nested.ids"
TYPE_CHANGES: Final = "delta.typeChanges"
GENERATION: Final = "delta.generationExpression"
INVARIANTS: Final = "delta.invariants"
DEFAULT: Final = "CURRENT_DEFAULT"
COLLATIONS: Final = "__COLLATIONS"

INTEGRAL: Final = ("byte", "short", "integer", "long")
NUMERIC: Final = (*INTEGRAL, "float", "double")
PRIMITIVES: Final = frozenset(
    (*NUMERIC, "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz", "variant")
)
_DECIMAL: Final = re.compile(r"decimal(?:\(\s*(\d+)\s*,\s*(-?\d+)\s*\))?")


class PrimitiveType(msgspec.Struct, frozen=True):
    """A type without parts, by its name in the log, for instance `long` or `decimal(10,2)`.

    Any name may stand here, so that the schema of every table can be held; `supported` tells
    whether this build can do more with it than carry it.
    """

    name: str

    @property
    def decimal(self) -> tuple[int, int] | None:
        """(precision, scale) of a decimal."""
        found = _DECIMAL.fullmatch(self.name)
        return (int(found[1] or 10), int(found[2] or 0)) if found else None

    @property
    def supported(self) -> bool:
        """Whether values of this type can be read and written."""
        if self.name in PRIMITIVES:
            return True
        precision, scale = self.decimal or (0, 0)
        return 1 <= precision <= 38 and 0 <= scale <= precision

    @property
    def numeric(self) -> bool:
        """Integers, floats and decimals."""
        return self.name in NUMERIC or self.decimal is not None

    def __str__(self) -> str:
        return self.name


class ArrayType(msgspec.Struct, frozen=True):
    """A list of elements of one type."""

    element_type: DataType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element_type}>"


class MapType(msgspec.Struct, frozen=True):
    """Keys of one type with values of one type."""

    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key_type},{self.value_type}>"


class UnknownType(msgspec.Struct, frozen=True):
    """A compound type this build does not know, for instance Spark's `udt`, as its JSON text."""

    body: str

    def __str__(self) -> str:
        return self.body


class Identity(msgspec.Struct, frozen=True):
    """How an identity column counts."""

    start: int
    step: int
    allow_explicit_insert: bool
    high_water_mark: int | None = None


class StructField(msgspec.Struct, frozen=True):
    """A column, at the top or inside a struct. `metadata` is verbatim."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = {}

    def physical_name(self, mode: MappingMode) -> str:
        """Its name in files, statistics and partition values."""
        return self.name if mode == "none" else str(self.metadata.get(PHYSICAL_NAME, self.name))

    @property
    def column_id(self) -> int | None:
        """Its id under column mapping, which is the Parquet field id."""
        return self.metadata.get(COLUMN_ID)

    @property
    def generation_expression(self) -> str | None:
        """SQL that computes a generated column."""
        return self.metadata.get(GENERATION)

    @property
    def default(self) -> str | None:
        """SQL of the value for rows that give none."""
        return self.metadata.get(DEFAULT)

    @property
    def char_varchar(self) -> str | None:
        """The `char(n)` or `varchar(n)` a string column was declared as."""
        return self.metadata.get("__CHAR_VARCHAR_TYPE_STRING")

    @property
    def invariant(self) -> str | None:
        """SQL that must be true for every row."""
        text = self.metadata.get(INVARIANTS)
        if text is None:
            return None
        try:
            return str(msgspec.json.decode(text)["expression"]["expression"])
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            reason = f"invariant of column {self.name!r} cannot be read: {text!r}"
            raise CorruptLog(reason, reason=reason) from error

    @property
    def identity(self) -> Identity | None:
        """How the column counts, if it is an identity column."""
        prefix, data = "delta.identity.", self.metadata
        if f"{prefix}start" not in data:
            return None
        return Identity(
            start=data[f"{prefix}start"],
            step=data.get(f"{prefix}step", 1),
            allow_explicit_insert=data.get(f"{prefix}allowExplicitInsert", False),
            high_water_mark=data.get(f"{prefix}highWaterMark"),
        )

    def with_metadata(self, **values: Any) -> StructField:
        """The same column with more metadata."""
        return msgspec.structs.replace(self, metadata={**self.metadata, **values})

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{'' if self.nullable else ' not null'}"


class StructType(msgspec.Struct, frozen=True, dict=True):
    """Columns in order. Names are looked up without regard to case, as Delta does."""

    fields: tuple[StructField, ...] = ()

    @cached_property
    def _index(self) -> dict[str, StructField]:
        return {field.name.lower(): field for field in self.fields}

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return [field.name for field in self.fields]

    def field(self, name: str) -> StructField | None:
        """The column of this name."""
        return self._index.get(name.lower())

    def at(self, path: Sequence[str]) -> tuple[StructField, ...] | None:
        """The columns along a path of names through structs, the last one being the one meant."""
        found: list[StructField] = []
        inside: DataType = self
        for name in path:
            field = inside.field(name) if isinstance(inside, StructType) else None
            if field is None:
                return None
            found.append(field)
            inside = field.type
        return tuple(found) or None

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.fields))}>"


DataType: TypeAlias = PrimitiveType | StructType | ArrayType | MapType | UnknownType

STRING: Final = PrimitiveType("string")
VOID: Final = PrimitiveType("void")


class Leaf(msgspec.Struct, frozen=True):
    """A column that is not a struct, with the names that lead to it."""

    path: tuple[str, ...]
    physical: tuple[str, ...]
    field: StructField

    @property
    def name(self) -> str:
        """The dotted path."""
        return ".".join(self.path)


def leaves(schema: StructType, mode: MappingMode = "none") -> Iterator[Leaf]:
    """The leaves in order; arrays and maps are leaves, as they are for statistics."""
    for field in schema.fields:
        path, physical = (field.name,), (field.physical_name(mode),)
        if isinstance(field.type, StructType):
            for leaf in leaves(field.type, mode):
                yield Leaf(path + leaf.path, physical + leaf.physical, leaf.field)
        else:
            yield Leaf(path, physical, field)


def walk(
    kind: DataType, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Every column inside a type, nested ones too, parents first.

    Paths lead through arrays as `element` and through maps as `key` and `value`.
    """
    match kind:
        case StructType():
            for field in kind.fields:
                yield (here := (*path, field.name)), field
                yield from walk(field.type, here)
        case ArrayType():
            yield from walk(kind.element_type, (*path, "element"))
        case MapType():
            yield from walk(kind.key_type, (*path, "key"))
            yield from walk(kind.value_type, (*path, "value"))


def primitives(kind: DataType) -> Iterator[PrimitiveType]:
    """Every primitive type inside a type."""
    match kind:
        case PrimitiveType():
            yield kind
        case StructType():
            for field in kind.fields:
                yield from primitives(field.type)
        case ArrayType():
            yield from primitives(kind.element_type)
        case MapType():
            yield from primitives(kind.key_type)
            yield from primitives(kind.value_type)


def mapping_mode(configuration: Mapping[str, str]) -> MappingMode:
    """The column mapping that a table's properties ask for."""
    match configuration.get("delta.columnMapping.mode", "none").lower():
        case "none":
            return "none"
        case "name":
            return "name"
        case "id":
            return "id"
        case other:
            reason = f"delta.columnMapping.mode is {other!r}, not none, name or id"
            raise CorruptLog(reason, reason=reason)


# -- JSON --------------------------------------------------------------------------------------


def parse_schema(text: str) -> StructType:
    """The schema of a `schemaString`. An empty text is a table that has no columns yet."""
    if not text:
        return StructType()
    try:
        schema = _parse(msgspec.json.decode(text), ())
    except (msgspec.DecodeError, RecursionError) as error:
        raise _bad_schema(f"not JSON: {error}") from error
    if not isinstance(schema, StructType):
        raise _bad_schema(f"a table's schema is a struct, not {schema}")
    return schema


def parse_type(name: str) -> PrimitiveType:
    """The primitive type of a name, decimals in their usual spelling."""
    decimal = PrimitiveType(name).decimal
    return PrimitiveType("decimal({},{})".format(*decimal) if decimal else name)


def _bad_schema(reason: str) -> CorruptLog:
    return CorruptLog(f"schemaString cannot be read: {reason}", reason=reason)


def _parse(value: Any, path: tuple[str, ...]) -> DataType:
    if isinstance(value, str):
        return parse_type(value)
    try:
        match value["type"]:
            case "struct":
                return StructType(tuple(_parse_field(field, path) for field in value["fields"]))
            case "array":
                element = _parse(value["elementType"], (*path, "element"))
                return ArrayType(element, value.get("containsNull", True))
            case "map":
                return MapType(
                    _parse(value["keyType"], (*path, "key")),
                    _parse(value["valueType"], (*path, "value")),
                    value.get("valueContainsNull", True),
                )
            case "variant":
                return PrimitiveType("variant")
            case str():
                return UnknownType(msgspec.json.encode(value).decode())
    except (KeyError, TypeError, AttributeError):
        pass
    raise _bad_schema(f"column {'.'.join(path) or '(top)'} has no readable type: {value!r}")


def _parse_field(value: Any, path: tuple[str, ...]) -> StructField:
    name = value["name"]
    nullable, metadata = value.get("nullable", True), value.get("metadata") or {}
    if not (isinstance(name, str) and isinstance(nullable, bool) and isinstance(metadata, dict)):
        raise _bad_schema(f"column {'.'.join(path) or '(top)'} has a broken field: {value!r}")
    return StructField(name, _parse(value["type"], (*path, name)), nullable, metadata)


def to_json(schema: StructType) -> str:
    """The schema as Delta writes it into `schemaString`."""
    return msgspec.json.encode(_plain(schema)).decode()


def _plain(kind: DataType) -> Any:
    match kind:
        case PrimitiveType():
            return kind.name
        case StructType():
            return {"type": "struct", "fields": [_plain_field(field) for field in kind.fields]}
        case ArrayType():
            return {
                "type": "array",
                "elementType": _plain(kind.element_type),
                "containsNull": kind.contains_null,
            }
        case MapType():
            return {
                "type": "map",
                "keyType": _plain(kind.key_type),
                "valueType": _plain(kind.value_type),
                "valueContainsNull": kind.value_contains_null,
            }
        case UnknownType():
            return msgspec.Raw(kind.body.encode())


def _plain_field(field: StructField) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": _plain(field.type),
        "nullable": field.nullable,
        "metadata": field.metadata,
    }
