"""The steps migrations are made of, and the SQL each is on an engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from deltalakedb.sql.base import Dialect

_TYPE = re.compile(r"\b(BIGINT|BOOLEAN|SMALLINT|TEXT)\b")


def _spelled(sql: str, dialect: Dialect) -> str:
    return _TYPE.sub(lambda found: dialect.types[found[0].lower()], sql.strip())


@dataclass(frozen=True)
class CreateTable:
    """A table. `columns` is SQL; its types are BIGINT, BOOLEAN, SMALLINT and TEXT."""

    name: str
    columns: str
    key: str
    unique: tuple[str, ...] = ()
    clustered: bool = True
    """Rows lie in the order of the key, where an engine can do that. Not for wide rows."""

    per_file: bool = False
    """One or more rows for each file, so a key must earn its keep."""

    def render(self, dialect: Dialect) -> Iterator[str]:
        """The statements."""
        parts = [_spelled(self.columns, dialect)]
        if dialect.indexes or not self.per_file:
            parts.append(f"PRIMARY KEY ({self.key})")
            parts += [f"UNIQUE ({columns})" for columns in self.unique]
        tail = dialect.clustered if self.clustered else ""
        yield f"CREATE TABLE {self.name} ({', '.join(parts)}){tail}"


@dataclass(frozen=True)
class CreateIndex:
    """An index, left out where indexes do not pay."""

    name: str
    table: str
    columns: str
    unique: bool = False
    where: str = ""

    def render(self, dialect: Dialect) -> Iterator[str]:
        """The statements."""
        if dialect.indexes:
            unique = "UNIQUE " if self.unique else ""
            where = f" WHERE {self.where}" if self.where else ""
            yield f"CREATE {unique}INDEX {self.name} ON {self.table} ({self.columns}){where}"


@dataclass(frozen=True)
class CreateSequence:
    """A source of growing numbers, where the engine has them."""

    name: str

    def render(self, dialect: Dialect) -> Iterator[str]:
        """The statements."""
        if dialect.sequences:
            yield f"CREATE SEQUENCE {self.name}"


@dataclass(frozen=True)
class AddColumn:
    """A column more, null in the rows that are there."""

    table: str
    column: str

    def render(self, dialect: Dialect) -> Iterator[str]:
        """The statements."""
        yield f"ALTER TABLE {self.table} ADD COLUMN {_spelled(self.column, dialect)}"


@dataclass(frozen=True)
class Execute:
    """SQL that is the same everywhere."""

    sql: str

    def render(self, dialect: Dialect) -> Iterator[str]:
        """The statements."""
        yield self.sql.strip()


Step: TypeAlias = CreateTable | CreateIndex | CreateSequence | AddColumn | Execute


@dataclass(frozen=True)
class Migration:
    """One version of the schema: the steps that lead to it from the one before."""

    version: int
    name: str
    steps: tuple[Step, ...]

    def render(self, dialect: Dialect) -> list[str]:
        """Every statement, in order."""
        return [sql for step in self.steps for sql in step.render(dialect)]
