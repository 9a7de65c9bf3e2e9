"""The databases behind a catalog: one seam, three engines."""

from deltalakedb.sql.base import Column, Database, Dialect, Params, Row, Session, Table
from deltalakedb.sql.engines import connect

__all__ = ["Column", "Database", "Dialect", "Params", "Row", "Session", "Table", "connect"]
