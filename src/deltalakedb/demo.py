"""The main job from nothing, on an embedded SQLite catalog: `python -m deltalakedb.demo`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import deltalakedb as dl
from deltalakedb.errors import ConcurrentModification
from deltalakedb.times import iso

CUSTOMERS = pa.table({"id": [1, 2, 3], "name": ["Ada", "Grace", "Edsger"]})
ORDERS = pa.table({"customer": [1, 2, 2], "amount": [40.0, 2.5, 99.9]})


def step(text: str) -> None:
    """Tell what comes next."""
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


def main(folder: Path) -> None:
    """Two tables, one transaction over both, a conflict, time travel, history."""
    catalog = dl.Catalog(f"deltasql://sqlite/{folder}/lake.db")
    step(f"A catalog in one SQLite file: {catalog.uri}")
    catalog.create_table("customers", CUSTOMERS.schema)
    catalog.create_table("orders", ORDERS.schema)
    print("tables:", ", ".join(catalog.list_tables()))

    step("One transaction over both tables: all of it becomes visible at once")
    with catalog.begin(message="first load") as tx:
        tx.write("customers", CUSTOMERS)
        tx.write("orders", ORDERS)
        print("outside, before the commit:", catalog.table("orders").count(), "orders")
    print("after the commit:", dict(tx.result.versions))
    print(catalog.table("orders").to_arrow(filter="amount > 10").to_pylist())

    step("An exception rolls everything back")
    try:
        with catalog.begin() as broken:
            broken.write("orders", ORDERS, mode="overwrite")
            raise RuntimeError("the second source is down")  # noqa: TRY301
    except RuntimeError as e:
        print(f"{e}: still", catalog.table("orders").count(), "orders")

    conflict(catalog)
    travel(catalog, tx.transaction_id)

    step("History, of every table in one place")
    for commit in catalog.transactions():
        print(f"{iso(commit.timestamp)}  {commit.table:<10} v{commit.version}  {commit.operation}")
    catalog.close()


def conflict(catalog: dl.Catalog) -> None:
    """Two writers replace the same rows; the second one is told, and tries again."""
    step("Two writers replace the same rows: the second one is told, and tries again")
    ours = catalog.begin()
    ours.write("orders", price(catalog, 1.1), mode="overwrite")
    with catalog.begin() as theirs:
        theirs.write("orders", price(catalog, 0.9), mode="overwrite")
    try:
        ours.commit()
    except ConcurrentModification as e:
        print(f"{type(e).__name__}: {e}")
        with catalog.begin() as again:
            again.write("orders", price(catalog, 1.1), mode="overwrite")
    print("resolved:", catalog.table("orders").to_arrow()["amount"].to_pylist())


def price(catalog: dl.Catalog, factor: float) -> pa.Table:
    """The orders as they are now, with other amounts."""
    orders = catalog.table("orders").to_arrow()
    amounts = [round(amount * factor, 2) for amount in orders["amount"].to_pylist()]
    return orders.set_column(1, "amount", pa.array(amounts))


def travel(catalog: dl.Catalog, transaction_id: str) -> None:
    """One table at a version, and all tables as of a transaction."""
    step("Time travel: one table at a version, or all tables as of a transaction")
    first = catalog.table("orders", version=1)
    print("orders at version 1:", first.to_arrow()["amount"].to_pylist())
    then = catalog.at(transaction_id=transaction_id)
    print("all tables as of the first load:", then.versions())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch))
