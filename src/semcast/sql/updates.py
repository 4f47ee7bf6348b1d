"""Updates that converge in any order (Amir 1995, section 7.4): timestamped and commutative ones.

Both are statements like any other. They are answered before their order is known, because the order does not
matter, and they are applied to the green tables at their place in it, like everything else.
"""

from collections.abc import Mapping

from semcast.sql.actions import Statement, Value
from semcast.sql.errors import StatementError
from semcast.sql.names import quoted


def put(
    table: str, key: Mapping[str, Value], values: Mapping[str, Value], at: int, *, column: str = "at"
) -> Statement:
    """Write a row unless a later one is there.

    Args:
        table: must have a unique index on the columns of the key.
        key: which row.
        values: the other columns.
        at: when this was so; the highest wins, and of equal ones the first in the order.
        column: where the table keeps `at`.

    >>> put("taxis", {"id": 7}, {"street": "High St"}, at=5).sql
    'INSERT INTO "taxis" ("id", "street", "at") VALUES (?, ?, ?) ON CONFLICT ("id") \
DO UPDATE SET "street" = excluded."street", "at" = excluded."at" WHERE excluded."at" > "taxis"."at"'
    """
    _check(key, (*values, column))
    name, when = quoted(table), quoted(column)
    written = [quoted(each) for each in (*values, column)]
    columns = [quoted(each) for each in key]
    sets = ", ".join(f"{each} = excluded.{each}" for each in written)
    return Statement(
        f"INSERT INTO {name} ({', '.join(columns + written)}) VALUES ({_marks(len(key) + len(written))}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(columns)}) DO UPDATE SET {sets} WHERE excluded.{when} > {name}.{when}",
        (*key.values(), *values.values(), at),
    )


def add(table: str, key: Mapping[str, Value], column: str, delta: int | float) -> Statement:
    """Add to a number; a row that is missing begins at zero.

    >>> add("stock", {"part": "bolt"}, "count", -3).sql
    'INSERT INTO "stock" ("part", "count") VALUES (?, ?) ON CONFLICT ("part") \
DO UPDATE SET "count" = "count" + excluded."count"'
    """
    _check(key, (column,))
    columns = [quoted(each) for each in key]
    number = quoted(column)
    return Statement(
        f"INSERT INTO {quoted(table)} ({', '.join([*columns, number])}) VALUES ({_marks(len(key) + 1)}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(columns)}) DO UPDATE SET {number} = {number} + excluded.{number}",
        (*key.values(), delta),
    )


def _check(key: Mapping[str, Value], others: tuple[str, ...]) -> None:
    if not key:
        raise StatementError("key: at least one column says which row is meant")
    twice = sorted(set(key) & set(others)) or sorted({each for each in others if others.count(each) > 1})
    if twice:
        raise StatementError(f"column {twice[0]} is named twice")


def _marks(count: int) -> str:
    return ", ".join("?" * count)
