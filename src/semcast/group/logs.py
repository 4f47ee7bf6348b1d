"""What people who run a group want to read in their logs: `semcast.group` and `semcast.network`.

INFO for joining, views and leaving, WARNING for trouble. Names, numbers and addresses; never what messages
say, and nothing about keys.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from semcast.core.events import (
    Away,
    Delivery,
    Event,
    Left,
    Minority,
    NotAdmitted,
    StateLost,
    TransitionalView,
    ViewChange,
)
from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.core.watchers import Onlooker
from semcast.net.addresses import written
from semcast.net.hub import Hub
from semcast.wire import Malformed

_GROUP = logging.getLogger("semcast.group")
_NETWORK = logging.getLogger("semcast.network")
_VIEWS = logging.getLogger("semcast.views")
_AGAIN = 60.0
"""Seconds after which the same trouble is told again."""
_MOST_REFUSED = 64
"""Processes of which it is remembered that they were refused."""
_TOLD = frozenset({ViewChange, Left, NotAdmitted, Away, Minority})
"""Events that are written down."""
_HARMLESS = frozenset({Malformed.GROUP, Malformed.STALE})
"""Several groups may share a meeting point, and sessions end."""


def plain(name: str) -> str:
    r"""A name that others chose, on one line.

    >>> plain("a\nb")
    'a\\nb'
    """
    return name if name.isprintable() else name.encode("unicode_escape").decode("ascii")


def names(members: Iterable[MemberId]) -> str:
    """Members in a line of the log."""
    return ", ".join(plain(member.name) for member in members)


class GroupLog(Onlooker):
    """Tells what happens to one member. Told in the loop's thread.

    Args:
        group: its name.
        member: who this is.
    """

    def __init__(self, group: str, member: MemberId, clock: Callable[[], Nanos] = time.monotonic_ns) -> None:
        self._group = plain(group)
        self._clock = clock
        self._member = member
        self._left: Left | None = None
        self._refused: dict[tuple[MemberId, str], float] = {}  # who was not let in and why, told when
        self._unheard = -_AGAIN  # when it was told last that no logger hears this member

    def joins(self, stack: str, host: str, port: int) -> None:
        """It begins to look for others."""
        member = plain(str(self._member))
        _GROUP.info("%s: %s joins (%s) at %s port %d", self._group, member, stack, host, port)

    def forgets(self, minimum: int) -> None:
        """It founds the group with others, and remembers nothing after a crash."""
        _VIEWS.warning(
            "%s: founded by %d without data=: there is one group only while a majority of the founders never"
            " crashes at once",
            self._group,
            minimum,
        )

    def promises(self, what: str) -> None:
        """What its group cannot promise."""
        _GROUP.warning("%s: %s joins with %s", self._group, plain(str(self._member)), what)

    def waits(self, seconds: float, phase: str, members: Sequence[MemberId], advice: str) -> None:
        """`join` has not come back yet."""
        _GROUP.warning(
            "%s: %s has waited for %g s (%s, with %s): %s",
            self._group,
            plain(str(self._member)),
            seconds,
            phase,
            names(member for member in members if member != self._member) or "nobody",
            advice,
        )

    def unread(self) -> None:
        """A joiner waits for what this program has not read yet."""
        _GROUP.warning(
            "%s: a joiner waits for the state of %s, which has not read its events: iterate over the group",
            self._group,
            plain(str(self._member)),
        )

    def failed(self, error: BaseException) -> None:
        """Something that must not happen did."""
        _GROUP.error("%s: %s failed", self._group, plain(str(self._member)), exc_info=error)

    # What a turn tells

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """Ends, minorities and loggers that do not answer, and views where the stack announces them."""
        for event in events:
            if type(event) not in _TOLD:  # most are not: sends, and what was purged
                continue
            if isinstance(event, ViewChange):
                self._view(event)
            elif isinstance(event, Left):
                self._out(event)
            elif isinstance(event, NotAdmitted):
                self._not_admitted(event)
            elif isinstance(event, Away):
                self._away()
            elif isinstance(event, Minority):
                _GROUP.warning(
                    "%s: %s is cut off from the majority: %d can be reached, %d are needed; it waits",
                    self._group,
                    plain(self._member.name),
                    event.reachable,
                    event.needed,
                )

    def _away(self) -> None:
        """Who loses its logger may lose it over and over: once in a while is enough."""
        now = self._clock() / SECOND
        if now - self._unheard >= _AGAIN:
            self._unheard = now
            _GROUP.warning(
                "%s: no logger answers %s; it goes on when one does: does `semcast logger` run?",
                self._group,
                plain(str(self._member)),
            )

    def _not_admitted(self, event: NotAdmitted) -> None:
        """Who is refused comes again and again: once in a while is enough."""
        what, now = (event.member, event.cause), self._clock() / SECOND
        if now - self._refused.get(what, -_AGAIN) < _AGAIN:
            return
        if len(self._refused) >= _MOST_REFUSED:
            self._refused.clear()
        self._refused[what] = now
        _GROUP.warning("%s: %s is not let in: %s", self._group, plain(str(event.member)), plain(event.cause))

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:  # noqa: ARG002
        """Views come between messages."""
        for each in deliveries:
            if type(each) is ViewChange:
                self._view(each)
            elif type(each) is StateLost:
                _VIEWS.error("%s: the state is lost: %s; it begins anew", self._group, each.cause)
            elif type(each) is TransitionalView:
                _GROUP.debug(
                    "%s: %s go on from view %s", self._group, names(each.view.members), each.view.name
                )

    def on_renewal(self, now: Nanos, member: MemberId) -> None:  # noqa: ARG002
        """The group went on without this member."""
        _GROUP.warning("%s: %s comes back as %s", self._group, plain(str(self._member)), plain(str(member)))
        self._member = member

    def _view(self, change: ViewChange) -> None:
        view = change.view
        told = [f"{what} {names(who)}" for what, who in _changes(change) if who]
        if view.reformed is not None:
            told.append(f"re-formed after view {view.reformed} without a majority of it")
        _GROUP.log(
            logging.WARNING if change.failed or view.reformed is not None else logging.INFO,
            "%s: view %s of %d: %s%s",
            self._group,
            plain(view.name),
            len(view.members),
            names(view.members),
            f" ({'; '.join(told)})" if told else "",
        )

    def _out(self, left: Left) -> None:
        level = logging.WARNING if left.again else logging.INFO
        _GROUP.log(level, "%s: %s left: %s", self._group, plain(str(self._member)), plain(left.cause))


def _changes(change: ViewChange) -> list[tuple[str, tuple[MemberId, ...]]]:
    joined = () if change.joined == change.view.members else change.joined
    return [("joined", joined), ("left", change.left), ("failed", change.failed)]


class NetworkLog:
    """Tells of datagrams that were of no use: wrong keys, forgeries, floods.

    Args:
        group: its name.
        hub: where they arrive.
    """

    def __init__(self, group: str, hub: Hub, clock: Callable[[], Nanos] = time.monotonic_ns) -> None:
        self._group = plain(group)
        self._clock = clock
        self._hub = hub
        self._namesakes: dict[str, float] = {}  # names that several have, told when
        self._told: dict[str, tuple[int, float]] = {}  # what -> how often by then, and when it was told

    def look(self) -> None:
        """Once a second, in the loop's thread."""
        first = self._hub.speaks_first  # else another group tells what came to the sockets that they share
        for why, count in (self._hub.malformed() if first else self._hub.stats.malformed).items():
            if why not in _HARMLESS:
                self._tell(f"dropped: {why.value}", count)
        self._look_for_namesakes()
        if not first:
            return
        sockets = self._hub.traffic()
        self._tell("lost because they came faster than they were read", sockets.kernel_drops)
        self._tell("kept out: their sources flood this member", sockets.kept_out)

    def _look_for_namesakes(self) -> None:
        """Two sides of a partition may each have had somebody of one name. Both stay."""
        places: dict[str, list[str]] = {}
        for member, address in self._hub.whereabouts():
            where = "a place unknown" if address is None else written(address)
            places.setdefault(member.name, []).append(where)
        for name, found in places.items():
            now = self._clock() / SECOND
            if len(found) > 1 and now - self._namesakes.get(name, -_AGAIN) >= _AGAIN:
                self._namesakes = {each: at for each, at in self._namesakes.items() if now - at < _AGAIN}
                self._namesakes[name] = now
                _NETWORK.warning(
                    "%s: several members are called %s, at %s: a name stands for one process",
                    self._group,
                    plain(name),
                    " and ".join(found),
                )

    def _tell(self, what: str, count: int) -> None:
        before, at = self._told.get(what, (0, -_AGAIN))
        now = self._clock() / SECOND
        if count > before and now - at >= _AGAIN:
            self._told[what] = count, now
            _NETWORK.warning("%s: %d datagrams %s", self._group, count - before, what)
