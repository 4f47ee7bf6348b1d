"""A program is given the items that it wants, all of them and no others."""

from semcast.core.annotations import Item
from semcast.core.ids import MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.gossip.kinds import BEGIN, LOST, UNWANTED
from semcast.specs.verdict import Findings, Verdict


def gossip_filter(history: History) -> Verdict:
    """What is passed over as unwanted is about another item, and nothing about another item is delivered."""
    findings = Findings("gossip_filter")
    items = {
        MessageId(row.process, row.seq): row.annotation.item
        for row in history.events
        if row.kind is Kind.MULTICAST and isinstance(row.annotation, Item)
    }
    for process in history.processes:
        prefix = ""
        for row in history.of(process):
            if row.kind is BEGIN:
                prefix = row.annotation.item if isinstance(row.annotation, Item) else ""
            elif row.kind is LOST and row.level == UNWANTED:
                _look(findings, items, row, prefix, delivered=False)
            elif row.kind is Kind.DELIVER and prefix and row.sender != process:
                _look(findings, items, row, prefix, delivered=True)
    return findings.verdict()


def _look(
    findings: Findings, items: dict[MessageId, str], row: Event, prefix: str, *, delivered: bool
) -> None:
    assert row.sender is not None
    for seq in range(row.seq, row.last + 1):
        item = items.get(MessageId(row.sender, seq))
        wanted = item is None or item.startswith(prefix)
        if wanted is not delivered:
            findings.count(1)
            what = "delivered" if delivered else "passed over"
            findings.example(
                f"{row.process} wants {prefix!r}, and {what} {MessageId(row.sender, seq)} about {item!r}", row
            )
