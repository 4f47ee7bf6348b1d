"""Calls: who answers was asked, and answers once; what is said counts once, and from who is there."""

from collections.abc import Collection, Iterator

from semcast.core.ids import MemberId
from semcast.history.events import Event
from semcast.specs.calls.kinds import ASKED, DEPARTED, HEARD, SAID
from semcast.specs.prefix.alarm import Alarm

_MOST = 1 << 14
"""Requests and answers that are remembered; what is answered later than so many others is not compared."""

_About = tuple[MemberId, MemberId, int]
"""A process, who is in the row with it, and the number of the call."""


class CallWatch:
    """What was asked, said and heard last.

    Args:
        promised: the properties of the group.
    """

    def __init__(self, promised: Collection[str]) -> None:
        self._promised = "call_replies" in promised
        self._rows = {kind: dict[_About, Event]() for kind in (ASKED, SAID, HEARD, DEPARTED)}
        self._forgot = False

    def feed(self, event: Event) -> Iterator[Alarm]:
        """One more event of a process."""
        if not self._promised or event.kind not in self._rows:
            return
        who = event.members[0] if event.kind in (HEARD, DEPARTED) and event.members else event.sender
        assert who is not None
        about = event.process, who, event.seq
        rows = self._rows[event.kind]
        before = rows.setdefault(about, event)
        if len(rows) > _MOST:
            del rows[next(iter(rows))]
            self._forgot = True
        if event.kind is SAID:
            if before is not event:
                yield self._alarm(f"{event.process} answers twice", before, event)
            elif about not in self._rows[ASKED] and not self._forgot:
                yield self._alarm(f"{event.process} answers what it was never asked", event)
        elif event.kind is HEARD:
            departed = self._rows[DEPARTED].get(about)
            if before is not event:
                yield self._alarm(f"{who} counts twice", before, event)
            elif departed is not None:
                yield self._alarm(f"{who} had departed, and its reply counts", departed, event)

    def _alarm(self, detail: str, *events: Event) -> Alarm:
        return Alarm("call_replies", detail, events)

    def size(self) -> int:
        """How many rows are remembered."""
        return sum(map(len, self._rows.values()))
