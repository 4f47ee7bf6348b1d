"""Lightweight groups: one list for a view, views and positions that grow, messages once at each client."""

from collections.abc import Collection, Iterator
from typing import TypeVar

from semcast.core.ids import MemberId
from semcast.history.events import Event
from semcast.specs.lightweight.kinds import DELIVER, PRIVATE, VIEW
from semcast.specs.lightweight.story import Row, ViewId, row_of
from semcast.specs.prefix.alarm import Alarm

_MOST = 1 << 14
"""Views, and pairs of a client and a group or a sender, that are remembered."""

K = TypeVar("K")


class LightweightWatch:
    """What each client was told last.

    Args:
        promised: the properties of the group of daemons.
    """

    def __init__(self, promised: Collection[str]) -> None:
        self._promised = "lw_view_agreement" in promised
        self._lists: dict[tuple[str, ViewId], Row] = {}
        self._views: dict[tuple[MemberId, str], Row] = {}
        self._places: dict[MemberId, Row] = {}
        self._senders: dict[tuple[MemberId, MemberId], Row] = {}

    def feed(self, event: Event) -> Iterator[Alarm]:
        """One more event of a daemon."""
        if not self._promised:
            return
        if event.kind is VIEW:
            yield from self._view(row_of(event))
        elif event.kind in (DELIVER, PRIVATE):
            yield from self._message(row_of(event))

    def _view(self, row: Row) -> Iterator[Alarm]:
        group, number, client = row.text.group, row.text.id, row.client
        first = self._lists.setdefault((group, number), row)
        if first.members != row.members:
            yield _alarm("lw_view_agreement", f"two lists for one view of {group}", first, row)
        if client not in row.members:
            yield _alarm("lw_view_agreement", f"{client} is told of a view without itself", row)
        before = self._views.get((client, group))
        if before is not None and before.text.id >= number:
            yield _alarm("lw_view_agreement", f"views of {group} do not grow at {client}", before, row)
        _put(self._views, (client, group), row)
        _bound(self._lists)

    def _message(self, row: Row) -> Iterator[Alarm]:
        client = row.client
        sender, seq = row.message
        last, before = self._places.get(client), self._senders.get((client, sender))
        if last is not None and last.place >= row.place:
            yield _alarm("lw_order", f"positions do not grow at {client}", last, row)
        if before is not None and before.event.last >= seq:
            again = f"{client} has ({sender},{seq}) after a later one, or twice"
            yield _alarm("lw_order", again, before, row)
        _put(self._places, client, row)
        _put(self._senders, (client, sender), row)

    def size(self) -> int:
        """How many rows are remembered."""
        return len(self._lists) + len(self._views) + len(self._places) + len(self._senders)


def _put(rows: dict[K, Row], key: K, row: Row) -> None:
    """As the newest."""
    rows.pop(key, None)
    rows[key] = row
    _bound(rows)


def _bound(rows: dict[K, Row]) -> None:
    if len(rows) > _MOST:
        del rows[next(iter(rows))]


def _alarm(name: str, detail: str, *rows: Row) -> Alarm:
    return Alarm(name, detail, tuple(row.event for row in rows))
