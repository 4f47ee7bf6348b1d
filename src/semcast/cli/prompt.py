"""The prompt of `semcast sql`: shows whether there is a primary, what has no place yet, and who is there."""

import asyncio
import json
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from semcast.cli.live import plain
from semcast.cli.sql import once
from semcast.engine import RequestError
from semcast.engine.levels import READS, UPDATES
from semcast.group.errors import GroupError
from semcast.sql.refusals import writes

if TYPE_CHECKING:
    from semcast.server.client import Client

HELP = """\
SQL ends with a semicolon. Besides:
.level LEVEL   when to answer: queries linear, session, weak, dirty; updates strict, queued, timestamped,
               commutative
.status        how the server is
.tables        what there is
.quit"""


class Prompt:
    """Reads statements until the end.

    Args:
        db: whom to ask.
        level: for what it is for; the other kind has its default.
        as_json: print JSON.
    """

    def __init__(self, db: "Client", level: str | None, *, as_json: bool) -> None:
        self._db = db
        self._reads = level if level in READS else "session"
        self._updates = level if level in UPDATES else "strict"
        self._json = as_json
        self._worst = 0

    async def run(self, source: TextIO) -> int:
        """Until the end of the input; what is no terminal is not prompted, and stops at the first error."""
        terminal = source.isatty()
        if terminal:
            with suppress(ImportError):
                import readline  # noqa: F401, PLC0415 (history and editing, where there is one)
            print("SQL ends with a semicolon; .help for more")
        pending = ""
        while True:
            line = await self._line(source, pending, terminal=terminal)
            if line is None:
                break
            if not pending and line.strip().startswith("."):
                if not await self._command(line.strip()):
                    return self._worst
                continue
            pending += line
            if sqlite3.complete_statement(pending):
                statement, pending = pending.strip(), ""
                if await self._statement(statement) and not terminal:
                    return self._worst
        if pending.strip():
            await self._statement(pending.strip())
        return self._worst

    async def _line(self, source: TextIO, pending: str, *, terminal: bool) -> str | None:
        if not terminal:
            return await asyncio.to_thread(source.readline) or None
        text = "   ...> " if pending else await self._text()
        try:
            return await asyncio.to_thread(input, text) + "\n"
        except EOFError:
            print()
            return None

    async def _text(self) -> str:
        """How the server is, before each statement."""
        try:
            status = await self._db.status()
        except (GroupError, TimeoutError):
            return f"{plain(self._db.name)} (no server)> "
        return prompt_text(self._db.name, dict(status))

    async def _statement(self, sql: str) -> int:
        level = self._updates if writes(sql) else self._reads
        try:
            code = await once(self._db, sql, level, as_json=self._json)
        except (GroupError, TimeoutError) as error:
            print(json.dumps({"error": str(error)}) if self._json else f"error: {plain(str(error))}")
            code = 2 if isinstance(error, RequestError) else 3
        self._worst = max(self._worst, code)
        return code

    async def _command(self, words: str) -> bool:
        """One of the prompt's own; False to end."""
        name, _, rest = words.partition(" ")
        if name in (".quit", ".exit"):
            return False
        if name == ".level":
            self._set_level(rest.strip())
        elif name == ".status":
            for key, value in (await self._db.status()).items():
                print(f"{key:10} {plain(str(value))}")
        elif name == ".tables":
            await self._statement("select name from sqlite_schema where type = 'table' order by name")
        else:
            print(HELP)
        return True

    def _set_level(self, level: str) -> None:
        if level in READS:
            self._reads = level
        elif level in UPDATES:
            self._updates = level
        elif level:
            print(f"there is no level {plain(level)}")
        print(f"queries {self._reads}, updates {self._updates}")


def prompt_text(database: str, status: dict[str, object]) -> str:
    """What stands before the cursor.

    >>> prompt_text("bank", {"server": "a/1f", "primary": True, "reds": 0, "view": ["a", "b"]})
    'bank@a primary of a,b> '
    >>> prompt_text("bank", {"server": "c/2e", "primary": False, "reds": 3, "view": ["c"]})
    'bank@c NO PRIMARY, 3 red, with c> '
    """
    server = str(status.get("server", "?")).rpartition("/")[0] or str(status.get("server", "?"))
    view = status.get("view")
    names = ",".join(map(str, view)) if isinstance(view, list) else "?"
    reds = f", {status['reds']} red" if status.get("reds") else ""
    how = f"primary of {names}{reds}" if status.get("primary") else f"NO PRIMARY{reds}, with {names}"
    return plain(f"{database}@{server} {how}> ")
