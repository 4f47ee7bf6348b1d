"""What is sent again for one request: neighbours share a frame, as they may when they are sent first."""

from collections.abc import Iterable, Iterator, Sequence

from semcast.core.messages import Batch

LENGTH = 3
"""Bytes on the wire before a payload."""

Spans = Sequence[tuple[int, int]]


def answers(held: Iterable[Batch], spans: Spans, frame: int, most: int) -> Iterator[Batch]:
    """What is held inside the spans, in frames of about `frame` bytes, `most` bytes together.

    What is held comes in order, and spans are `merged`.
    """
    run: list[Batch] = []
    size = 0
    for part in inside(held, spans):
        cost = part.size + LENGTH * len(part.payloads)
        if run and (size + cost > frame or not follows(run[-1], part)):
            yield joined(run)
            run, size = [], 0
            if most <= 0:
                return
        run.append(part)
        size += cost
        most -= cost
    if run:
        yield joined(run)


def inside(held: Iterable[Batch], spans: Spans) -> Iterator[Batch]:
    """The parts of batches that are inside spans."""
    at = 0
    for batch in held:
        while at < len(spans) and spans[at][1] < batch.first:
            at += 1
        for first, last in spans[at:]:
            if first > batch.last:
                break
            yield batch.cut(max(first, batch.first), min(last, batch.last))


def merged(spans: Spans) -> list[tuple[int, int]]:
    """In order, and apart from each other; what is none is left out."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        elif first <= last:
            found.append((first, last))
    return found


def joined(run: Sequence[Batch]) -> Batch:
    """Batches that follow each other as one."""
    first = run[0]
    if len(run) == 1:
        return first
    payloads = [payload for part in run for payload in part.payloads]
    return Batch(first.sender, first.first, payloads, None, sum(part.size for part in run), first.head)


def follows(before: Batch, after: Batch) -> bool:
    """Whether one can go on where another ends: a frame has one head, at its beginning."""
    return (
        after.first == before.last + 1
        and before.annotation is None is after.annotation
        and before.items is None is after.items
        and not (before.left or after.left or after.head)
    )
