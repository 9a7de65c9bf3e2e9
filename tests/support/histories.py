"""Random histories of a catalog: transactions over two tables, with every kind of action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from hypothesis import strategies as st

from deltalakedb.model.actions import (
    Action,
    Add,
    Cdc,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    UnknownAction,
)
from support.actions import metadata, protocol, schema, stats

TABLES = ("one", "two")
APPS = ("app", "App", "雪'; --")
DOMAINS = ("d", "D", "my domain")
FEATURES = ("deletionVectors", "domainMetadata", "appendOnly")

Transaction: TypeAlias = Mapping[str, list[Action]]
"""The actions of one transaction by table; the first ones of a table create it."""

START = msgspec.structs.replace(
    protocol(*FEATURES), min_reader_version=3, reader_features=FEATURES[:1]
)
_COLUMNS = {"p": "string", "id": "long", "s": "string"}
_MORE_COLUMNS = ("date", "timestamp", "double", "decimal(5,2)", "boolean", "binary")

_partitions = st.sampled_from([None, "a", "b", "x y", "ä/%41"])
_texts = st.text("ab é\"'%", max_size=3)
_tags = st.none() | st.dictionaries(_texts, st.none() | _texts, max_size=2)
_extra = st.dictionaries(st.sampled_from(["new", "newer"]), st.integers(0, 9) | _texts, max_size=1)
_small = st.none() | st.integers(0, 1_000)
_bounds = st.tuples(st.integers(-9, 9), st.integers(-9, 9)).map(sorted).map(tuple)
_stats = st.none() | st.builds(
    lambda rows, bounds: stats(rows) if bounds is None else stats(rows, id=bounds),
    st.none() | st.integers(0, 1_000),
    st.none() | _bounds,
)


def _vectors(number: int) -> st.SearchStrategy[DeletionVector]:
    return st.builds(
        DeletionVector,
        storage_type=st.just("p"),
        path_or_inline_dv=st.just(f"file:///vectors/{number}.bin"),
        offset=st.none() | st.integers(0, 9),
        size_in_bytes=st.integers(1, 99),
        cardinality=st.integers(0, 9),
    )


def _adds(path: str, **fixed: Any) -> st.SearchStrategy[Add]:
    known = {
        "path": st.just(path),
        "partition_values": _partitions.map(lambda p: {"p": p}),
        "size": st.integers(0, 2**40),
        "modification_time": st.integers(0, 2**41),
        "data_change": st.booleans(),
        "stats": _stats,
        "tags": _tags,
        "base_row_id": _small,
        "default_row_commit_version": _small,
        "clustering_provider": st.none() | _texts,
        "extra": _extra,
    }
    return st.builds(Add, **(known | {name: st.just(value) for name, value in fixed.items()}))


def _removal(file: Add) -> st.SearchStrategy[Remove]:
    return st.builds(
        Remove,
        path=st.just(file.path),
        data_change=st.booleans(),
        deletion_timestamp=st.none() | st.integers(0, 2**41),
        extended_file_metadata=st.none() | st.booleans(),
        partition_values=st.sampled_from([None, file.partition_values]),
        size=st.sampled_from([None, file.size]),
        stats=st.sampled_from([None, file.stats]),
        tags=_tags,
        deletion_vector=st.just(file.deletion_vector),
        base_row_id=_small,
        extra=_extra,
    )


class _Table:
    """What a table has become so far, and what may happen to it next."""

    def __init__(self) -> None:
        self.metadata = metadata(schema(**_COLUMNS))
        self.protocol = START
        self._files: dict[str, Add] = {}
        self._number = 0

    def first(self, draw: st.DrawFn) -> list[Action]:
        return [self.protocol, self.metadata, *self._new_files(draw)]

    def next(self, draw: st.DrawFn) -> list[Action]:
        moves = {
            "new files": self._new_files,
            "changed files": self._changed_files,
            "metadata": self._new_metadata,
            "protocol": self._new_protocol,
            "txns": self._txns,
            "domains": self._domains,
            "rest": self._rest,
        }
        usual = st.sampled_from(["changed files", "new files"])
        chosen = draw(st.sets(usual | st.sampled_from(sorted(moves)), min_size=1, max_size=3))
        # Files change before new ones come: a file is added or removed once in a commit.
        made = [action for name in sorted(chosen) for action in moves[name](draw)]
        return made or self._txns(draw)

    def _fresh(self, pattern: str) -> str:
        self._number += 1
        return pattern.format(self._number)

    def _new_files(self, draw: st.DrawFn) -> list[Action]:
        patterns = ("f{}", "p=a/f{}", "p=x%20y/f{}", "p=%25C3/f{}", "ä{}", "s3://b/{}")
        made = []
        for pattern in draw(st.lists(st.sampled_from(patterns), max_size=3)):
            path = self._fresh(pattern)
            dv = draw(st.none() | _vectors(self._number))
            made.append(draw(_adds(path, deletion_vector=dv)))
        self._files |= {file.path: file for file in made}
        return list(made)

    def _changed_files(self, draw: st.DrawFn) -> list[Action]:
        if not self._files:
            return []
        made: list[Action] = []
        paths = st.lists(st.sampled_from(sorted(self._files)), unique=True, max_size=3)
        for path in draw(paths):
            old = self._files.pop(path)
            change = draw(st.sampled_from(["remove", "add again", "vector"]))
            if change == "add again":
                new = draw(_adds(path, deletion_vector=old.deletion_vector))
            else:
                made.append(draw(_removal(old)))
                if change == "remove":
                    continue
                self._number += 1
                new = draw(_adds(path, deletion_vector=draw(_vectors(self._number))))
            self._files[path] = new
            made.append(new)
        return made

    def _new_metadata(self, draw: st.DrawFn) -> list[Action]:
        known = msgspec.json.decode(self.metadata.schema_string)["fields"]
        columns = {field["name"]: field["type"] for field in known}
        if draw(st.booleans()):
            columns[self._fresh("c{}")] = draw(st.sampled_from(_MORE_COLUMNS))
        self.metadata = Metadata(
            id=self.metadata.id,
            schema_string=metadata(schema(**columns)).schema_string,
            partition_columns=("p",),
            configuration=draw(st.dictionaries(_texts.filter(bool), _texts, max_size=2)),
            name=draw(st.none() | _texts),
            description=draw(st.none() | _texts),
            created_time=draw(_small),
        )
        return [self.metadata]

    def _new_protocol(self, draw: st.DrawFn) -> list[Action]:
        more = draw(st.sampled_from(["vacuumProtocolCheck", "changeDataFeed", "invariants"]))
        listed = dict.fromkeys((*(self.protocol.writer_features or ()), more))
        readers = tuple(f for f in listed if f in ("deletionVectors", "vacuumProtocolCheck"))
        self.protocol = Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=readers,
            writer_features=tuple(listed),
        )
        return [self.protocol]

    def _txns(self, draw: st.DrawFn) -> list[Action]:
        apps = draw(st.lists(st.sampled_from(APPS), unique=True, min_size=1))
        number = st.integers(0, 2**40)
        return [Txn(app_id=app, version=draw(number), last_updated=draw(_small)) for app in apps]

    def _domains(self, draw: st.DrawFn) -> list[Action]:
        names = draw(st.lists(st.sampled_from(DOMAINS), unique=True, min_size=1))
        return [
            DomainMetadata(domain=name, configuration=draw(_texts), removed=draw(st.booleans()))
            for name in names
        ]

    def _rest(self, draw: st.DrawFn) -> list[Action]:
        cdc = Cdc(path=self._fresh("_change_data/c{}"), partition_values={"p": "a"}, size=1)
        unknown = UnknownAction("fromTheFuture", '{"a": [1,  2]}')
        return draw(st.sampled_from([[cdc], [unknown], [cdc, unknown]]))


@st.composite
def histories(draw: st.DrawFn, max_size: int = 8) -> list[Transaction]:
    """Transactions in order. The second table may come later than the first, or not at all."""
    tables: dict[str, _Table] = {}
    made: list[Transaction] = []
    for _ in range(draw(st.integers(1, max_size))):
        step: dict[str, list[Action]] = {}
        for name in TABLES:
            must = not made if name == TABLES[0] else not step
            if name in tables and (draw(st.booleans()) or must):
                step[name] = tables[name].next(draw)
            elif name not in tables and (draw(st.booleans()) or must):
                tables[name] = _Table()
                step[name] = tables[name].first(draw)
        made.append(step)
    return made
