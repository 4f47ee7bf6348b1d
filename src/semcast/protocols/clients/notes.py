"""What a program at the other end of a connection has heard, as rows for the history.

They are described in `specs/lightweight/kinds.py`. Nothing here is read by the protocol.
"""

import msgspec

from semcast.core.events import Note
from semcast.core.ids import MemberId
from semcast.protocols.clients.caller import Heard
from semcast.protocols.lightweight.events import (
    Delivered,
    GroupTransitional,
    GroupView,
    LeftGroup,
    Out,
    PrivateDelivered,
    Replaced,
)


def opened_row(client: MemberId) -> Note:
    """A program's session is open."""
    return Note("lw-heard", client, level="opened")


def heard_row(client: MemberId, heard: Heard) -> Note | None:
    """What a program heard; None for what nobody judges."""
    text: dict[str, object]
    seq = count = 0
    if isinstance(heard, Delivered):
        level, seq, count = "deliver", heard.first, len(heard.payloads)
        text = {"by": str(heard.sender), "groups": heard.groups}
    elif isinstance(heard, PrivateDelivered):
        level, seq, count, text = "private", heard.seq, 1, {"by": str(heard.sender)}
    elif isinstance(heard, GroupView | GroupTransitional):
        level = "view" if isinstance(heard, GroupView) else "transitional"
        epoch = heard.id.epoch
        name = (epoch.number, int(epoch.rest), str(epoch.representative), heard.id.change)
        text = {"group": heard.group, "id": name}
    elif isinstance(heard, LeftGroup):
        level, text = "left", {"group": heard.group}
    elif isinstance(heard, Replaced):
        level, seq, count = "purged", heard.first, heard.last - heard.first + 1
        text = {"by": str(heard.sender), "groups": heard.groups}
    elif isinstance(heard, Out):
        level, text = "out", {}
    else:
        return None
    return Note("lw-heard", client, seq, count, level=level, digest=msgspec.json.encode(text).decode())
