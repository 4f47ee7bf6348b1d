"""Where what a sender had delivered meets those who deliver its message: have they as much?

All that was sent in one strip is compared at once with all its deliveries, so vectors are shuffled by strips.
Who has less has heard of messages that it did not deliver: it may never (they were replaced), or too late.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from semcast.pipeline.verify.large.causal.arrays import Ints, coded, groups, overlaps
from semcast.pipeline.verify.large.causal.course import Course
from semcast.pipeline.verify.large.causal.ground import Ground
from semcast.pipeline.verify.large.causal.heard import heard
from semcast.pipeline.verify.large.causal.rumours import NEVER, highest_so_far
from semcast.pipeline.verify.large.causal.strips import Strip

VECTORS = pa.schema(
    [("strip", pa.int64()), ("path", pa.int64()), ("many", pa.int64()), ("vectors", pa.binary())]
)
_SENDER = -1


def words_of(ground: Ground, course: Course, number: int, strip: Strip) -> Iterator[tuple[int, int, Ints]]:
    """What a strip has to say: the strip it is about, which path says it (or the sender itself), and vectors.

    These are index, first and last of rows, and for each seat the highest number delivered: by the sender
    before it sent them, by others with them.
    """
    vectors = heard(strip, course.start[number])
    rows = strip.sent
    if len(rows):
        about = np.stack((strip.index[rows], strip.first[rows], strip.last[rows]))
        yield number, _SENDER, np.concatenate((about, vectors[rows].T))
    rows = strip.delivered
    authors = ground.seats[course.paths[course.path[number]].scope][strip.seat[rows]]
    low, high = coded(authors, strip.first[rows]), coded(authors, strip.last[rows])
    ends = np.append(course.edge[1:] - 1, NEVER)
    row, edge = overlaps(low, high, course.edge, ends)
    order = np.argsort(edge, kind="stable")
    row, edge = row[order], edge[order]
    for part in groups(edge):
        there, here = edge[part.start], rows[row[part]]
        first = strip.first[here] + np.maximum(course.edge[there] - low[row[part]], 0)
        last = strip.last[here] - np.maximum(high[row[part]] - ends[there], 0)
        about = np.stack((strip.index[here], first, last))
        said = np.concatenate((about, vectors[here + 1].T))
        yield int(course.edge_strip[there]), course.path[number], said


def met(words: Sequence[tuple[int, Ints]]) -> Ints:
    """From all that is said about one strip, the rumours (path, seat, index, value)."""
    sent = next(vectors for path, vectors in words if path == _SENDER)
    found = [np.zeros((4, 0), np.int64)]
    for path, vectors in words:
        if path != _SENDER:
            seat, index, value = _less(sent, vectors)
            found.append(highest_so_far(np.stack((np.full(len(seat), path), seat, index, value))))
    return highest_so_far(np.concatenate(found, axis=1))


def _less(sent: Ints, delivered: Ints) -> tuple[Ints, Ints, Ints]:
    """Where who delivers has less than who sent had: (seat, index, value)."""
    row, send = overlaps(delivered[1], delivered[2], sent[1], sent[2])
    seat, n = np.nonzero(delivered[3:, row] < sent[3:, send])
    return seat, delivered[0, row[n]], sent[3 + seat, send[n]]
