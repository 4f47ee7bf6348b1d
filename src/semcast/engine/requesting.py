"""What a client may ask for: checked before anything is sent, with errors that name the argument."""

import time
from collections.abc import Iterable, Sequence
from typing import TypedDict

import msgspec

from semcast.engine.errors import RequestError
from semcast.engine.service import Expectation
from semcast.replication.creation import Cut
from semcast.replication.ids import Creator

_MAX_CLIENT = 64
_MAX_NUMBER = 1 << 62

Seen = str
"""What a client saw that has no place yet; opaque. It goes with its requests to other servers."""


class AskingAgain(TypedDict, total=False):
    """What may be said with an update of a session."""

    number: int
    expect: Iterable[Expectation]
    timeout: float | None


class Asking(AskingAgain, total=False):
    """The same without a session."""

    client: str
    floor: int
    seen: Seen


_cuts: "msgspec.json.Decoder[Cut]" = msgspec.json.Decoder(tuple[tuple[Creator, int], ...])


def seen_of(cut: Cut) -> Seen:
    """To be taken along."""
    return msgspec.json.encode(cut).decode() if cut else ""


def cut_of(seen: Seen) -> Cut:
    """What was taken along."""
    if not seen:
        return ()
    try:
        return _cuts.decode(seen)
    except msgspec.MsgspecError as error:
        raise RequestError(f"seen: this is not what a dirty read gave: {error}") from None


def check_bytes(name: str, value: object, most: int) -> None:
    """Raise unless it is bytes, and not too many."""
    if type(value) is not bytes:
        raise TypeError(f"{name} of type {type(value).__name__}: bytes are expected, so encode text")
    if len(value) > most:
        raise RequestError(f"{name} of {len(value)} bytes: at most {most} are allowed")


def check_client(client: str, number: int, floor: int) -> None:
    """Raise unless a request can be told from others."""
    if not isinstance(client, str):
        raise TypeError(f"client of type {type(client).__name__}: the id of a client is a text")
    if len(client) > _MAX_CLIENT:
        raise RequestError(f"client of {len(client)} characters: at most {_MAX_CLIENT} are allowed")
    for name, value in (("number", number), ("floor", floor)):
        if type(value) is not int:
            raise TypeError(f"{name} of type {type(value).__name__}: whole numbers are expected")
        if not 0 <= value < _MAX_NUMBER:
            raise RequestError(f"{name} {value}: numbers count from 1")
    if bool(client) != (number > 0):
        raise RequestError("client and number must be given together: they identify a repeated request")
    if floor > number:
        raise RequestError(f"floor {floor}: the outcome of request {number} is not known yet")


def expectations(expect: Iterable[Expectation]) -> tuple[Expectation, ...]:
    """Raise unless these are questions and answers."""
    found: list[Expectation] = []
    for each in expect:
        if not isinstance(each, Sequence) or len(each) != 2 or {type(each[0]), type(each[1])} != {bytes}:
            raise RequestError(f"expect {each!r}: pairs of a question and its answer, both bytes")
        found.append((each[0], each[1]))
    return tuple(found)


def milliseconds() -> int:
    """The time of day, as actions carry it."""
    return time.time_ns() // 1_000_000
