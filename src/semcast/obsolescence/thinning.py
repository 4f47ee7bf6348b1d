"""Runs of updates (`Batch.items`): taken apart, or thinned out, where something has to be purged."""

from collections.abc import Iterable, Sequence

from semcast.core.annotations import Item
from semcast.core.events import Thinned
from semcast.core.ids import MemberId
from semcast.core.messages import Batch


def single(batch: Batch) -> Sequence[Batch]:
    """The batch, or the updates of which it is a run."""
    return (batch,) if batch.items is None else batch.singles()


def thinned(batches: Iterable[Batch]) -> tuple[list[Batch], list[Thinned]]:
    """Of the runs among these only the latest update of each item, and receipts for the others.

    >>> p = MemberId("p")
    >>> one = Batch(p, 1, [b"1", b"2", b"3"], size=3, items=["bid", "ask", "bid"])
    >>> kept, receipts = thinned([one, Batch(p, 4, [b"4"], size=1, items=["bid"])])
    >>> [batch.first for batch in kept], [receipt.count for receipt in receipts]
    ([2, 4], [2])
    """
    batches = list(batches)
    seen: dict[MemberId, set[str]] = {}  # items of which a later update is kept
    runs: dict[MemberId, list[Batch]] = {}
    kept: list[Batch] = []
    purged: dict[MemberId, int] = {}
    for batch in reversed(batches):
        items, sender = batch.items, batch.sender
        if items is None:
            kept.append(batch)
            continue
        later = seen.setdefault(sender, set())
        latest = dict(zip(items, range(len(items)), strict=True))  # the last place of each item
        places = sorted([place for item, place in latest.items() if item not in later], reverse=True)
        later.update(latest)
        kept += [_update(batch, place, items[place]) for place in places]
        purged[sender] = purged.get(sender, 0) + len(items) - len(places)
        runs.setdefault(sender, []).append(batch)
    kept.reverse()
    return kept, [_receipt(sender, runs[sender], count) for sender, count in purged.items() if count]


def _update(run: Batch, place: int, item: str) -> Batch:
    payload = run.payloads[place]
    order = None if run.order is None else run.order + place
    return Batch(run.sender, run.first + place, [payload], Item(item), len(payload), b"", order)


def _receipt(sender: MemberId, latest_first: Sequence[Batch], count: int) -> Thinned:
    return Thinned(sender, tuple([(run.first, run.items or []) for run in reversed(latest_first)]), count)
