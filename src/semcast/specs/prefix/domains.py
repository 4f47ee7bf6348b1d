"""Causal domains: in each group, views that all agree on, and messages once, in the order of their sender."""

from collections.abc import Collection, Iterator

from semcast.core.ids import MemberId
from semcast.history.events import Event
from semcast.specs.domains.kinds import GIVEN, LEFT, OUT, VIEW, text_of
from semcast.specs.prefix.alarm import Alarm

_MOST = 4096
"""Views that are remembered."""


class DomainWatch:
    """The last message of each sender in each group that each process was given.

    Args:
        promised: the properties of the domain.
    """

    def __init__(self, promised: Collection[str]) -> None:
        self._promised = "domain_groups" in promised
        self._given: dict[tuple[MemberId, str], dict[MemberId, Event]] = {}
        self._views: dict[tuple[str, int | None], Event] = {}
        self._latest: dict[tuple[MemberId, str], Event] = {}

    def feed(self, event: Event) -> Iterator[Alarm]:
        """One more event of a process."""
        if not self._promised or event.kind not in (GIVEN, LEFT, OUT, VIEW):
            return
        text = text_of(event)
        here = event.process, text.group
        if event.kind is VIEW:
            yield from self._view(event, text.group)
        elif event.kind is GIVEN:
            if not text.direct:
                yield from self._message(event, text.group)
        else:  # who comes back is another member there
            self._given.pop(here, None)
            self._latest.pop(here, None)

    def _view(self, event: Event, group: str) -> Iterator[Alarm]:
        first = self._views.setdefault((group, event.view), event)
        if first.members != event.members:
            differ = (
                f"{group}: {event.process} and {first.process} differ in the members of view {event.view}"
            )
            yield Alarm("domain_groups", differ, (first, event))
        if len(self._views) > _MOST:
            del self._views[next(iter(self._views))]
        before = self._latest.get((event.process, group))
        if before is not None and (event.view or 0) <= (before.view or 0):
            said = f"{group}: {event.process} installed view {event.view} and was in view {before.view}"
            yield Alarm("domain_groups", said, (before, event))
        self._latest[event.process, group] = event

    def _message(self, event: Event, group: str) -> Iterator[Alarm]:
        assert event.sender is not None
        rows = self._given.setdefault((event.process, group), {})
        before = rows.get(event.sender)
        if before is not None and event.seq <= before.last:
            again = f"{group}: {event.process} was given ({event.sender},{event.seq}) after {before.last}"
            yield Alarm("domain_groups", again, (before, event))
        if before is None or event.last > before.last:
            rows[event.sender] = event

    def size(self) -> int:
        """How many rows are remembered."""
        return len(self._views) + len(self._latest) + sum(map(len, self._given.values()))
