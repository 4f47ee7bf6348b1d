"""What a daemon tells the history, if anybody wants it: rows of kinds of their own.

They are described in `specs/lightweight/kinds.py`. Nothing here is read by the protocol.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from semcast.core.events import Note
from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.protocols.lightweight.events import GroupTransitional, GroupView
from semcast.protocols.lightweight.ids import Epoch, Position, ViewId
from semcast.protocols.lightweight.messages import Cast, Client


class Notes:
    """Where a daemon writes down what it does."""

    def __init__(self, out: Outbox, *, wanted: bool) -> None:
        self.wanted = wanted
        self._out = out

    def configuration(self, epoch: Epoch, members: Iterable[MemberId]) -> None:
        """The daemon is in another configuration, or in the rest of one."""
        if self.wanted:
            level = "rest" if epoch.rest else "regular"
            there = tuple(sorted(members))
            self._out.deliver(
                Note("lw-conf", epoch.representative, view=epoch.number, level=level, members=there)
            )

    def session(self, client: Client, level: str) -> None:
        """A local client connects ("came"), is gone, or is put out."""
        if self.wanted:
            self._out.deliver(Note("lw-session", client, level=level))

    def asked(
        self,
        client: Client,
        level: str,
        seq: int,
        count: int,
        groups: Sequence[str] = (),
        view: ViewId | None = None,
        to: Client | None = None,
        items: Sequence[str] | None = None,
    ) -> None:
        """A request of a local client was taken."""
        if self.wanted:
            text = _text(groups=groups, view=_view(view), **({} if items is None else {"items": items}))
            members = None if to is None else (to,)
            self._out.deliver(Note("lw-ask", client, seq, count, level=level, members=members, digest=text))

    def ordered(
        self,
        position: Position,
        client: Client,
        level: str,
        seq: int = 0,
        count: int = 0,
        groups: Sequence[str] = (),
        view: ViewId | None = None,
    ) -> None:
        """The daemon did what a client asked for."""
        if self.wanted:
            text = _text(epoch=_epoch(position.epoch), groups=groups, view=_view(view))
            self._out.deliver(
                Note("lw-ordered", client, seq, count, level=level, order=position.index, digest=text)
            )

    def view(self, client: Client, told: GroupView) -> None:
        """A local client is told of a view."""
        if self.wanted:
            along = [str(each) for each in told.along]
            text = _text(group=told.group, id=_view(told.id), vs=told.vs, along=along)
            self._out.deliver(
                Note("lw-view", client, level=told.cause.value, members=told.members, digest=text)
            )

    def transitional(self, client: Client, told: GroupTransitional) -> None:
        """A local client is told that members may be lost."""
        if self.wanted:
            text = _text(group=told.group, id=_view(told.id))
            self._out.deliver(Note("lw-transitional", client, members=told.members, digest=text))

    def delivered(
        self, client: Client, cast: Cast, position: Position, views: Mapping[str, ViewId | None]
    ) -> None:
        """A local client is given messages, in these views of groups."""
        if self.wanted:
            text = _text(
                epoch=_epoch(position.epoch),
                views={name: _view(view) for name, view in views.items()},
                sent=_view(cast.view),
            )
            self._out.deliver(
                Note(
                    "lw-deliver",
                    cast.client,
                    cast.seq,
                    len(cast.payloads),
                    order=position.index,
                    members=(client,),
                    digest=text,
                )
            )

    def private(self, client: Client, level: str, sender: Client, seq: int, position: Position) -> None:
        """A local client is given a private message ("delivered"), or told that its own is undeliverable."""
        if self.wanted:
            text = _text(epoch=_epoch(position.epoch))
            members = (client,)
            self._out.deliver(
                Note(
                    "lw-private",
                    sender,
                    seq,
                    1,
                    level=level,
                    order=position.index,
                    members=members,
                    digest=text,
                )
            )

    def left(self, client: Client, group: str) -> None:
        """A local client is told that it is out of a group."""
        if self.wanted:
            self._out.deliver(Note("lw-left", client, digest=_text(group=group)))

    def placed(self, client: Client, upto: int, have: Iterable[MemberId]) -> None:
        """A local client is told how far its requests have a place; these daemons have them."""
        if self.wanted:
            self._out.deliver(Note("lw-placed", client, upto, 1, members=tuple(sorted(have))))


def _epoch(epoch: Epoch) -> tuple[int, int, str]:
    return epoch.number, int(epoch.rest), str(epoch.representative)


def _view(view: ViewId | None) -> tuple[int, int, str, int] | None:
    return None if view is None else (*_epoch(view.epoch), view.change)


def _text(**what: object) -> str:
    return msgspec.json.encode(what).decode()
