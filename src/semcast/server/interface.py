"""What the server needs of a database: the same calls that a program has that runs one in its own process."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from semcast.engine.levels import ReadLevel, UpdateLevel
from semcast.sql.actions import Expectation, Row, Statement, Value


class UpdateOutcome(Protocol):
    """What an update did."""

    @property
    def position(self) -> int:
        """Its place in the order of all."""

    @property
    def changes(self) -> int:
        """Rows that were inserted, updated or deleted."""

    @property
    def last_rowid(self) -> int:
        """The row that the last insert made; 0 where there was none."""

    @property
    def columns(self) -> Sequence[str]:
        """Of the rows."""

    @property
    def rows(self) -> Sequence[Row]:
        """What the last statement that gave rows gave."""


@runtime_checkable
class Receipt(Protocol):
    """An update that will be done exactly once; its place is not known yet."""

    async def ordered(self) -> UpdateOutcome:
        """Wait until it is."""


class QueryAnswer(Protocol):
    """What a query gave."""

    @property
    def position(self) -> int:
        """All actions up to this place in the order are in it."""

    @property
    def seen(self) -> str:
        """What shows besides and has no place yet: goes with what is asked because of it."""

    @property
    def columns(self) -> Sequence[str]:
        """Of the rows."""

    @property
    def rows(self) -> Sequence[Row]:
        """In the order of the query."""


class Database(Protocol):
    """One server of a replicated database. Whatever it raises says in a sentence why."""

    @property
    def name(self) -> str:
        """Of the database."""

    async def transaction(
        self,
        statements: Sequence[Statement],
        *,
        expect: Sequence[Expectation] = (),
        level: UpdateLevel = "strict",
        client: str = "",
        number: int = 0,
        floor: int = 0,
        seen: str = "",
        timeout: float | None = None,
    ) -> UpdateOutcome | Receipt:
        """Do statements together or not at all; a receipt where that is answered before it is done."""

    async def query(
        self,
        sql: str,
        params: Sequence[Value] = (),
        *,
        level: ReadLevel = "session",
        position: int = 0,
        timeout: float | None = None,
    ) -> QueryAnswer:
        """Answer a query; `position` is the last that the client was told."""

    def status(self) -> Mapping[str, object]:
        """How this server is."""

    async def add_server(self, server: str, *, weight: int = 1, timeout: float | None = None) -> int:
        """Let a server in that waits for it."""

    async def remove_server(self, server: str, *, timeout: float | None = None) -> int:
        """Put a server out for good."""

    async def weigh_server(self, server: str, weight: int, *, timeout: float | None = None) -> int:
        """Let a server count for so much in a quorum."""

    async def mark(self, *, timeout: float | None = None) -> int:
        """Have every server make digests of its tables at one place in the order; returns that place."""

    async def digests(self, position: int, *, timeout: float | None = None) -> Mapping[str, str]:
        """Of each table here, at a place that was marked."""

    async def backup(self, target: Path) -> int:
        """Write all that is green into a new SQLite file; returns its position."""

    async def restore(
        self, source: Path, *, replace: bool = False, timeout: float | None = None
    ) -> UpdateOutcome:
        """Put the tables of a SQLite file in the place of all that are here, at every server."""
