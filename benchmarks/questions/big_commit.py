"""One commit of 10,000 files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks import synthetic
from benchmarks.measure import Side, measure
from benchmarks.report import Line

if TYPE_CHECKING:
    from benchmarks.lab import Lab


def ours(catalog: str, location: str, files: int) -> Callable[[], object]:
    import deltalakedb as dl

    opened = dl.Catalog(catalog)
    table, by = synthetic.TABLE, [synthetic.PARTITION]
    opened.create_table(table, synthetic.SCHEMA, location=location, partition_by=by)
    adds = synthetic.adds(0, files, files)

    def act() -> object:
        with opened.begin() as tx:
            tx.stage_table(table, adds)
        return lambda: opened.table(table).snapshot.num_files

    return act


def delta_rs(location: str, files: int) -> Callable[[], object]:
    import deltalake
    from deltalake.transaction import AddAction

    by = [synthetic.PARTITION]
    schema = deltalake.Schema.from_arrow(synthetic.SCHEMA)
    opened = deltalake.DeltaTable.create(location, schema, partition_by=by)
    adds = [AddAction(**synthetic.fields(number, files)) for number in range(files)]

    def act() -> object:
        opened.create_write_transaction(adds, "append", schema, by)
        return lambda: len(deltalake.DeltaTable(location).file_uris())

    return act


def ask(lab: Lab) -> list[Line]:
    """Every round on a new table."""
    sizes = lab.sizes

    def on(engine: str) -> Callable[[], Side]:
        def side() -> Side:
            args = {"catalog": lab.catalog(engine), "location": lab.folder()}
            return Side(ours, {**args, "files": sizes.big_commit})

        return side

    def peer() -> Side:
        return Side(delta_rs, {"location": lab.folder(), "files": sizes.big_commit})

    found = measure(
        {**{engine: on(engine) for engine in lab.engines}, "delta-rs": peer}, sizes.rounds
    )
    return [
        Line(
            engine,
            found[engine],
            found["delta-rs"],
            note=f"{sizes.big_commit / found[engine].median:,.0f} files/s",
        )
        for engine in lab.engines
    ]
