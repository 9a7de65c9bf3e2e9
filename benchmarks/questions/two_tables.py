"""One transaction that appends 100 rows to each of two tables (time for one transaction)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks import ducklake, rows
from benchmarks.measure import Side, measure
from benchmarks.report import Line

if TYPE_CHECKING:
    from benchmarks.lab import Lab

GOAL = 1
TABLES = ("orders", "returns")


def ours(catalog: str, folder: str, warm_up: int, commits: int, size: int):
    import deltalakedb as dl

    opened = dl.Catalog(catalog)
    for table in TABLES:
        opened.create_table(table, rows.SCHEMA, location=f"{folder}/{table}")
    data = rows.orders(0, size)

    def commit(times: int) -> None:
        for _ in range(times):
            with opened.begin() as tx:
                for table in TABLES:
                    tx.write(table, data)

    commit(warm_up)

    def act() -> object:
        commit(commits)
        return lambda: [opened.table(table).count() for table in TABLES]

    return act


def of_ducklake(lake: dict, warm_up: int, commits: int, size: int):
    connection = ducklake.connect(**lake, inline_rows=0)
    data = rows.orders(0, size)
    connection.register("data", data)
    for table in TABLES:
        connection.execute(f"CREATE TABLE lake.{table} AS SELECT * FROM data LIMIT 0")

    def commit(times: int) -> None:
        for _ in range(times):
            connection.execute("BEGIN")
            for table in TABLES:
                connection.execute(f"INSERT INTO lake.{table} SELECT * FROM data")
            connection.execute("COMMIT")

    commit(warm_up)

    def count(table: str) -> int:
        return connection.execute(f"SELECT count(*) FROM lake.{table}").fetchone()[0]

    def act() -> object:
        commit(commits)
        return lambda: [count(table) for table in TABLES]

    return act


def ask(lab: Lab) -> list[Line]:
    """On the same kind of catalog, where DuckLake can have it there."""
    sizes, lines = lab.sizes, []
    much = {"warm_up": sizes.warm_up, "commits": sizes.appends, "size": sizes.append_rows}

    def our_side(engine: str) -> Callable[[], Side]:
        def side() -> Side:
            args = {"catalog": lab.catalog(engine), "folder": lab.folder()}
            return Side(ours, {**args, **much}, each=sizes.appends)

        return side

    def peer(engine: str) -> Callable[[], Side]:
        def side() -> Side:
            args = {"lake": lab.ducklake(engine), **much}
            return Side(of_ducklake, args, each=sizes.appends)

        return side

    for engine in lab.engines:
        lacking = ducklake.missing(engine)
        theirs = "duckdb" if lacking else engine
        name = f"DuckLake on {theirs}"
        found = measure({engine: our_side(engine), name: peer(theirs)}, sizes.rounds)
        lines.append(Line(engine, found[engine], found[name], GOAL, ducklake.note(lacking)))
    return lines
