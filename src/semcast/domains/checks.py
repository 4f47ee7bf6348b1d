"""What a program may ask of a domain; said before anything is asked."""

from collections.abc import Iterator, Sequence

from semcast.group.errors import ConfigurationError, GroupError
from semcast.protocols.isis.styles import objection
from semcast.protocols.lightweight.settings import MAX_GROUP, MAX_ITEM, MAX_TARGETS


def check_groups(groups: Sequence[str]) -> tuple[str, ...]:
    """The groups that a message is for, each once."""
    if not 1 <= len(groups) <= MAX_TARGETS or len(set(groups)) != len(groups):
        raise ConfigurationError(f"{len(groups)} groups: name from 1 to {MAX_TARGETS}, each once")
    for group in groups:
        if not isinstance(group, str) or not 1 <= len(group) <= MAX_GROUP:
            raise ConfigurationError(f"{group!r} is not a group name: write 1 to {MAX_GROUP} characters")
    return tuple(groups)


def check_items(items: Sequence[str] | None) -> None:
    """What messages are about."""
    for item in items or ():
        if not isinstance(item, str) or len(item) > MAX_ITEM:
            raise ConfigurationError(f"item {item!r:.60}: at most {MAX_ITEM} characters")


def check_order(order: str, *, causal: bool) -> None:
    """Refuse an order that a domain does not have."""
    known = ("agreed", "domain") if causal else ("agreed", "safe")
    if order == "safe" and causal:
        raise ConfigurationError("order 'safe': in a causal domain there is none, see confirm")
    if order not in known:
        raise ConfigurationError(f"order {order!r}: choose {' or '.join(known)}")


def portions(payloads: Sequence[bytes], most: int, most_bytes: int) -> Iterator[tuple[Sequence[bytes], int]]:
    """Messages in runs, as they may be asked for, with the bytes of each run.

    >>> [len(run) for run, _ in portions([b"1234"] * 5, 4, 10)]
    [2, 2, 1]
    """
    if not payloads:
        raise ConfigurationError("there is nothing to send")
    if len(payloads) <= most and set(map(type, payloads)) == {bytes}:
        size = sum(map(len, payloads))
        if size <= most_bytes:  # as nearly always: nobody looks at each
            yield payloads, size
            return
    start = size = 0
    for place, payload in enumerate(payloads):
        if not isinstance(payload, bytes):
            raise TypeError(f"a message is bytes, not {type(payload).__name__}")
        if len(payload) > most_bytes:
            raise GroupError(f"a message of {len(payload)} bytes: at most {most_bytes} in this domain")
        if place > start and (place - start == most or size + len(payload) > most_bytes):
            yield payloads[start:place], size
            start, size = place, 0
        size += len(payload)
    yield payloads[start:], size


def check_style(kind: str, role: str, *, causal: bool) -> None:
    """Whether a program may be that in a group; raises ConfigurationError."""
    if kind == "hierarchical":
        raise ConfigurationError(
            "kind 'hierarchical' is no single group: use semcast.hierarchy(domain, name, role=...)"
        )
    problem = objection(kind, role)
    if problem:
        raise ConfigurationError(problem)
    if kind != "peer" and not causal:
        raise ConfigurationError(
            f"kind {kind!r}: only groups of a causal domain have clients (engine='causal')"
        )
