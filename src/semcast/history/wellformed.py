"""What a recorded event must look like, whatever the protocol did.

A delivery of something that nobody multicast is well formed: that is for the checkers to judge.
"""

from semcast.core.ids import MemberId
from semcast.history.events import Event
from semcast.history.schema import CRC_MASK, SHARED, Kind


def problem(event: Event) -> str | None:
    """What is wrong with the event in itself, if anything is."""
    if event.kind not in _ABOUT_MESSAGES and (event.ring is not None or event.vector is not None):
        return f"{event.kind.value} with a certificate, which is for messages that are sent or delivered"
    match event.kind:
        case Kind.MULTICAST:
            return _message_problem(event) or _authorship_problem(event)
        case Kind.DELIVER | Kind.PURGE:
            return _message_problem(event)
        case Kind.VIEW | Kind.TRANSITIONAL if event.view is None or event.members is None:
            return f"{event.kind.value} without a number or without members"
        case Kind.BUFFER if event.count < 0:
            return f"buffer of {event.count} messages"
        case Kind.APPLY if event.sender is None or event.digest is None:
            return "apply without a sender or without a digest"
    return None if event.kind.columns is None else _added_problem(event)


_ABOUT_MESSAGES = (Kind.MULTICAST, Kind.DELIVER)
_FIELDS = {"bytes": "size"}
"""The fields of events that are not named as their columns."""

_EMPTY = Event(MemberId(""), 0, 0, Kind.RECOVER, "")


def _added_problem(event: Event) -> str | None:
    """Of a kind that a family added: it fills only the columns that it said."""
    kind = event.kind
    assert kind.columns is not None
    for column in sorted(SHARED - kind.columns):
        field = _FIELDS.get(column, column)
        if getattr(event, field) != getattr(_EMPTY, field):
            return f"{kind.value} with a {column}, which it does not use"
    return None if kind.problem is None else kind.problem(event)


def _message_problem(event: Event) -> str | None:
    kind = event.kind.value
    if event.sender is None:
        return f"{kind} without a sender"
    if event.seq < 1:
        return f"{kind} of message {event.seq} of {event.sender}: they count from 1"
    if event.count < 1:
        return f"{kind} of {event.count} messages: at least one is needed"
    if event.crc is not None and (event.size < 0 or not 0 <= event.crc <= CRC_MASK):
        return f"{kind} of {event.size} bytes with CRC {event.crc}: that cannot be"
    if event.ring is not None and (event.ring.packet < 1 or event.ring.index < 0):
        return f"{kind} at index {event.ring.index} of packet {event.ring.packet}: that cannot be"
    if any(rank < 0 or seq < 1 for rank, seq in event.vector or ()):
        return f"{kind} with a vector time that cannot be"
    if event.annotation is not None and event.count > 1:
        return f"an annotation speaks for one message, and this row is about {event.count}"
    return None


def _authorship_problem(event: Event) -> str | None:
    if event.sender != event.process:
        return f"multicast of ({event.sender},{event.seq}) by {event.process}, who is not its sender"
    return None
