r"""Values of SQL as JSON and back. JSON has no bytes and no infinity: these stand in an object.

>>> to_json(b"\x00\xff"), from_json({"base64": "AP8="})
({'base64': 'AP8='}, b'\x00\xff')
>>> to_json(float("-inf"))
{'real': '-inf'}
"""

import base64
import binascii
import math
from collections.abc import Iterable

from semcast.sql.actions import Row, Value

Json = int | float | str | None | dict[str, str]

_REALS = {"inf": math.inf, "-inf": -math.inf}
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class ValueRefusedError(ValueError):
    """Something that SQLite cannot keep in a column; says what."""


def to_json(value: object) -> Json:
    """A value of a column."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and math.isinf(value):
        return {"real": "inf" if value > 0 else "-inf"}
    assert value is None or isinstance(value, int | float | str)
    return value


def from_json(value: object) -> Value:
    """A value of a column; true and false are 1 and 0, as in SQL.

    Raises:
        ValueRefusedError: it is none.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        if not _LEAST <= value <= _MOST:
            raise ValueRefusedError(f"{value} does not fit into 64 bits")
        return value
    if value is None or isinstance(value, float | str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        (kind, text) = next(iter(value.items()))
        if kind == "base64" and isinstance(text, str):
            return _bytes(text)
        if kind == "real" and text in _REALS:
            return _REALS[text]
    raise ValueRefusedError(
        f"a parameter is a {_kind(value)}: there are null, numbers, text, "
        '{"base64": "..."} for bytes and {"real": "inf"}'
    )


def _kind(value: object) -> str:
    return (
        "list" if isinstance(value, list) else "object" if isinstance(value, dict) else type(value).__name__
    )


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueRefusedError(f"a parameter is no base64: {error}") from error


def row_to_json(row: Iterable[object]) -> list[Json]:
    """A row."""
    return [to_json(value) for value in row]


def row_from_json(row: Iterable[object]) -> tuple[Value, ...]:
    """Parameters, or a row.

    Raises:
        ValueRefusedError: one of them is no value.
    """
    return tuple(from_json(value) for value in row)


def rows_to_json(rows: Iterable[Row]) -> list[list[Json]]:
    """Rows."""
    return [row_to_json(row) for row in rows]
