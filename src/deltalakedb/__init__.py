"""deltalakedb: your Delta tables, with a database for a brain.

Names load when they are first used, so that importing the package stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deltalakedb.version import __version__

if TYPE_CHECKING:
    from deltalakedb import errors
    from deltalakedb.config import Config
    from deltalakedb.errors import TxnLogError
    from deltalakedb.log.base import (
        CommitRecord,
        CommitResult,
        Snapshot,
        TxnLogReader,
        TxnLogWriter,
    )
    from deltalakedb.log.files import FileTxnLogReader
    from deltalakedb.log.sql_reader import (
        DuckDbReader,
        PostgresReader,
        SqliteReader,
        SqlTxnLogReader,
    )
    from deltalakedb.log.sql_writer import SqlTxnLogWriter
    from deltalakedb.table.catalog import Catalog
    from deltalakedb.table.open import begin, write_deltalake
    from deltalakedb.table.table import DeltaTable
    from deltalakedb.table.transaction import Transaction

_HOMES = {
    "Catalog": "deltalakedb.table.catalog",
    "CommitRecord": "deltalakedb.log.base",
    "CommitResult": "deltalakedb.log.base",
    "Config": "deltalakedb.config",
    "DeltaTable": "deltalakedb.table.table",
    "DuckDbReader": "deltalakedb.log.sql_reader",
    "FileTxnLogReader": "deltalakedb.log.files",
    "PostgresReader": "deltalakedb.log.sql_reader",
    "Snapshot": "deltalakedb.log.base",
    "SqlTxnLogReader": "deltalakedb.log.sql_reader",
    "SqlTxnLogWriter": "deltalakedb.log.sql_writer",
    "SqliteReader": "deltalakedb.log.sql_reader",
    "Transaction": "deltalakedb.table.transaction",
    "TxnLogError": "deltalakedb.errors",
    "TxnLogReader": "deltalakedb.log.base",
    "TxnLogWriter": "deltalakedb.log.base",
    "begin": "deltalakedb.table.open",
    "errors": "deltalakedb.errors",
    "write_deltalake": "deltalakedb.table.open",
}

__all__ = [
    "Catalog",
    "CommitRecord",
    "CommitResult",
    "Config",
    "DeltaTable",
    "DuckDbReader",
    "FileTxnLogReader",
    "PostgresReader",
    "Snapshot",
    "SqlTxnLogReader",
    "SqlTxnLogWriter",
    "SqliteReader",
    "Transaction",
    "TxnLogError",
    "TxnLogReader",
    "TxnLogWriter",
    "__version__",
    "begin",
    "errors",
    "write_deltalake",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'deltalakedb' has no attribute {name!r}")
    module = import_module(home)
    return module if name == "errors" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
