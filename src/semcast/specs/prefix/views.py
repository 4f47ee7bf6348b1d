"""Views: one number, one list of members, everywhere; and whoever installs a view is in it."""

from collections.abc import Collection, Iterator

from semcast.core.ids import MemberId
from semcast.history.events import Event
from semcast.history.schema import Kind
from semcast.specs.prefix.alarm import Alarm

_MOST = 4096
"""Views that are remembered; what is installed later than so many others is not compared."""

_View = tuple[int | None, MemberId | None]
"""Its number, and who formed it."""


class ViewLists:
    """The members of each view, as the first process has them.

    Args:
        promised: the properties of the group.
    """

    def __init__(self, promised: Collection[str]) -> None:
        self._numbered = "vs_view_agreement" in promised
        self._configurations = "pair_same_members" in promised
        self._views: dict[_View, Event] = {}
        self._latest: dict[MemberId, Event] = {}

    def feed(self, event: Event) -> Iterator[Alarm]:
        """One more event of a process."""
        if event.kind is not Kind.VIEW or not (self._numbered or self._configurations):
            return
        name = event.view, None if self._numbered else event.sender
        first = self._views.setdefault(name, event)
        if first.members != event.members:
            said = f"{event.process} and {first.process} differ in the members of view {event.view}"
            yield Alarm("vs_view_agreement" if self._numbered else "pair_same_members", said, (first, event))
        if len(self._views) > _MOST:
            del self._views[next(iter(self._views))]
        if event.process not in (event.members or ()):
            wrong = f"{event.process} installed view {event.view} and is not a member of it"
            known = "vs_view_agreement" if self._numbered else "evs_2_2_inside_configuration"
            yield Alarm(known, wrong, (event,))
        before = self._latest.get(event.process)
        if self._numbered and before is not None and (event.view or 0) <= (before.view or 0):
            said = f"{event.process} installed view {event.view} and was in view {before.view}"
            yield Alarm("vs_view_agreement", said, (before, event))
        self._latest[event.process] = event

    def size(self) -> int:
        """How many rows are remembered."""
        return len(self._views) + len(self._latest)
