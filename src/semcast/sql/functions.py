"""Time and chance as part of an action: functions that give the same at every server.

`date('now')`, `CURRENT_TIMESTAMP` and `random()` are replaced. They read the stamp and the seed that the
action carries. What they compute from other arguments is left to SQLite: a second connection in memory,
which still has its own functions, answers.
"""

import random
import sqlite3
from typing import Final

from semcast.sql.actions import Value

NAMES: Final = ("date", "time", "datetime", "julianday", "unixepoch", "strftime")
"""Functions whose arguments may say 'now'; of `strftime` and none else the first is a format."""

CURRENT: Final = {"current_timestamp": "datetime", "current_date": "date", "current_time": "time"}
LOCAL: Final = ("localtime", "utc")
MAX_BLOB: Final = 1 << 24


class Moment:
    """The time and the randomness of the action that is being applied.

    Attributes:
        stamp_ms: milliseconds since 1970.
        seed: what its random numbers are drawn from.
        why: why a function refused the last call.
    """

    def __init__(self) -> None:
        self.stamp_ms = 0
        self.seed = 0
        self.why = ""
        self._random: random.Random | None = None
        self._plain = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)

    def close(self) -> None:
        """Give back what the functions need."""
        self._plain.close()

    def set(self, stamp_ms: int, seed: int) -> None:
        """An action begins."""
        self.stamp_ms, self.seed, self._random = stamp_ms, seed, None

    def install(self, connection: sqlite3.Connection) -> None:
        """Replace the functions of a connection."""
        for name in NAMES:
            connection.create_function(name, -1, self._timer(name))
        for name, plain in CURRENT.items():
            connection.create_function(name, 0, self._timer(plain))
        connection.create_function("random", 0, self._integer)
        connection.create_function("randomblob", 1, self._blob)

    def _timer(self, name: str) -> "_Timer":
        return _Timer(self, name)

    def now(self) -> str:
        """The stamp, as SQLite writes it."""
        row = self._plain.execute(
            "SELECT strftime('%Y-%m-%d %H:%M:', ?1, 'unixepoch') || printf('%06.3f', (?2 % 60000) / 1000.0)",
            (self.stamp_ms // 1000, self.stamp_ms),
        ).fetchone()
        return str(row[0])

    def plain(self, name: str, arguments: tuple[Value, ...]) -> Value:
        """What SQLite's own function gives."""
        marks = ",".join("?" * len(arguments))
        row = self._plain.execute(f"SELECT {name}({marks})", arguments).fetchone()
        value: Value = row[0]
        return value

    def _drawn(self) -> random.Random:
        if self._random is None:
            self._random = random.Random(self.seed)
        return self._random

    def _integer(self) -> int:
        return self._drawn().getrandbits(64) - (1 << 63)

    def _blob(self, size: Value) -> bytes:
        count = int(size) if isinstance(size, int | float) else 1
        return self._drawn().randbytes(min(max(count, 1), MAX_BLOB))


class _Timer:
    """One function of time, with the stamp of the action for 'now'."""

    def __init__(self, moment: Moment, name: str) -> None:
        self._moment = moment
        self._name = name
        self._value_at = 1 if name == "strftime" else 0

    def __call__(self, *arguments: Value) -> Value:
        at = self._value_at
        if len(arguments) <= at:
            arguments = (*arguments, *(("now",) if len(arguments) == at else ()))
        if any(isinstance(each, str) and each.strip().lower() in LOCAL for each in arguments[at + 1 :]):
            self._moment.why = "refused: 'localtime' and 'utc' depend on the time zone of one server"
            raise ValueError(self._moment.why)
        value = arguments[at] if len(arguments) > at else None
        if isinstance(value, str) and value.lower() == "now":
            arguments = (*arguments[:at], self._moment.now(), *arguments[at + 1 :])
        return self._moment.plain(self._name, arguments)
