"""What processes of the fault tests do. Everything in here can be sent to a process by name."""

from __future__ import annotations

import random
from collections import defaultdict
from multiprocessing.synchronize import Barrier, Event
from typing import Any

import pyarrow as pa

import deltalakedb as dl
from deltalakedb.errors import ConcurrentModification, TableAlreadyExists
from deltalakedb.model.actions import Add
from deltalakedb.times import system_clock
from support.actions import add, remove, stats

SCHEMA = pa.schema([("p", pa.string()), ("id", pa.int64()), ("s", pa.string())])
ACCOUNT = pa.schema([("amount", pa.int64())])


def open_catalog(uri: str, warehouse: str | None = None, **more: Any) -> dl.Catalog:
    """A catalog for tests: many writers wait for each other, and none of them for the disk."""
    config = dl.Config(
        warehouse=warehouse,
        sqlite_synchronous="normal",
        sqlite_busy_timeout_ms=120_000,
        retry_backoff_ms=1,
    )
    return dl.Catalog(uri, config=config, **more)


# --- many writers ---------------------------------------------------------------------------------


def append_many(uri: str, table: str, writer: int, count: int, start: Barrier) -> list[int]:
    """Append ready-made files one by one; the versions that came of it."""
    made = []
    with open_catalog(uri) as catalog:
        start.wait()
        for number in range(count):
            with catalog.transaction(pins={}) as tx:
                tx.stage_table(table, [file(f"w{writer}-{number}", number)])
            made.append(tx.result.versions[table])
    return made


def file(path: str, number: int) -> Add:
    """A ready-made file of one row."""
    return add(path, "a", size=1, stats=stats(1, id=(number, number)))


# --- transfers ------------------------------------------------------------------------------------


def transfer_many(uri: str, count: int, seed: int, start: Barrier) -> int:
    """Move amounts between two tables; how often it had to be tried again."""
    source, conflicts = random.Random(seed), 0
    with open_catalog(uri) as catalog:
        start.wait()
        done = 0
        while done < count:
            try:
                with catalog.begin() as tx:
                    left, right = (amount(tx.table(name)) for name in ("left", "right"))
                    moved = source.randint(-10, 10)
                    tx.write("left", accounts(left - moved), mode="overwrite")
                    tx.write("right", accounts(right + moved), mode="overwrite")
            except ConcurrentModification:
                conflicts += 1
            else:
                done += 1
    return conflicts


def accounts(value: int) -> pa.Table:
    """A table of one account."""
    return pa.table({"amount": [value]}, ACCOUNT)


def amount(table: dl.DeltaTable) -> int:
    """What is in the account."""
    (found,) = table.to_arrow()["amount"].to_pylist()
    return int(found)


def watch_sums(uri: str, stop: Event) -> dict[str, set[tuple[int, int, int]]]:
    """The sums of both tables, seen in every way there is, as (version, version, sum)."""
    seen: dict[str, set[tuple[int, int, int]]] = defaultdict(set)
    with open_catalog(uri) as catalog:
        last = False
        while not last:
            last = stop.is_set()
            tx = catalog.begin()
            seen["begin"].add(_sum(tx))
            tx.rollback()
            newest = catalog.transactions(1)[0].transaction_id
            seen["transaction"].add(_sum(catalog.at(transaction_id=newest)))
            seen["time"].add(_sum(catalog.at(timestamp=system_clock() - 1)))
    return dict(seen)


def _sum(source: Any) -> tuple[int, int, int]:
    left, right = source.table("left"), source.table("right")
    return left.version(), right.version(), amount(left) + amount(right)


# --- one commit that may not survive --------------------------------------------------------------

BULK = 60
"""More files than fit in single statements."""


def prepare(uri: str) -> None:
    """Two tables, and a file in each."""
    with open_catalog(uri, "file:///nowhere") as catalog:
        for name in ("grows", "changes"):
            catalog.create_table(name, SCHEMA, partition_by="p")
            with catalog.begin() as tx:
                tx.stage_table(name, [file("first", 0)])


def change_everything(uri: str, transaction_id: str) -> dl.CommitResult:
    """One transaction: a table grows a lot, one changes, one is new."""
    with open_catalog(uri, "file:///nowhere") as catalog:
        pins = {"grows": 1, "changes": 1}
        with catalog.transaction(transaction_id=transaction_id, pins=pins) as tx:
            tx.stage_table("grows", [file(f"new{n}", n) for n in range(BULK)])
            tx.stage_table("changes", [remove("first"), file("second", 1)])
            if "appears" not in catalog.list_tables():
                tx.create_table("appears", SCHEMA, partition_by="p")
            tx.stage_table("appears", [file("only", 1)])
        return tx.result


def change_one(uri: str, table: str) -> dl.CommitResult:
    """Append a file to a table."""
    with open_catalog(uri) as catalog:
        with catalog.begin() as tx:
            tx.stage_table(table, [file("one more", 1)])
        return tx.result


def create_table(uri: str, table: str, number: int) -> str:
    """Create a table; whether that was done, or had been done already."""
    with open_catalog(uri) as catalog:
        try:
            catalog.create_table(table, SCHEMA, location=f"file:///nowhere/{number}")
        except TableAlreadyExists:
            return "exists"
        return "created"


def open_only(uri: str) -> list[str]:
    """Open the catalog, which makes its schema if it is missing."""
    with open_catalog(uri) as catalog:
        return catalog.list_tables()


def write_rows(uri: str, warehouse: str, table: str, transaction_id: str) -> dl.CommitResult:
    """Write rows to files, and commit them."""
    with open_catalog(uri, warehouse) as catalog:
        with catalog.begin(transaction_id=transaction_id) as tx:
            tx.write(table, accounts(1))
        return tx.result


# --- standing still in the midst of a commit ------------------------------------------------------


def hold(uri: str, tables: list[str], inside: Event, release: Event) -> dl.CommitResult:
    """Commit to the tables, and stop on the way: locks taken, nothing committed."""

    def clock() -> int:
        inside.set()
        assert release.wait(60)
        return system_clock()

    with open_catalog(uri, clock=clock) as catalog:
        with catalog.transaction(pins={}) as tx:
            for table in tables:
                tx.stage_table(table, [file("held", 1)])
        return tx.result
