"""Rows as the table wants them: cast, completed, and held against its constraints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deltalakedb.errors import ConstraintViolation, SchemaMismatch
from deltalakedb.model.actions import Metadata, Protocol
from deltalakedb.model.arrow import arrow_schema
from deltalakedb.model.expr import Expr, parse, parse_scalar
from deltalakedb.model.protocol import supports
from deltalakedb.model.schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    parse_schema,
)
from deltalakedb.table.arrow_expr import evaluate
from deltalakedb.table.metadata import conditions
from deltalakedb.table.nested import cast, loose

_SAMPLE = 3


@dataclass(frozen=True)
class Check:
    """A condition every row must meet; NULL does not meet it."""

    name: str
    text: str
    expr: Expr


class Conformer:
    """Fits batches to one table. Made once per write, used for every batch."""

    def __init__(self, table: str, metadata: Metadata, protocol: Protocol) -> None:
        self.table = table
        self.protocol = protocol
        self.schema = parse_schema(metadata.schema_string)
        self.metadata = metadata

    @cached_property
    def target(self) -> pa.Schema:
        """The logical Arrow schema, without metadata and with nulls allowed."""
        return pa.schema([(f.name, loose(f.type)) for f in arrow_schema(self.schema)])

    @cached_property
    def checks(self) -> list[Check]:
        """CHECK constraints and column invariants."""
        return [
            Check(name, text, parse(text, self.schema, double_quotes="string"))
            for name, text in conditions(self.metadata)
        ]

    @cached_property
    def generated(self) -> list[tuple[StructField, Expr]]:
        """Columns computed from others, where the table's protocol gives them that meaning."""
        if not supports(self.protocol, "generatedColumns"):
            return []
        return [
            (f, parse_scalar(f.generation_expression, self.schema, double_quotes="string"))
            for f in self.schema.fields
            if f.generation_expression
        ]

    def fit(self, batch: pa.Table) -> pa.Table:
        """The batch in the table's own columns, types and order, every constraint met."""
        given = {name.lower(): i for i, name in enumerate(batch.schema.names)}
        self._require_known(batch, given)
        computed = {field.name for field, _ in self.generated}
        columns = {
            f.name: self._column(batch, given, f)
            for f in self.schema.fields
            if f.name.lower() in given or f.name not in computed
        }
        self._generate(columns)
        fitted = pa.table([columns[name] for name in self.target.names], schema=self.target)
        self._require_not_null(fitted)
        for check in self.checks:
            self._require(fitted, check)
        return fitted

    def _require_known(self, batch: pa.Table, given: dict[str, int]) -> None:
        unknown = [n for n in batch.schema.names if self.schema.field(n) is None]
        if unknown or len(given) < len(batch.schema.names):
            what = f"the table has no column {', '.join(unknown)}" if unknown else "names repeat"
            raise SchemaMismatch(
                f"{self.table}: {what}; schema_mode='merge' adds new columns",
                table=self.table,
                columns=tuple(unknown),
                expected=self.schema,
                found=batch.schema,
            )

    def _column(self, batch: pa.Table, given: dict[str, int], field: StructField) -> Any:
        kind = self.target.field(field.name).type
        if field.name.lower() in given:
            column = self._cast(batch.column(given[field.name.lower()]), field, kind)
            return self._partition_value(field, column)
        if field.default is not None:
            default = parse_scalar(field.default, self.schema, double_quotes="string")
            return evaluate(default, batch).cast(kind)
        return pa.chunked_array([pa.nulls(batch.num_rows, kind)])

    def _cast(self, column: pa.ChunkedArray, field: StructField, kind: pa.DataType) -> Any:
        try:
            return cast(column, field.type, kind)
        except pa.ArrowException as e:
            raise SchemaMismatch(
                f"{self.table}: column {field.name!r} cannot be stored as {field.type}: {e}",
                table=self.table,
                columns=(field.name,),
                expected=field.type,
                found=column.type,
            ) from e

    def _partition_value(self, field: StructField, column: Any) -> Any:
        """Partition values are written as text, and an empty text reads back as null."""
        text = column.type in (pa.string(), pa.binary())
        if not text or field.name not in self.metadata.partition_columns:
            return column
        empty = pc.equal(pc.binary_length(column), 0)
        return pc.if_else(pc.fill_null(empty, True), pa.scalar(None, column.type), column)

    def _generate(self, columns: dict[str, Any]) -> None:
        """Compute what was not given, hold against the expression what was."""
        if not self.generated:
            return
        plain = pa.table(columns)
        for field, expr in self.generated:
            made = self._cast(evaluate(expr, plain), field, self.target.field(field.name).type)
            given = columns.setdefault(field.name, made)
            if given is not made:
                self._report(_same(given, made), plain, field.name, f"{field.name} <=> {expr}")

    def _require_not_null(self, fitted: pa.Table) -> None:
        for field in self.schema.fields:
            for path, count in null_violations(fitted[field.name], field, (field.name,)):
                raise ConstraintViolation(
                    f"{self.table}: {count} null{'s' if count > 1 else ''} in {path},"
                    " which is NOT NULL",
                    table=self.table,
                    constraint=f"{path} NOT NULL",
                    expression=f"{path} IS NOT NULL",
                    rows=count,
                )

    def _require(self, fitted: pa.Table, check: Check) -> None:
        self._report(evaluate(check.expr, fitted), fitted, check.name, check.text)

    def _report(self, ok: Any, rows: pa.Table, name: str, text: str) -> None:
        broken = pc.invert(pc.fill_null(ok, False))
        count = pc.sum(broken).as_py() or 0
        if not count:
            return
        sample = rows.filter(broken).slice(0, _SAMPLE).to_pylist()
        raise ConstraintViolation(
            f"{self.table}: {count} row{'s' if count > 1 else ''} violate {name}: {text};"
            f" for example {sample[0]}",
            table=self.table,
            constraint=name,
            expression=text,
            rows=count,
            sample=sample,
        )


def null_violations(
    column: Any, field: StructField, path: tuple[str, ...]
) -> Iterator[tuple[str, int]]:
    """Nulls where the schema allows none, also inside structs, arrays and maps that are there."""
    if not field.nullable and column.null_count:
        yield ".".join(path), column.null_count
    if not _has_not_null(field.type):
        return
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        present = chunk.drop_null()
        if isinstance(field.type, StructType):
            for child, values in zip(field.type.fields, present.flatten(), strict=True):
                yield from null_violations(values, child, (*path, child.name))
        elif isinstance(field.type, ArrayType):
            inner = StructField("element", field.type.element_type, field.type.contains_null)
            yield from null_violations(present.flatten(), inner, (*path, "element"))
        elif isinstance(field.type, MapType):
            inner = StructField("value", field.type.value_type, field.type.value_contains_null)
            start, end = present.offsets[0].as_py(), present.offsets[-1].as_py()
            yield from null_violations(present.items[start:end], inner, (*path, "value"))


def _has_not_null(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(not f.nullable or _has_not_null(f.type) for f in kind.fields)
    if isinstance(kind, ArrayType):
        return not kind.contains_null or _has_not_null(kind.element_type)
    if isinstance(kind, MapType):
        return not kind.value_contains_null or _has_not_null(kind.value_type)
    return False


def _same(left: Any, right: Any) -> Any:
    """Null-safe equality."""
    equal = pc.fill_null(pc.equal(left, right), False)
    return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
