"""Runs of updates (`Batch.items`): taken apart, or thinned out, where something has to be purged."""

from collections.abc import Sequence

from semcast.core.annotations import Item
from semcast.core.events import Purged
from semcast.core.ids import MessageId
from semcast.core.messages import Batch


def single(batch: Batch) -> Sequence[Batch]:
    """The batch, or the updates of which it is a run."""
    return (batch,) if batch.items is None else batch.singles()


def thinned(run: Batch) -> tuple[list[Batch], list[Purged]]:
    """The latest update of each item, and receipts for the others, each for the next one of its item.

    >>> from semcast.core import MemberId
    >>> run = Batch(MemberId("p"), 1, [b"1", b"2", b"3"], size=3, items=["bid", "ask", "bid"])
    >>> kept, purged = thinned(run)
    >>> [batch.first for batch in kept], [(each.id.seq, each.by.seq) for each in purged]
    ([2, 3], [(1, 3)])
    """
    items = run.items
    assert items is not None, "only a run of updates can be thinned out"
    ids = [MessageId(run.sender, seq) for seq in range(run.first, run.first + len(items))]
    after: dict[str, int] = {}
    kept: list[Batch] = []
    purged: list[Purged] = []
    for place in range(len(items) - 1, -1, -1):
        item = items[place]
        by = after.get(item)
        after[item] = place
        if by is None:
            payload = run.payloads[place]
            kept.append(Batch(run.sender, run.first + place, [payload], Item(item), len(payload)))
        else:
            purged.append(Purged(ids[place], ids[by]))
    kept.reverse()
    purged.reverse()
    return kept, purged
