"""One table's log, read from its own `_delta_log`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalakedb.errors import CorruptLog, VersionNotFound
from deltalakedb.log.base import CommitRecord, Snapshot
from deltalakedb.log.files_schema import FILE_COLUMNS
from deltalakedb.log.listing import (
    LogListing,
    blaming,
    commit_path,
    corrupt,
    list_log,
)
from deltalakedb.model.actions import Action, CommitInfo, DomainMetadata, Metadata, Protocol
from deltalakedb.model.codec import decode_commit, decode_line
from deltalakedb.model.paths import canonical
from deltalakedb.model.protocol import check_read, supports, validate_protocol
from deltalakedb.model.replay import FileKey, State, replay
from deltalakedb.model.schema import parse_schema
from deltalakedb.storage.base import Store
from deltalakedb.times import iso

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalakedb.model.expr import Expr

_KEPT: Final = 4
"""Versions whose files a reader remembers, so that a snapshot's files are not read twice."""


@dataclass(frozen=True)
class _Version:
    """A version of the table.

    Its live files are `files`, in the shape of `files_schema`. `timed_since` is the (version, time)
    from which on commits carry their own time, if they do.
    """

    protocol: Protocol
    metadata: Metadata
    state: State
    files: pa.Table
    timed_since: tuple[int, int] | None


class FileTxnLogReader:
    """Reads one table's log from the files that lie beside its data.

    Every call looks at the log anew, so new commits are seen. A log that contradicts the protocol
    is a `CorruptLog` that names version and file; one that needs features this build does not know
    is a `ProtocolError` that names them.
    """

    def __init__(self, location: str) -> None:
        self._store = Store(location)
        self.location = self._store.location
        self._versions: dict[int, _Version] = {}

    def snapshot(self, version: int | None = None, timestamp: int | None = None) -> Snapshot:
        """The latest version; a given one; or the last at or before a time (ms)."""
        log = list_log(self._store)
        if version is None:
            version = log.last if timestamp is None else self._version_at(log, timestamp)
        found = self._load(log, version)
        return Snapshot(
            table=self.location,
            location=self.location,
            version=version,
            timestamp=self._timestamp(log, version, found),
            metadata=found.metadata,
            protocol=found.protocol,
            num_files=found.files.num_rows,
            size_bytes=_total(found.files, "size"),
            num_records=_num_records(found.files),
        )

    def files(
        self,
        snapshot: Snapshot,
        where: Expr | None = None,
        columns: Sequence[str] = FILE_COLUMNS,
    ) -> pa.RecordBatchReader:
        """Live files as Arrow, without those that cannot hold a row that `where` is true for."""
        files = self._at(snapshot).files
        if where is not None:
            from deltalakedb.log.file_pruning import prune

            files = prune(files, where, snapshot)
        return files.select(list(columns)).to_reader()

    def actions(self, version: int) -> list[Action]:
        """Every action of one commit, in the order of the log."""
        log = list_log(self._store)
        if version not in log.commits:
            raise self._not_found(log, version)
        return self._commit(version)

    def history(self, limit: int | None = None) -> list[CommitRecord]:
        """Commits, newest first. Those older than the oldest readable version may be among them."""
        log = list_log(self._store)
        latest = self._load(log, log.last)
        versions = range(log.last, log.oldest_commit - 1, -1)[:limit]
        return [self._record(log, version, latest) for version in versions]

    def version_range(self) -> tuple[int, int]:
        """The oldest version that can be read, and the newest."""
        log = list_log(self._store)
        return log.first, log.last

    def txn_version(self, app_id: str, snapshot: Snapshot) -> int | None:
        """How far an application has come."""
        txn = self._at(snapshot).state.txns.get(app_id)
        return txn.version if txn else None

    def domains(self, snapshot: Snapshot) -> dict[str, DomainMetadata]:
        """Live metadata domains."""
        return dict(self._at(snapshot).state.domains)

    # --- versions -------------------------------------------------------------------------------

    def _at(self, snapshot: Snapshot) -> _Version:
        known = self._versions.get(snapshot.version)
        return known or self._load(list_log(self._store), snapshot.version)

    def _load(self, log: LogListing, version: int) -> _Version:
        if not log.first <= version <= log.last:
            raise self._not_found(log, version)
        if version not in self._versions:
            while len(self._versions) >= _KEPT:
                del self._versions[next(iter(self._versions))]
            self._versions[version] = self._read_version(log, version)
        return self._versions[version]

    def _read_version(self, log: LogListing, version: int) -> _Version:
        import pyarrow as pa

        from deltalakedb.log.checkpoint_files import files_table, read_checkpoint

        segment, base, old, origin = log.segment(version), None, None, None
        if segment.checkpoint is not None:
            content = read_checkpoint(self._store, segment.checkpoint)
            base, old = content.state, content.files
            origin = None if segment.commits else segment.checkpoint.files[0].path
        commits = ((v, self._commit(v)) for v in segment.commits)
        with blaming(self.location, version, origin):
            state = replay(commits, base, root=self.location)
            protocol, metadata = state.complete(self.location)
            validate_protocol(protocol)
            parse_schema(metadata.schema_string)
            timed_since = _timed_since(protocol, metadata)
        check_read(protocol, level="log", table=self.location)
        files = files_table(state.files.values())
        if old is not None:
            changed = state.files.keys() | state.tombstones.keys()
            files = pa.concat_tables([_without(old, changed, self.location), files])
        return _Version(protocol, metadata, state, files, timed_since)

    def _not_found(self, log: LogListing, version: int) -> VersionNotFound:
        return VersionNotFound(
            f"{self.location} has no version {version}: versions {log.first} to {log.last} exist",
            table=self.location,
            version=version,
            timestamp=None,
            earliest=log.first,
            latest=log.last,
        )

    # --- commits --------------------------------------------------------------------------------

    def _commit(self, version: int) -> list[Action]:
        with blaming(self.location, version):
            data = self._store.get(commit_path(version))
            if not data.strip():
                raise CorruptLog("it is empty")
            return decode_commit(data)

    def _commit_info(self, version: int) -> Mapping[str, Any]:
        """Provenance of a commit, without reading the rest of it; empty if it has none."""
        with blaming(self.location, version):
            data = self._store.get(commit_path(version))
            for number, line in enumerate(data.split(b"\n"), start=1):
                if b'"commitInfo"' in line[:32]:
                    action = decode_line(line, number=number)
                    if isinstance(action, CommitInfo):
                        return action.as_dict()
        return {}

    def _record(self, log: LogListing, version: int, latest: _Version) -> CommitRecord:
        info = self._commit_info(version)
        parameters = info.get("operationParameters")
        return CommitRecord(
            table=self.location,
            version=version,
            timestamp=self._timestamp(log, version, latest, info),
            operation=info.get("operation"),
            parameters=parameters if isinstance(parameters, dict) else {},
            commit_info=info,
            transaction_id=info.get("txnId"),
            committer=info.get("userName"),
            message=info.get("userMetadata"),
            read_version=info.get("readVersion"),
            isolation_level=info.get("isolationLevel"),
            is_blind_append=info.get("isBlindAppend"),
        )

    # --- times ----------------------------------------------------------------------------------

    def _timestamp(
        self,
        log: LogListing,
        version: int,
        found: _Version,
        info: Mapping[str, Any] | None = None,
    ) -> int:
        """When a version was committed, by the rules of that version or of a later one."""
        # A checkpoint does not keep the commit's time: without its commit only the file has one.
        if (
            found.timed_since is None
            or version < found.timed_since[0]
            or version not in log.commits
        ):
            return log.times[version]
        value = (self._commit_info(version) if info is None else info).get("inCommitTimestamp")
        if not isinstance(value, int):
            reason = "no inCommitTimestamp in commitInfo, though the table's properties ask for it"
            raise corrupt(self.location, version, commit_path(version), reason)
        return value

    def _version_at(self, log: LogListing, moment: int) -> int:
        """The last version at or before a moment.

        In-commit timestamps count from the version that switched them on; file times before it.
        """
        latest = self._load(log, log.last)

        def time(version: int) -> int:
            return self._timestamp(log, version, latest)

        first, last = log.first, log.last
        if latest.timed_since is not None:
            enabled, since = latest.timed_since
            first, last = (max(first, enabled), last) if moment >= since else (first, enabled - 1)
        count = bisect_right(range(first, last + 1), moment, key=time)
        if count:
            return first + count - 1
        oldest, newest = time(log.first), time(log.last)
        raise VersionNotFound(
            f"{self.location} has no version at {iso(moment)}: versions {log.first} to {log.last}"
            f" exist, committed {iso(oldest)} to {iso(newest)}",
            table=self.location,
            version=None,
            timestamp=moment,
            earliest=log.first,
            latest=log.last,
            earliest_timestamp=oldest,
            latest_timestamp=newest,
        )


