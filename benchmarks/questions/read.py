"""Open, and read 10,000,000 rows into Arrow, whole and in part."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks import rows
from benchmarks.ducklake import load_extension
from benchmarks.measure import Side, measure, once
from benchmarks.ours import import_all
from benchmarks.progress import say
from benchmarks.report import Line

if TYPE_CHECKING:
    from benchmarks.lab import Lab

GOAL = 0.95
"""Not slower, but for noise."""


def write(catalog: str, location: str, count: int, each: int) -> Callable[[], int]:
    """The table, written by us, a file an append."""
    import deltalakedb as dl

    def act() -> int:
        opened = dl.Catalog(catalog)
        opened.create_table("orders", rows.SCHEMA, location=location)
        for start in range(0, count, each):
            with opened.begin() as tx:
                tx.write("orders", rows.orders(start, min(each, count - start)))
        return opened.table("orders").count()

    return act


def ours(uri: str, columns: list[str] | None, between: list[int] | None):
    import deltalakedb as dl

    import_all(uri)
    where = between and f"id >= {between[0]} AND id < {between[1]}"
    return lambda: dl.DeltaTable(uri).to_arrow(columns, where).num_rows


def delta_rs(folder: str, columns: list[str] | None, between: list[int] | None):
    """`filters` prunes files and filters rows; with 40 files that is its fastest way."""
    import deltalake
    import pyarrow.dataset
    import pyarrow.parquet  # noqa: F401

    where = between and [("id", ">=", between[0]), ("id", "<", between[1])]
    return lambda: (
        deltalake.DeltaTable(folder).to_pyarrow_table(columns=columns, filters=where).num_rows
    )


def duckdb_delta(folder: str, columns: list[str] | None, between: list[int] | None):
    import duckdb
    import pyarrow  # noqa: F401

    connection = duckdb.connect()
    load_extension(connection, "delta")
    sql = f"SELECT {', '.join(columns or ['*'])} FROM delta_scan('{folder}')"
    if between:
        sql += f" WHERE id >= {between[0]} AND id < {between[1]}"
    return lambda: connection.execute(sql).to_arrow_table().num_rows


def ask(lab: Lab) -> list[Line]:
    """The same Parquet files for all, on one catalog: the engine hardly matters here."""
    sizes = lab.sizes

    def make() -> dict[str, Any]:
        say(f"writing {sizes.rows:,} rows")
        args = {"catalog": lab.catalog("sqlite", "orders"), "location": lab.folder("orders")}
        much = {"count": sizes.rows, "each": sizes.rows_per_file}
        return {**args, "seconds": once(Side(write, {**args, **much}))["seconds"]}

    made = lab.remembered("orders", make)
    folder = lab.log(made["catalog"], "orders", [])
    uri = made["catalog"] + "?table=orders"
    middle = sizes.rows // 2 - sizes.rows // 400
    cases = {
        "whole": (None, None),
        "two columns": (["id", "price"], None),
        "0.5 % of the rows": (None, [middle, middle + sizes.rows // 200]),
        "two columns of 0.5 %": (["id", "price"], [middle, middle + sizes.rows // 200]),
    }
    lines = []
    if not sizes.extras:
        cases = {case: cases[case] for case in ("whole", "0.5 % of the rows")}
    for case, (columns, between) in cases.items():
        args = {"columns": columns, "between": between}
        found = measure(
            {
                "ours": Side(ours, {"uri": uri, **args}),
                "delta-rs": Side(delta_rs, {"folder": folder, **args}),
                "DuckDB delta_scan": Side(duckdb_delta, {"folder": folder, **args}),
            },
            sizes.rounds,
        )
        lines += [
            Line(case, found["ours"], found[name], GOAL)
            for name in ("delta-rs", "DuckDB delta_scan")
        ]
    return lines
