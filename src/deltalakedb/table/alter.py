"""Changes to a table itself: columns, properties, constraints, features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from deltalakedb.errors import ConstraintViolation, InvalidArgument, ProtocolError
from deltalakedb.log.base import ReadSet, Snapshot
from deltalakedb.model.actions import Action, Add, Metadata
from deltalakedb.model.expr import IsNull, Not, Or, parse
from deltalakedb.model.protocol import check_write, upgrade
from deltalakedb.model.schema import StructField, StructType, mapping_mode
from deltalakedb.table import arguments
from deltalakedb.table.metadata import CONSTRAINT, ROW_TRACKING, changed, with_schema
from deltalakedb.table.properties import checked
from deltalakedb.table.write import as_delta_schema
from deltalakedb.txn.staged import Change

if TYPE_CHECKING:
    from deltalakedb.table.table import DeltaTable
    from deltalakedb.table.transaction import Transaction

Plan = Callable[[Snapshot], Metadata]


class Alter:
    """The changes a table can undergo. Each is one commit."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table

    def add_columns(self, fields: Any) -> None:
        """Add nullable columns at the end.

        Args:
            fields: Delta StructFields, a StructType, a pyarrow schema or fields, or a list of
                (name, pyarrow type).
        """
        new = _as_fields(fields)

        def plan(now: Snapshot) -> Metadata:
            for field in new:
                if now.schema.field(field.name):
                    raise InvalidArgument(
                        f"{now.table} has a column {field.name!r} already", argument="fields"
                    )
                if not field.nullable:
                    raise InvalidArgument(
                        f"column {field.name!r}: the rows that are there have no value for it,"
                        " so a new column must be nullable",
                        argument="fields",
                    )
            return with_schema(now.metadata, StructType((*now.schema.fields, *new)))

        self._commit("ADD COLUMNS", {"columns": [f.name for f in new]}, plan)

    def drop_columns(self, names: Sequence[str] | str) -> None:
        """Drop columns; their data stays in the files. Needs column mapping."""
        gone = list(arguments.names("names", names))

        def plan(now: Snapshot) -> Metadata:
            self._require_mapping(now, "dropping a column")
            for name in gone:
                field = _field(now, name)
                if field.name in now.metadata.partition_columns:
                    raise InvalidArgument(
                        f"{field.name!r} partitions the table and cannot be dropped",
                        argument="names",
                    )
                _refuse_referenced(now, field.name)
            lower = {name.lower() for name in gone}
            kept = tuple(f for f in now.schema.fields if f.name.lower() not in lower)
            return with_schema(now.metadata, StructType(kept))

        self._commit("DROP COLUMNS", {"columns": gone}, plan)

    def rename_column(self, name: str, new_name: str) -> None:
        """Give a column another name. Needs column mapping; no file is touched."""
        arguments.text("new_name", new_name)

        def plan(now: Snapshot) -> Metadata:
            self._require_mapping(now, "renaming a column")
            field = _field(now, name)
            _refuse_referenced(now, field.name)
            fields = tuple(
                msgspec.structs.replace(f, name=new_name) if f.name == field.name else f
                for f in now.schema.fields
            )
            made = with_schema(now.metadata, StructType(fields))
            columns = tuple(
                new_name if c == field.name else c for c in now.metadata.partition_columns
            )
            return msgspec.structs.replace(made, partition_columns=columns)

        self._commit("RENAME COLUMN", {"oldColumnPath": name, "newColumnPath": new_name}, plan)

    def drop_not_null(self, name: str) -> None:
        """Allow nulls in a column."""

        def plan(now: Snapshot) -> Metadata:
            field = _field(now, name)
            fields = tuple(
                msgspec.structs.replace(f, nullable=True) if f.name == field.name else f
                for f in now.schema.fields
            )
            return with_schema(now.metadata, StructType(fields))

        self._commit("CHANGE COLUMN", {"column": name, "nullable": True}, plan)

    def set_column_comment(self, name: str, comment: str) -> None:
        """Describe a column."""
        arguments.text("comment", comment)

        def plan(now: Snapshot) -> Metadata:
            field = _field(now, name)
            fields = tuple(
                f.with_metadata(comment=comment) if f.name == field.name else f
                for f in now.schema.fields
            )
            return with_schema(now.metadata, StructType(fields))

        self._commit("CHANGE COLUMN", {"column": name}, plan)

    def set_table_properties(self, properties: Mapping[str, object]) -> None:
        """Set table properties; features they need are added to the protocol."""
        given = checked(properties)
        if any(key.startswith(CONSTRAINT) for key in given):
            raise InvalidArgument(
                "constraints are added with alter.add_constraint", argument="properties"
            )

        def plan(now: Snapshot) -> Metadata:
            configuration = {**now.metadata.configuration, **given}
            return msgspec.structs.replace(now.metadata, configuration=configuration)

        self._commit("SET TBLPROPERTIES", {"properties": given}, plan)

    def unset_table_properties(self, names: Sequence[str] | str) -> None:
        """Remove table properties; those that are not set are an error."""
        gone = list(arguments.names("names", names))

        def plan(now: Snapshot) -> Metadata:
            if missing := [n for n in gone if n not in now.metadata.configuration]:
                raise InvalidArgument(
                    f"{now.table} has no property {missing[0]!r}; set are"
                    f" {', '.join(now.metadata.configuration) or 'none'}",
                    argument="names",
                )
            kept = {k: v for k, v in now.metadata.configuration.items() if k not in gone}
            return msgspec.structs.replace(now.metadata, configuration=kept)

        self._commit("UNSET TBLPROPERTIES", {"properties": gone}, plan)

    def set_table_name(self, name: str) -> None:
        """Set the name in the table's own metadata (not its name in the catalog)."""
        self._set("name", name)

    def set_table_description(self, description: str) -> None:
        """Set the table's description."""
        self._set("description", description)

    def _set(self, field: str, value: str) -> None:
        arguments.text(field, value)
        self._commit(
            "SET METADATA",
            {field: value},
            lambda now: msgspec.structs.replace(now.metadata, **{field: value}),
        )

    def add_constraint(self, constraints: Mapping[str, str]) -> None:
        """Add CHECK constraints, for instance ``{"positive": "amount > 0"}``.

        The rows that are there are checked first.
        """
        for name, text in arguments.mapping("constraints", constraints).items():
            arguments.text(arguments.name("the name of a constraint", name), text)
        if not constraints:
            raise InvalidArgument("give at least one constraint", argument="constraints")

        def plan(now: Snapshot) -> Metadata:
            configuration = dict(now.metadata.configuration)
            for name, text in constraints.items():
                key = CONSTRAINT + name.lower()
                if key in configuration:
                    raise InvalidArgument(
                        f"{now.table} has a constraint {name!r} already", argument="constraints"
                    )
                self._require_met(now, name, text)
                configuration[key] = text
            return msgspec.structs.replace(now.metadata, configuration=configuration)

        parameters = {"name": list(constraints), "expr": list(constraints.values())}
        self._commit("ADD CONSTRAINT", parameters, plan, reads=ReadSet(whole_table=True))

    def _require_met(self, now: Snapshot, name: str, text: str) -> None:
        expr = parse(text, now.schema, double_quotes="string")
        broken = Or((Not(expr), IsNull(expr)))
        if count := self._table.count(broken):
            raise ConstraintViolation(
                f"{now.table}: {count} row{'s' if count > 1 else ''} already violate"
                f" {name}: {text}",
                table=now.table,
                constraint=name,
                expression=text,
                rows=count,
            )

    def drop_constraint(self, name: str, *, missing: str = "error") -> None:
        """Drop a CHECK constraint; `missing="ignore"` accepts that there is none."""
        if missing not in ("error", "ignore"):
            raise InvalidArgument(
                f"missing {missing!r}: it takes error or ignore", argument="missing"
            )

        def plan(now: Snapshot) -> Metadata:
            key = CONSTRAINT + arguments.text("name", name).lower()
            if key not in now.metadata.configuration and missing == "error":
                raise InvalidArgument(f"{now.table} has no constraint {name!r}", argument="name")
            kept = {k: v for k, v in now.metadata.configuration.items() if k != key}
            return msgspec.structs.replace(now.metadata, configuration=kept)

        self._commit("DROP CONSTRAINT", {"name": name}, plan)

    def add_feature(self, features: Sequence[str] | str) -> None:
        """Add table features to the protocol, with those they require."""
        names = arguments.names("features", features)
        if not names:
            raise InvalidArgument("give at least one feature", argument="features")
        with self._begin() as tx:
            now = self._table.snapshot
            raised = upgrade(now.protocol, names)
            check_write(raised, metadata=now.metadata, table=now.table)
            if raised == now.protocol:
                raise ProtocolError(
                    f"{now.table} has {', '.join(names)} already",
                    table=now.table,
                    missing=(),
                    operation="add_feature",
                )
            tx.change(now.table, _change("ADD FEATURE", {"feature": names}, [raised]))
        self._table.update_incremental()

    # --- inside -----------------------------------------------------------------------------------

    def _begin(self) -> Transaction:
        """A transaction on the table as it is now; the table object moves along."""
        catalog = self._table.require_catalog()
        self._table.update_incremental()
        name = self._table.snapshot.table
        return catalog.transaction(pins={name: self._table.version()})

    def _commit(
        self,
        operation: str,
        parameters: Mapping[str, Any],
        plan: Plan,
        *,
        reads: ReadSet = ReadSet(),
    ) -> None:
        with self._begin() as tx:
            now = self._table.snapshot
            metadata = plan(now)
            actions = changed(now.table, now.metadata, now.protocol, metadata)
            if not actions:
                tx.rollback()
                return
            if numbered := self._without_row_ids(now, metadata):
                reads = ReadSet(whole_table=True)
            change = _change(operation, parameters, [*actions, *numbered], reads)
            tx.change(now.table, replace(change, fresh_files=not numbered))
        self._table.update_incremental()

    def _without_row_ids(self, now: Snapshot, new: Metadata) -> list[Add]:
        """Files to add again when row tracking is turned on: the commit numbers their rows."""
        before, after = (m.configuration.get(ROW_TRACKING) for m in (now.metadata, new))
        if after != "true" or before == "true":
            return []
        return [
            msgspec.structs.replace(file, data_change=False)
            for file in self._table.live_files()
            if file.base_row_id is None
        ]

    def _require_mapping(self, now: Snapshot, what: str) -> None:
        if mapping_mode(now.metadata.configuration) == "none":
            raise InvalidArgument(
                f"{what} needs column mapping, and {now.table} has none: create the table with"
                " properties={'delta.columnMapping.mode': 'name'}",
                argument="name",
            )


