"""How strips follow each other: where each begins, and whose it is. Few numbers for each, on the driver."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from semcast.pipeline.verify.large.causal.arrays import SEQ_BITS, Ints, coded
from semcast.pipeline.verify.large.causal.ground import Ground


@dataclass(frozen=True, slots=True)
class Path:
    """One process in one view, which it may enter more than once."""

    run: str
    who: int
    scope: int
    own: int
    """Its seat there, below 0 if it multicast nothing."""


@dataclass(frozen=True, slots=True)
class Course:
    """All strips, numbered."""

    number: dict[tuple[int, int], int]
    """By stay and chunk."""

    path: list[int]
    """Of each strip."""

    paths: list[Path]
    start: list[Ints]
    """What was delivered before each strip: of each seat the highest number, 0 if there is none."""

    highest: dict[int, Ints]
    """What was delivered in each stay, in the same way."""

    edge: Ints
    """The first that was sent in each strip in which something was, as codes, sorted."""

    edge_strip: Ints
    """Which strip that is."""

    def holding(self, author: int, seq: Ints) -> Ints:
        """The strips in which messages were sent, which were."""
        return self.edge_strip[np.searchsorted(self.edge, coded(author, seq), side="right") - 1]


def course_of(ground: Ground, strips: pa.Table) -> Course:
    """From rows (stay, chunk, sent, highest)."""
    rows = sorted(
        strips.select(["stay", "chunk", "sent", "highest"]).to_pylist(),
        key=lambda row: (row["stay"], row["chunk"]),
    )
    numbers: dict[tuple[int, int], int] = {}
    paths: list[Path] = []
    heard: list[Ints] = []
    by_stay: dict[int, Ints] = {}
    path, start, edges = [], [], []
    for number, row in enumerate(rows):
        who, scope = int(ground.who[row["stay"]]), int(ground.scope[row["stay"]])
        seats = ground.seats[scope]
        place = numbers.setdefault((who, scope), len(numbers))
        if place == len(paths):
            own = int(np.searchsorted(seats, who))
            sends = own < len(seats) and seats[own] == who
            paths.append(Path(ground.runs[row["stay"]], who, scope, own if sends else -1))
            heard.append(np.zeros(len(seats), np.int64))
        path.append(place)
        start.append(heard[place])
        delivered = np.zeros(len(seats), np.int64)
        seat, highest = np.frombuffer(row["highest"], np.int64).reshape(2, -1)
        delivered[seat] = highest
        heard[place] = np.maximum(heard[place], delivered)
        by_stay[row["stay"]] = np.maximum(by_stay.get(row["stay"], delivered), delivered)
        if row["sent"] is not None:
            edges.append(((who << SEQ_BITS) + row["sent"], number))
    table = np.array(sorted(edges), np.int64).reshape(-1, 2)
    known = {(row["stay"], row["chunk"]): number for number, row in enumerate(rows)}
    return Course(known, path, paths, start, by_stay, table[:, 0], table[:, 1])
