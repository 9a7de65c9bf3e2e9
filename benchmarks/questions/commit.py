"""One-file commits, one after the other (time for one of 300)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks import synthetic
from benchmarks.measure import Side, measure
from benchmarks.report import Line

if TYPE_CHECKING:
    from benchmarks.lab import Lab

GOALS = {"sqlite": 10, "duckdb": 3, "postgres": 5}


def ours(catalog: str, location: str, warm_up: int, commits: int) -> Callable[[], object]:
    import deltalakedb as dl

    opened = dl.Catalog(catalog)
    table, by = synthetic.TABLE, [synthetic.PARTITION]
    opened.create_table(table, synthetic.SCHEMA, location=location, partition_by=by)
    count = warm_up + commits
    adds = synthetic.adds(0, count, count)

    def commit(number: int) -> None:
        with opened.begin() as tx:
            tx.stage_table(table, [adds[number]])

    for number in range(warm_up):
        commit(number)

    def act() -> object:
        for number in range(warm_up, count):
            commit(number)
        return lambda: opened.table(table).snapshot.num_files

    return act


def delta_rs(location: str, warm_up: int, commits: int) -> Callable[[], object]:
    """As it comes, checkpoints included."""
    import deltalake
    from deltalake.transaction import AddAction

    by = [synthetic.PARTITION]
    schema = deltalake.Schema.from_arrow(synthetic.SCHEMA)
    opened = deltalake.DeltaTable.create(location, schema, partition_by=by)
    count = warm_up + commits
    adds = [AddAction(**synthetic.fields(number, count)) for number in range(count)]

    def commit(number: int) -> None:
        opened.create_write_transaction([adds[number]], "append", schema, by)

    for number in range(warm_up):
        commit(number)

    def act() -> object:
        for number in range(warm_up, count):
            commit(number)
        return lambda: len(deltalake.DeltaTable(location).file_uris())

    return act


def ask(lab: Lab) -> list[Line]:
    """Every round on a new table."""
    sizes = lab.sizes
    much = {"warm_up": sizes.warm_up, "commits": sizes.commits}

    def on(engine: str) -> Callable[[], Side]:
        def side() -> Side:
            args = {"catalog": lab.catalog(engine), "location": lab.folder()}
            return Side(ours, {**args, **much}, each=sizes.commits)

        return side

    def peer() -> Side:
        return Side(delta_rs, {"location": lab.folder(), **much}, each=sizes.commits)

    found = measure(
        {**{engine: on(engine) for engine in lab.engines}, "delta-rs": peer}, sizes.rounds
    )
    return [
        Line(
            engine,
            found[engine],
            found["delta-rs"],
            GOALS[engine],
            note=f"{1 / found[engine].median:,.0f} commits/s",
        )
        for engine in lab.engines
    ]
