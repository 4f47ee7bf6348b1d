"""O1 and O2: the sample relation and its representations; trackers against the relations they are for.

(Pereira 2002, sections 3.3 and 3.4.) What a figure prints and what its section states are both here.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Literal

from semcast.core.annotations import Annotation, Enumeration, Item, KEnumeration
from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Message
from semcast.obsolescence import OperationTracker, ReadWriteTracker, SingleItemTracker, obsoletes
from semcast.sim.experiments.cells import Parameters, Result

Pairs = set[tuple[int, int]]
"""(old, new), by number."""

_P = MemberId("p")
SAMPLE: Pairs = {(1, 3), (1, 4), (3, 4), (2, 5)}
"""Figure 3.1."""
OPTIONAL: tuple[set[int], ...] = (set(), set(), {1}, {1, 3}, {1, 2, 3})
"""Figure 3.5: what may be left out of the first one, two, ... five messages."""


def _bits(base: int, bits: str) -> KEnumeration:
    """(seq, base, [bits]) as the figures write it: leftmost is the message just before `base`."""
    return KEnumeration(base, sum(1 << n for n, bit in enumerate(bits) if bit == "1"))


def _ids(*seqs: int) -> Enumeration:
    return Enumeration(tuple(MessageId(_P, seq) for seq in seqs))


_BITMAPS = [_bits(1, "0000"), _bits(2, "0000"), _bits(3, "0100"), _bits(4, "1010"), _bits(5, "0010")]
_REPRESENTATIONS: dict[str, Sequence[Annotation]] = {
    "tags": [Item(item) for item in "abaab"],
    "enumeration": [_ids(), _ids(), _ids(1), _ids(1, 3), _ids(2)],
    "bitmaps": _BITMAPS,
    "bitmaps as printed": [*_BITMAPS[:4], _bits(4, "0100")],
}


def represented(tags: Sequence[Annotation | None]) -> Pairs:
    """What the annotations of messages 1, 2, ... say, and nothing else."""
    messages = [Message(MessageId(_P, seq), b"", tag) for seq, tag in enumerate(tags, 1)]
    return {(old.id.seq, new.id.seq) for new in messages for old in messages if obsoletes(new, old)}


class RepresentationCell(Parameters, frozen=True):
    """How the sample relation is written down."""

    representation: Literal["tags", "enumeration", "bitmaps", "bitmaps as printed", "tracker"] = "tags"


def o1(cell: RepresentationCell) -> Result:
    """Figures 3.1 to 3.5: what a representation says, and what may be left out of each beginning."""
    if cell.representation == "tracker":
        tracker = SingleItemTracker(k=4)
        tags: Sequence[Annotation] = [tracker.update(item) for item in "abaab"]
    else:
        tags = _REPRESENTATIONS[cell.representation]
    said = represented(tags)
    rows = [{old for old, _ in represented(tags[:length])} for length in range(1, 6)]
    return {
        "pairs": len(said),
        "wrong_pairs": len(said ^ SAMPLE),
        "wrong_rows": sum(row != optional for row, optional in zip(rows, OPTIONAL, strict=True)),
    }


class TrackerCell(Parameters, frozen=True):
    """A tracker, and the sequences that it is tried with."""

    tracker: Literal["single", "operations", "operations as printed", "reads"] = "single"
    k: int = 8
    sequences: int = 200


def o2(cell: TrackerCell) -> Result:
    """Figures 3.6, 3.8, 3.10 and 6.1: pairs that are stated within reach and not said, or the reverse."""
    rng = Random(f"o2/{cell.tracker}/{cell.seed}")
    stated = missing = wrong = 0
    for _ in range(cell.sequences):
        said, wanted = _TRIALS[cell.tracker](rng, cell.k)
        near = {(old, new) for old, new in wanted if new - old <= cell.k}
        stated += len(near)
        missing += len(near - said)
        wrong += len(said - wanted)
    return {"stated": stated, "not_said": missing, "not_stated": wrong}


def _single(rng: Random, k: int) -> tuple[Pairs, Pairs]:
    """3.4.2; None never becomes obsolete (figure 6.1)."""
    items = [rng.choice([*"abcdef", None]) for _ in range(rng.randint(1, 30))]
    tracker = SingleItemTracker(k)
    tags: list[KEnumeration | None] = []
    for item in items:
        tags.append(None if item is None else tracker.update(item))
        if item is None:
            tracker.reliable()
    stated = {
        (i, j)
        for j, new in enumerate(items, 1)
        for i, old in enumerate(items[: j - 1], 1)
        if old is not None and old == new
    }
    return represented(tags), stated


class PrintedServer:
    """Figure 3.8, lines 2 to 13: the shift of line 10 puts the map of a commit off by one."""

    def __init__(self, k: int) -> None:
        self._mask = (1 << k) - 1
        self._seq = self._map = 0
        self._iseq: dict[str, int] = {}

    def operation(self, items: Iterable[str]) -> tuple[list[KEnumeration], KEnumeration]:
        """The tags of updates, and of their commit."""
        updates = []
        for item in items:
            self._seq += 1
            before = 1 << (self._seq - self._iseq.get(item, 0))
            self._map = (self._map << 1 | before) & self._mask
            self._iseq[item] = self._seq
            updates.append(KEnumeration(self._seq, 0))
        self._seq += 1
        self._map = self._map << 1 & self._mask  # line 10
        commit = KEnumeration(self._seq, self._map)
        self._map = (self._map << 1 | 1) & self._mask
        return updates, commit


def _operations(server: OperationTracker | PrintedServer, rng: Random) -> tuple[Pairs, Pairs]:
    """3.4.3: a commit replaces earlier commits, and updates that an operation up to it overwrites."""
    tags: list[KEnumeration] = []
    sent: list[tuple[int, str | None]] = []
    for number in range(1, rng.randint(2, 9)):
        items = sorted(set(rng.choices("abcdef", k=rng.randint(1, 4))))
        updates, commit = server.operation(items)
        tags += [*updates, commit]
        sent += [*((number, item) for item in items), (number, None)]
    stated: Pairs = set()
    for j, (new, its) in enumerate(sent, 1):
        for i, (old, item) in enumerate(sent, 1) if its is None else ():
            later = any(each == item and old < number <= new for number, each in sent)
            if old < new if item is None else later:
                stated.add((i, j))
    return represented(tags), stated


def _reads(rng: Random, k: int) -> tuple[Pairs, Pairs]:
    """3.4.4: the reply to a read replaces updates that were overwritten, unless they were read."""
    tracker = ReadWriteTracker(k)
    events = [(rng.choice(("update", "update", "get")), rng.choice("abc")) for _ in range(rng.randint(1, 30))]
    said: Pairs = set()
    stated: Pairs = set()
    for at, (kind, item) in enumerate(events, 1):
        if kind == "update":
            tracker.on_update(item)
            continue
        said |= {(old, at) for old in tracker.on_get(item).positions()}
        stated |= {(old, at) for old in _overwritten(events[: at - 1])}
    return said, stated


def _overwritten(events: Sequence[tuple[str, str]]) -> Iterable[int]:
    """Updates that the next event about their item overwrites."""
    for at, (kind, item) in enumerate(events, 1):
        later = next((other for other, each in events[at:] if each == item), "")
        if kind == later == "update":
            yield at


_TRIALS = {
    "single": _single,
    "operations": lambda rng, k: _operations(OperationTracker(k), rng),
    "operations as printed": lambda rng, k: _operations(PrintedServer(k), rng),
    "reads": _reads,
}
