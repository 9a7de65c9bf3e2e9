"""Rows for the questions that move rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("customer", pa.string()),
        ("sku", pa.string()),
        ("quantity", pa.int32()),
        ("price", pa.float64()),
        ("discount", pa.float64()),
        ("comment", pa.string()),
    ]
)


def orders(start: int, count: int) -> pa.Table:
    """Orders numbered from `start`, always the same ones."""
    made = np.random.default_rng(start)
    skus = pa.array([f"SKU-{n:05d}" for n in range(2_000)])
    words = pa.array([f"left at the door of house {n}, paid" for n in range(50_000)])
    names = pa.array([f"customer-{n:07d}" for n in range(20_000)])
    numbers = np.arange(start, start + count)
    discount = pa.array(made.random(count), mask=made.random(count) < 0.7)
    columns = [
        pa.array(numbers),
        pa.array(1_700_000_000_000_000 + numbers * 250_000).cast(SCHEMA.field("at").type),
        names.take(pa.array(made.integers(0, len(names), count))),
        skus.take(pa.array(made.integers(0, len(skus), count))),
        pa.array(made.integers(1, 50, count).astype("int32")),
        pa.array(made.integers(100, 100_000, count) / 100),
        discount,
        words.take(pa.array(made.integers(0, len(words), count))),
    ]
    return pa.table(columns, SCHEMA)
