"""The transaction a user holds: tables are written, read and staged in it, and land together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from deltalakedb.errors import InvalidArgument, TableAlreadyExists, TableNotFound
from deltalakedb.log.base import CommitResult, NewTable, ReadSet
from deltalakedb.model.actions import Action, Txn
from deltalakedb.model.expr import TRUE, parse
from deltalakedb.storage.base import remove_uris
from deltalakedb.table import arguments
from deltalakedb.table import delete as delete_verb
from deltalakedb.table import stage as stage_verb
from deltalakedb.table import write as write_verb
from deltalakedb.table.metadata import new_table
from deltalakedb.table.overlay import OverlayReader
from deltalakedb.table.work import Work
from deltalakedb.table.write import WriteOptions
from deltalakedb.txn.staged import Change, Stage
from deltalakedb.uri import parse as parse_uri

if TYPE_CHECKING:
    from deltalakedb.model.expr import Predicate
    from deltalakedb.table.catalog import Catalog
    from deltalakedb.table.table import DeltaTable
    from deltalakedb.txn.multi import MultiTableTransaction


class Transaction:
    """Changes to tables of one catalog that become visible together, or not at all.

    As a context manager it commits on a clean exit and rolls back on an exception. Reads in it see
    the moment it began, plus its own changes.
    """

    def __init__(self, catalog: Catalog, inner: MultiTableTransaction) -> None:
        self._catalog = catalog
        self._inner = inner

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.rollback()
        elif self._inner.state == "open":
            self.commit()

    @property
    def transaction_id(self) -> str:
        """Stable from the start; committing it twice happens once."""
        return self._inner.id

    @property
    def result(self) -> CommitResult:
        """What the commit did."""
        if self._inner.result is None:
            raise InvalidArgument(
                f"transaction {self._inner.id} has no result: it is {self._inner.state}",
                argument="result",
            )
        return self._inner.result

    def commit(self) -> CommitResult:
        """Make everything visible at once."""
        return self._inner.commit()

    def rollback(self) -> None:
        """Forget everything, and remove the files written so far."""
        self._inner.rollback()

    # --- reading ----------------------------------------------------------------------------------

    def table(self, table: str) -> DeltaTable:
        """The table as this transaction sees it, own changes included.

        Rows read through it are checked at commit: a conflicting change by someone else fails the
        transaction instead of spoiling what was computed from them.
        """
        from deltalakedb.table.table import DeltaTable

        name = self._name(table)
        return DeltaTable.of(
            self._catalog.uri.with_table(name),
            self._reader(lambda: self._inner.stage(name)),
            on_read=lambda where: self._note_read(name, where),
        )

    def _note_read(self, table: str, where: Any) -> None:
        reads = ReadSet(whole_table=True) if where is None else ReadSet(predicates=(where,))
        self._inner.note_read(table, reads)

    def txn_version(self, table: str, app_id: str) -> int | None:
        """How far an application has come; the commit fails if another one advances it."""
        name = self._name(table)
        app_ids = frozenset([arguments.name("app_id", app_id)])
        self._inner.note_read(name, ReadSet(app_ids=app_ids))
        reader = self._reader(lambda: self._inner.stage(name))
        return reader.txn_version(app_id, reader.snapshot())

    # --- changing ---------------------------------------------------------------------------------

    def create_table(
        self,
        name: str,
        schema: Any,
        *,
        location: str | None = None,
        partition_by: Sequence[str] | str = (),
        properties: Mapping[str, object] | None = None,
        description: str | None = None,
    ) -> None:
        """Create a table with this transaction."""
        new, change = self._creation(
            name,
            schema,
            location=location,
            partition_by=partition_by,
            properties=properties,
            description=description,
        )
        self._inner.create(new, change)

    def _creation(
        self,
        name: str,
        schema: Any,
        *,
        location: str | None,
        partition_by: Sequence[str] | str,
        properties: Mapping[str, object] | None,
        description: str | None,
    ) -> tuple[NewTable, Change]:
        place = self._catalog.new_location(name, location)
        metadata, protocol = new_table(
            write_verb.as_delta_schema(schema),
            partition_by=arguments.names("partition_by", partition_by),
            properties=properties,
            name=name,
            description=arguments.optional_text("description", description),
            now=self._catalog.clock(),
        )
        parameters = {
            "isManaged": "false",
            "partitionBy": list(metadata.partition_columns),
            "properties": dict(metadata.configuration),
        }
        change = Change(
            "CREATE TABLE", "create", (protocol, metadata), parameters, fresh_files=True
        )
        return NewTable(name, place), change

    def write(
        self,
        table: str,
        data: Any,
        *,
        mode: str = "append",
        partition_by: Sequence[str] | str | None = None,
        schema_mode: str | None = None,
        predicate: Predicate | None = None,
        location: str | None = None,
        configuration: Mapping[str, object] | None = None,
        description: str | None = None,
        target_file_size: int | None = None,
    ) -> None:
        """Write rows. See `write_deltalake` for the options."""
        name = self._name(table)
        choice = WriteOptions(
            mode=mode,
            partition_by=partition_by,
            schema_mode=schema_mode,
            predicate=predicate,
            location=location,
            configuration=configuration,
            description=description,
            target_file_size=target_file_size,
        )
        if not self._exists(name):
            self._write_new(name, data, choice)
        elif choice.mode == "error":
            raise TableAlreadyExists(f"table {name!r} already exists", table=name)
        elif choice.mode != "ignore":
            self._run(name, lambda work: write_verb.write(work, data, choice))

    def _write_new(self, name: str, data: Any, choice: WriteOptions) -> None:
        """Create a table with its first rows: both or neither."""
        if not choice.creates:
            raise TableNotFound(f"no table {name!r} in this catalog", table=name)
        incoming = write_verb.prepared(data)
        new, creation = self._creation(
            name,
            incoming.schema,
            location=choice.location,
            partition_by=choice.partition_by or (),
            properties=choice.configuration,
            description=choice.description,
        )

        def verb(work: Work) -> Change:
            rows = write_verb.write(work, incoming, choice.appending())
            return replace(
                creation, actions=(*creation.actions, *rows.actions), metrics=rows.metrics
            )

        stage = Stage(name, None, create=new).plus(creation)
        self._plan(lambda: stage, verb, lambda change: self._inner.create(new, change))

    def delete(self, table: str, predicate: Predicate | None = None) -> dict[str, int]:
        """Remove the rows that match; all of them without a predicate. Returns what was done."""

        def verb(work: Work) -> Change:
            where = TRUE if predicate is None else parse(predicate, work.snapshot.schema)
            return delete_verb.delete(work, where)

        return delete_verb.reported(self._run(self._name(table), verb))

    def stage_table(
        self,
        table: str,
        actions: Any,
        mode: str = "append",
        *,
        operation: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Stage ready-made actions, or a DataFrame."""
        name = self._name(table)
        if stage_verb.is_actions(actions):
            self._run(
                name,
                lambda work: stage_verb.ready_made(work, actions, mode, operation, parameters),
            )
        else:
            self.write(name, actions, mode=mode)

    def set_txn(
        self, table: str, app_id: str, version: int, *, last_updated: int | None = None
    ) -> None:
        """Record how far an application has come, so that it never writes the same twice."""
        action = Txn(
            app_id=arguments.name("app_id", app_id),
            version=arguments.number("version", version, least=0),
            last_updated=None
            if last_updated is None
            else arguments.number("last_updated", last_updated),
        )
        self._stage(table, [action], "SET TRANSACTION")

    def _stage(self, table: str, actions: Iterable[Action], operation: str) -> None:
        change = Change(operation, "append", tuple(actions), fresh_files=True)
        self._inner.change(self._name(table), change)

    def change(self, table: str, change: Change) -> None:
        """Stage a change that a verb has planned."""
        self._inner.change(self._name(table), change)

    # --- inside -----------------------------------------------------------------------------------

    def _run(self, name: str, verb: Callable[[Work], Change]) -> Change:
        """Stage what a verb plans for a table that is there."""
        return self._plan(
            lambda: self._inner.stage(name), verb, lambda change: self._inner.change(name, change)
        )

    def _plan(
        self,
        stage: Callable[[], Stage],
        verb: Callable[[Work], Change],
        keep: Callable[[Change], None],
    ) -> Change:
        """Let a verb plan its change and keep it; the files of one that fails go at once."""
        written: list[str] = []
        work = Work(
            reader=self._reader(stage),
            transaction_id=self._inner.id,
            clock=self._catalog.clock,
            wrote=written.extend,
            target_file_size=self._catalog.config.target_file_size,
        )
        try:
            change = verb(work)
            keep(change)
        except BaseException:
            remove_uris(written)
            raise
        self._inner.wrote(written)
        return change

    def _reader(self, stage: Callable[[], Stage]) -> OverlayReader:
        return OverlayReader(self._catalog.reader(stage().table), stage)

    def _exists(self, name: str) -> bool:
        try:
            self._inner.stage(name)
        except TableNotFound:
            return False
        return True

    def _name(self, table: str) -> str:
        """A name of this catalog, also when given as a full URI."""
        if not arguments.text("table", table).lower().startswith("deltasql:"):
            return table
        uri = parse_uri(table)
        if uri.catalog != self._catalog.uri:
            raise InvalidArgument(
                f"{uri} is of another catalog than this transaction's {self._catalog.uri};"
                " a transaction covers the tables of one catalog",
                argument="table",
            )
        if uri.table is None:
            raise InvalidArgument(f"{uri} names no table; add ?table=NAME", argument="table")
        return uri.table
