"""What a process tells the history, if anybody wants it: rows of kinds of their own.

They are described in `specs/domains/kinds.py`. Nothing here is read by the protocol.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from semcast.core.annotations import Annotation, Enumeration, Item
from semcast.core.events import Note
from semcast.core.ids import MemberId
from semcast.core.messages import Batch
from semcast.core.outbox import Outbox
from semcast.core.views import View
from semcast.protocols.isis.settings import IsisSettings, Policy
from semcast.protocols.isis.stamps import Head

if TYPE_CHECKING:
    from semcast.protocols.isis.client_frames import ViewItem
    from semcast.protocols.isis.clients import ClientSeat
    from semcast.protocols.isis.program import Letter
    from semcast.protocols.isis.styles import Style


class Notes:
    """Where a process writes down what it does, over all its groups."""

    def __init__(self, me: MemberId, out: Outbox, *, wanted: bool) -> None:
        self.wanted = wanted
        self._me = me
        self._out = out

    def began(self, settings: IsisSettings, resilience: int | None) -> None:
        """The process begins; causes survive so many failures, where that is a number."""
        text: dict[str, object] = {} if resilience is None else {"resilience": resilience}
        if settings.policy is Policy.BLOCKS:
            text["structure"] = settings.structure
        self._note("dom-began", text or None, level=settings.policy.value)

    def view(self, group: str, view: View, style: "Style | None" = None) -> None:
        """Its program is in another view of a group."""
        text: dict[str, object] = {"group": group}
        if style is not None:
            text |= {"style": style.value, "servers": len(view.members)}
        self._note("dom-view", text, view=view.id, members=view.members)

    def client_view(self, seat: "ClientSeat", item: "ViewItem") -> None:
        """Its program is a client, and told of a view of servers."""
        members = tuple(item.members)
        text = {"group": seat.name, "style": seat.style.value, "servers": len(members)}
        self._note("dom-client", text, view=item.view, members=members)

    def client_sent(self, seat: "ClientSeat", number: int, view: int, others: Mapping[str, int]) -> None:
        """A message of a client leaves for its contact."""
        if self.wanted:
            text = {"group": seat.name, "role": "client", "own": 1, "others": dict(others)}
            self._message("dom-sent", self._me, number, 1, text, view=view)

    def left(self, group: str) -> None:
        """It has left a group."""
        self._note("dom-left", {"group": group})

    def out(self, group: str) -> None:
        """It is put out of a group."""
        self._note("dom-out", {"group": group})

    def sent(
        self,
        group: str,
        batch: Batch,
        view: int,
        own: int,
        others: Mapping[str, int],
        to: MemberId | None = None,
    ) -> None:
        """Its messages leave, with so many fields of the vector times of the group and of others."""
        if not self.wanted:
            return
        for place, single in enumerate([batch] if batch.items is None else batch.singles()):
            text: dict[str, object] = {"group": group, **_replacing(single.annotation)}
            if to is not None:
                text["to"] = to.name, to.incarnation
            if not place:
                text |= {"own": own, "others": dict(others)}
            self._message("dom-sent", single.sender, single.first, len(single.payloads), text, view=view)

    def sent_to(self, group: str, letter: "Letter", view: int, head: Head) -> None:
        """A message for one member leaves."""
        if self.wanted:
            others = {other.group: len(other.counts) for other in head.others}
            text = {"group": group, "direct": True, "own": len(head.changed), "others": others}
            digest = msgspec.json.encode(text).decode()
            me, to = self._me, (letter.to,)
            self._out.deliver(Note("dom-sent", me, letter.number, 1, view=view, members=to, digest=digest))

    def given(
        self,
        group: str,
        sender: MemberId,
        first: int,
        count: int,
        *,
        direct: bool = False,
        ordered: bool = False,
    ) -> None:
        """Its program is given messages."""
        if self.wanted:
            text: dict[str, object] = {"group": group}
            if direct:
                text["direct"] = True
            self._message("dom-given", sender, first, count, text, level="total" if ordered else None)

    def flush(self, number: int, level: str) -> None:
        """Its program asks for a flush, or that returns."""
        self._note("dom-flush", seq=number, level=level)

    def _message(
        self,
        kind: str,
        sender: MemberId,
        seq: int,
        count: int,
        text: Mapping[str, object],
        view: int | None = None,
        level: str | None = None,
    ) -> None:
        digest = msgspec.json.encode(text).decode()
        self._out.deliver(Note(kind, sender, seq, count, view=view, level=level, digest=digest))

    def _note(
        self,
        kind: str,
        text: Mapping[str, object] | None = None,
        *,
        seq: int = 0,
        view: int | None = None,
        level: str | None = None,
        members: tuple[MemberId, ...] | None = None,
    ) -> None:
        if self.wanted:
            digest = None if text is None else msgspec.json.encode(text).decode()
            self._out.deliver(Note(kind, None, seq, view=view, level=level, members=members, digest=digest))


def _replacing(annotation: Annotation | None) -> dict[str, object]:
    if isinstance(annotation, Item):
        return {"item": annotation.item}
    if isinstance(annotation, Enumeration):
        ids = [(each.sender.name, each.sender.incarnation, each.seq) for each in annotation.ids]
        return {"replaces": ids}
    return {}
