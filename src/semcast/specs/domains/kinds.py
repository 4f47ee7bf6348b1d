"""The rows that processes of a causal domain write about all their groups together.

The rows of one process are in the order of what it did, over all its groups: that order is what causality
between groups is about. They are a group of the history of their own, named after the domain. A text in
`annotation` is an object of JSON, and `group` there names the group of the domain. Messages of a member are
numbered from 1 in each group, its direct messages for themselves. `count` consecutive messages are one row
if nothing else in the row tells them apart.

- dom-began: the process begins, with this policy between groups in `level`: "full", "blocks", "epochs" or
  "conservative". Its first row. Where causes need to survive so many failures only, `resilience` is their
  number. Under "blocks", `structure` is what was asserted of overlaps: "any", "acyclic", or sets of groups;
- dom-view: it installs view `view` of `group`, with these `members`. Of a group with clients, `style` is
  "client-server" or "diffusion" and `servers` how many of the members are servers;
- dom-client: it is a client of `group`, of this `style`, and is told that view `view` of its servers has
  these `members`;
- dom-left: it has left `group`, and may join again;
- dom-out: it learns that it is put out of `group`, and so out of the domain;
- dom-sent: its messages (`sender`, `seq`, `count`) leave in view `view` of `group`: how many fields of the
  vector time of the group the first carries (`own`), and how many of each of the other groups (`others`);
  those behind it carry no more. What they replace: `item`, or `replaces`, as [name, incarnation, seq] of
  members of the same group. Of `direct` messages `members` is who they are for. What a server sends to its
  fellows and one client says so in `to`, as [name, incarnation]; what a client sends has the `role` "client",
  and `view` is the last one it was told of;
- dom-given: its program is given messages of `group`, its own, too; with "total" in `level` if they are in
  the one order of the domain;
- dom-flush: flush number `seq` of its program is "asked" for, or has "returned" (`level`).

Crash and left rows are about the domain as a whole.
"""

import msgspec

from semcast.core.annotations import Annotation, Enumeration, Item
from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event
from semcast.history.schema import TOTAL, add_kind

POLICIES = ("full", "blocks", "epochs", "conservative")
STYLES = ("", "client-server", "diffusion")
CLIENT_ROLE = "client"
ASKED, RETURNED = "asked", "returned"


class Text(msgspec.Struct, frozen=True, gc=False):
    """What stands in the text of a row; each kind has some of it."""

    group: str = ""
    style: str = ""
    servers: int = 0
    own: int = 0
    others: dict[str, int] = {}
    item: str | None = None
    replaces: tuple[tuple[str, int, int], ...] = ()
    direct: bool = False
    resilience: int | None = None
    structure: str | tuple[tuple[str, ...], ...] = ""
    role: str = ""
    to: tuple[str, int] | None = None

    @property
    def client(self) -> bool:
        """Whether a client of the group sent it, who is in no view."""
        return self.role == CLIENT_ROLE

    @property
    def annotation(self) -> Annotation | None:
        """What the message says that it replaces."""
        if self.item is not None:
            return Item(self.item)
        if self.replaces:
            return Enumeration(tuple(MessageId(MemberId(name, inc), seq) for name, inc, seq in self.replaces))
        return None


_decoder = msgspec.json.Decoder(Text)
_NO_TEXT = Text()


def text_of(event: Event) -> Text:
    """The text of a row."""
    note = event.annotation
    return _decoder.decode(note.item) if isinstance(note, Item) else _NO_TEXT


def _unreadable(event: Event) -> str | None:
    try:
        text_of(event)
    except msgspec.DecodeError as error:
        return f"{event.kind.value} with a text that cannot be read: {error}"
    return None


def _in_group(event: Event) -> str | None:
    problem = _unreadable(event)
    if problem is not None:
        return problem
    text = text_of(event)
    if not text.group:
        return f"{event.kind.value} of no group"
    return None if text.style in STYLES else f"unknown style {text.style!r}"


def _began(event: Event) -> str | None:
    if event.level not in POLICIES:
        return f"unknown policy {event.level!r}"
    return _unreadable(event)


def _view(event: Event) -> str | None:
    if event.view is None or not event.members:
        return "a view without a number or without members"
    return _in_group(event)


def _of_messages(event: Event) -> str | None:
    if event.sender is None or event.seq < 1 or event.count < 1:
        return f"{event.kind.value} of no messages"
    return _in_group(event)


def _sent(event: Event) -> str | None:
    if event.sender != event.process or event.view is None:
        return "messages that leave in no view, or are somebody else's"
    problem = _of_messages(event)
    if problem is not None:
        return problem
    text = text_of(event)
    if event.count > 1 and text.annotation is not None:
        return f"an annotation speaks for one message, and this row is about {event.count}"
    if text.direct is not (event.members is not None and len(event.members) == 1):
        return "a direct message is for one member, any other names none"
    return None


def _given(event: Event) -> str | None:
    if event.level not in (None, TOTAL):
        return f"messages in the order {event.level!r}"
    return _of_messages(event)


def _flush(event: Event) -> str | None:
    good = event.level in (ASKED, RETURNED) and event.seq >= 1
    return None if good else "a flush without a number, or neither asked for nor returned"


_MESSAGES = ("sender", "seq", "count", "annotation")
BEGAN = add_kind("dom-began", ("level", "annotation"), _began)
VIEW = add_kind("dom-view", ("view", "members", "annotation"), _view)
CLIENT = add_kind("dom-client", ("view", "members", "annotation"), _view)
LEFT = add_kind("dom-left", ("annotation",), _in_group)
OUT = add_kind("dom-out", ("annotation",), _in_group)
SENT = add_kind("dom-sent", (*_MESSAGES, "view", "members"), _sent)
GIVEN = add_kind("dom-given", (*_MESSAGES, "level"), _given)
FLUSH = add_kind("dom-flush", ("seq", "level"), _flush)
KINDS = frozenset((BEGAN, VIEW, CLIENT, LEFT, OUT, SENT, GIVEN, FLUSH))
