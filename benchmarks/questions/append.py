"""Appending 100 rows of Arrow, again and again (time for one append)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks import ducklake, rows
from benchmarks.measure import Side, measure
from benchmarks.report import Line

if TYPE_CHECKING:
    from benchmarks.lab import Lab

GOAL = 1


def ours(catalog: str, location: str, warm_up: int, appends: int, size: int):
    import deltalakedb as dl
    from deltalakedb.uri import parse

    opened = dl.Catalog(catalog)
    opened.create_table("orders", rows.SCHEMA, location=location)
    uri = parse(catalog).with_table("orders").render()
    data = rows.orders(0, size)
    held = dl.DeltaTable(uri)
    opened.close()

    def append(times: int) -> None:
        for _ in range(times):
            dl.write_deltalake(uri, data)

    append(warm_up)

    def act() -> object:
        append(appends)
        held.update_incremental()
        return held.count

    return act


def of_ducklake(lake: dict, inline_rows: int, warm_up: int, appends: int, size: int):
    connection = ducklake.connect(**lake, inline_rows=inline_rows)
    data = rows.orders(0, size)
    connection.register("data", data)
    connection.execute("CREATE TABLE lake.orders AS SELECT * FROM data LIMIT 0")

    def append(times: int) -> None:
        for _ in range(times):
            connection.execute("INSERT INTO lake.orders SELECT * FROM data")

    append(warm_up)

    def act() -> object:
        append(appends)
        return lambda: connection.execute("SELECT count(*) FROM lake.orders").fetchone()[0]

    return act


def ask(lab: Lab) -> list[Line]:
    """DuckLake writes files as we do; what it gains by keeping small rows inline is shown too."""
    sizes, lines = lab.sizes, []
    much = {"warm_up": sizes.warm_up, "appends": sizes.appends, "size": sizes.append_rows}

    def our_side(engine: str) -> Callable[[], Side]:
        def side() -> Side:
            args = {"catalog": lab.catalog(engine), "location": lab.folder()}
            return Side(ours, {**args, **much}, each=sizes.appends)

        return side

    def peer(engine: str, inline_rows: int) -> Callable[[], Side]:
        def side() -> Side:
            args = {"lake": lab.ducklake(engine), "inline_rows": inline_rows, **much}
            return Side(of_ducklake, args, each=sizes.appends)

        return side

    for engine in lab.engines:
        lacking = ducklake.missing(engine)
        theirs = "duckdb" if lacking else engine
        files, inline = f"DuckLake on {theirs}", f"DuckLake on {theirs}, inlined"
        sides = {engine: our_side(engine), files: peer(theirs, 0)}
        if sizes.extras:
            sides[inline] = peer(theirs, 10 * sizes.append_rows)
        found = measure(sides, sizes.rounds)
        lines.append(Line(engine, found[engine], found[files], GOAL, ducklake.note(lacking)))
        if sizes.extras:
            note = "the peer writes no file at all"
            lines.append(Line(engine, found[engine], found[inline], note=note))
    return lines
