"""Listing with a predicate loses no file with a matching row, and is the same on every engine."""

from __future__ import annotations

import itertools

import msgspec
import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

from deltalakedb.log.matching import file_matcher
from deltalakedb.model.arrow import arrow_schema
from deltalakedb.model.expr import evaluate, parse
from deltalakedb.model.partition import serialize
from deltalakedb.model.protocol import minimal
from deltalakedb.model.stats import stats_columns, to_json
from deltalakedb.model.stats_collect import Collector
from support.actions import add, metadata
from support.predicates import SCHEMA, VALUES, predicates, rows, type_name

PARTITIONED = {"i": "integer", "s": "string", "dec": "decimal(10,2)", "ts": "timestamp"}
names = itertools.count()


@st.composite
def files(draw, partition_by):
    """Rows of a file, equal in the partition columns; its partition values and statistics."""
    given_rows = draw(rows.filter(bool))
    values = {c: draw(st.none() | VALUES[type_name((c,))]) for c in partition_by}
    # An empty text is null in a partition value.
    table = [row | {c: v if v != "" else None for c, v in values.items()} for row in given_rows]
    columns = stats_columns(SCHEMA, partition_by, {})
    collector = Collector(columns)
    collector.add(pa.Table.from_pylist(table, arrow_schema(SCHEMA)))
    text = draw(st.sampled_from([None, "", "{}", "broken"]) | st.just(to_json(collector.finish())))
    kinds = {c: SCHEMA.field(c).type for c in partition_by}
    return table, {c: serialize(v, kinds[c]) for c, v in values.items()}, text


@st.composite
def tables(draw):
    partition_by = tuple(draw(st.sets(st.sampled_from(sorted(PARTITIONED)), max_size=2)))
    made = draw(st.lists(files(partition_by), min_size=1, max_size=6))
    return partition_by, [
        (table, add(f"f{n}", partition_values=values, stats=text))
        for n, (table, values, text) in enumerate(made)
    ]


@settings(max_examples=60)
@given(tables(), st.lists(predicates, min_size=1, max_size=4))
def test_pruning(logs, table, wheres):
    partition_by, content = table
    name = f"t{next(names)}"
    described = metadata(SCHEMA, partition_by)
    described = msgspec.structs.replace(described, id=name)
    adds = [action for _, action in content]
    for log in logs.values():
        log.create(name, actions=[minimal(described), described, *adds])
    snapshot = logs["sqlite"].snapshot(name)
    for where in wheres:
        bound = parse(where, SCHEMA)
        matching = {a.path for t, a in content if any(evaluate(bound, r) is True for r in t)}
        keeps = file_matcher(bound, snapshot)
        expected = {a.path for a in adds if keeps(a)}
        event("prunes" if len(expected) < len(adds) else "keeps all")
        assert matching <= expected
        for engine, log in logs.items():
            assert set(log.paths(name, where=bound)) == expected, (engine, str(bound))
