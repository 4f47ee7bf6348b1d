"""What a recorded event must look like, whatever the protocol did.

A delivery of something that nobody multicast is well formed: that is for the checkers to judge.
"""

from semcast.history.events import Event
from semcast.history.schema import Kind


def problem(event: Event) -> str | None:
    """What is wrong with the event in itself, if anything is."""
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
    return None


def _message_problem(event: Event) -> str | None:
    kind = event.kind.value
    if event.sender is None:
        return f"{kind} without a sender"
    if event.seq < 1:
        return f"{kind} of message {event.seq} of {event.sender}: they count from 1"
    if event.count < 1:
        return f"{kind} of {event.count} messages: at least one is needed"
    if event.annotation is not None and event.count > 1:
        return f"an annotation speaks for one message, and this row is about {event.count}"
    return None


def _authorship_problem(event: Event) -> str | None:
    if event.sender != event.process:
        return f"multicast of ({event.sender},{event.seq}) by {event.process}, who is not its sender"
    return None