def _timed_since(protocol: Protocol, metadata: Metadata) -> tuple[int, int] | None:
    def given(name: str) -> str:
        return found.get(name, found.get(f"{name}-preview", ""))

    found = metadata.configuration
    asked = given("delta.enableInCommitTimestamps").lower() == "true"
    if not asked or not supports(protocol, "inCommitTimestamp"):
        return None
    version = given("delta.inCommitTimestampEnablementVersion") or "0"
    moment = given("delta.inCommitTimestampEnablementTimestamp") or "0"
    try:
        return int(version), int(moment)
    except ValueError as error:
        text = f"in-commit timestamps since version {version!r}, time {moment!r}: not numbers"
        raise CorruptLog(text) from error


def _total(files: pa.Table, column: str) -> int:
    import pyarrow.compute as pc

    return pc.sum(files[column]).as_py() or 0


def _num_records(files: pa.Table) -> int | None:
    """Rows that are not deleted, if every file tells how many it has."""
    if files["num_records"].null_count:
        return None
    return _total(files, "num_records") - _total(files, "dv_cardinality")


def _without(files: pa.Table, keys: Collection[FileKey], root: str) -> pa.Table:
    """The files that later commits did not touch."""
    import pyarrow as pa

    if not keys:
        return files
    parts = files.select(["path", "dv_storage_type", "dv_path", "dv_offset"]).to_pydict()
    rows = zip(*parts.values(), strict=True)
    kept = ((canonical(path, root), _dv_id(*dv)) not in keys for path, *dv in rows)
    return files.filter(pa.array(kept, pa.bool_()))


def _dv_id(storage_type: str | None, path: str | None, offset: int | None) -> str:
    if storage_type is None:
        return ""
    return f"{storage_type}{path}" + ("" if offset is None else f"@{offset}")
