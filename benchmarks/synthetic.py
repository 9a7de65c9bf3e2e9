"""A table of files that need not exist: realistic adds, and loading them into a catalog.

Files lie in the order of `id` (clustered), a thousand days part them, and each holds a narrow
range of the two text columns, in no order: random `session` ids, and `customer` names that all
begin alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from deltalakedb.model.actions import Add

TABLE = "events"
PARTITION = "day"
SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("id", pa.int64()),
        ("session", pa.string()),
        ("customer", pa.string()),
        ("amount", pa.float64()),
    ]
)
DAYS = 1_000
ROWS = 1_000
_FIRST_DAY = date(2022, 1, 1)


def _scattered(number: int, prime: int) -> int:
    """Another 32-bit number for every 32-bit number."""
    return number * prime % 2**32


def day(number: int, count: int) -> str:
    """Partition of a file."""
    return str(_FIRST_DAY + timedelta(days=number * DAYS // count))


def session(number: int) -> str:
    """Beginning of the session ids in a file."""
    return f"{_scattered(number, 2654435761):08x}"


def customer(number: int) -> str:
    """The first customer in a file."""
    return f"customer-{_scattered(number, 40503):010d}"


def fields(number: int, count: int) -> dict[str, Any]:
    """An add by the names delta-rs gives its fields."""
    low, name, of_day = number * ROWS, session(number), day(number, count)
    last = f"customer-{_scattered(number, 40503) + 7:010d}"
    stats = (
        f'{{"numRecords":{ROWS},"minValues":{{"id":{low},"session":"{name}-07c1-4d2e",'
        f'"customer":"{customer(number)}","amount":{number % 97}.25}},'
        f'"maxValues":{{"id":{low + ROWS - 1},"session":"{name}-f3a9-8b10",'
        f'"customer":"{last}","amount":{number % 97 + 9000}.5}},'
        '"nullCount":{"id":0,"session":0,"customer":3,"amount":12}}'
    )
    return {
        "path": f"day={of_day}/part-{number % 200:05d}-{name}-{number:012x}.c000.snappy.parquet",
        "partition_values": {PARTITION: of_day},
        "size": 30_000_000 + number % 5_000_000,
        "modification_time": 1_700_000_000_000 + number,
        "data_change": True,
        "stats": stats,
    }


def adds(start: int, stop: int, count: int) -> list[Add]:
    """The adds of some of `count` files."""
    from deltalakedb.model.actions import Add

    return [Add(**fields(number, count)) for number in range(start, stop)]


def chunks(count: int, size: int) -> Iterator[range]:
    """0 to count in pieces."""
    for start in range(0, count, size):
        yield range(start, min(count, start + size))


def load(catalog: str, location: str, count: int, chunk: int) -> Callable[[], float]:
    """Commits all files, `chunk` at a time; the answer is the seconds the commits took."""
    import deltalakedb as dl

    opened = dl.Catalog(catalog)
    opened.create_table(TABLE, SCHEMA, location=location, partition_by=[PARTITION])

    def act() -> float:
        seconds = 0.0
        for piece in chunks(count, chunk):
            actions = adds(piece.start, piece.stop, count)
            start = time.perf_counter()
            with opened.begin() as tx:
                tx.stage_table(TABLE, actions)
            seconds += time.perf_counter() - start
        opened.close()
        return seconds

    return act


def copy(source: str, target: str) -> Callable[[], int]:
    """Copies every row of one catalog into another that is empty."""
    import deltalakedb as dl
    from deltalakedb.sql import tables

    given, taken = dl.Catalog(source), dl.Catalog(target)
    kept = [t for t in tables.ALL if t.name not in ("dl_schema_migrations", "dl_counters")]

    def act() -> int:
        with given.database.read() as old, taken.database.write() as new:
            for table in kept:
                names = [column.name for column in table.columns]
                booleans = [c.type == "boolean" for c in table.columns]
                found = [
                    tuple(
                        bool(value) if boolean and value is not None else value
                        for value, boolean in zip(row, booleans, strict=True)
                    )
                    for row in old.rows(f"SELECT {', '.join(names)} FROM {table.name}")
                ]
                new.insert(table, found)
        taken.close()
        return len(kept)

    return act