def _change(
    operation: str,
    parameters: Mapping[str, Any],
    actions: Sequence[Action],
    reads: ReadSet = ReadSet(),
) -> Change:
    return Change(operation, "alter", tuple(actions), parameters, reads=reads, fresh_files=True)


def _as_fields(fields: Any) -> tuple[StructField, ...]:
    if isinstance(fields, StructField):
        return (fields,)
    if isinstance(fields, list | tuple) and fields and isinstance(fields[0], StructField):
        return tuple(fields)
    return as_delta_schema(fields).fields


def _field(now: Snapshot, name: str) -> StructField:
    field = now.schema.field(arguments.text("name", name))
    if field is None:
        raise InvalidArgument(
            f"{now.table} has no column {name!r}; columns: {', '.join(now.schema.names)}",
            argument="name",
        )
    return field


def _refuse_referenced(now: Snapshot, name: str) -> None:
    """A column that a constraint or a generated column computes with must stay as it is."""
    from deltalakedb.model.expr import columns, parse_scalar

    texts = {
        key.removeprefix(CONSTRAINT): text
        for key, text in now.metadata.configuration.items()
        if key.startswith(CONSTRAINT)
    }
    for field in now.schema.fields:
        if field.generation_expression:
            texts[field.name] = field.generation_expression
    for owner, text in texts.items():
        used = columns(parse_scalar(text, now.schema, double_quotes="string"))
        if any(path[0] == name for path in used):
            raise InvalidArgument(f"column {name!r} is used by {owner}: {text}", argument="name")
