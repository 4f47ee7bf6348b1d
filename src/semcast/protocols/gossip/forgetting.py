"""How loggers go on without one that never comes back: an operator says so, and all others agree.

A logger that is away holds up collection, the end of streams and the return of sessions, since it may know
more than the others. Who says that it never comes back says that its disk is lost: what only it had is.

Each logger has the names of those that are forgotten on disk. The set only grows, whoever learns of a name
tells all others until they have it on disk, too, and nobody takes a word of a forgotten logger any more. That
is enough for one decision about each stream: a decider asks all loggers that it knows, and whoever answers
one decider has forgotten the former, and takes no more from it.

A forgotten logger that turns up is told so, and ends. Its name is never used again.
"""

from collections.abc import Callable

from semcast.core.events import Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.frames import Begin, Disown, Disowned, Inquire, Join, Presence, Promise
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.records import Forgot
from semcast.protocols.gossip.settings import GossipSettings

FORGOTTEN = "it was forgotten (semcast log forget), and is not taken back; give a new logger another name"
_REFUSED = (Begin, Presence, Promise, Inquire, Join)
"""What a forgotten logger is answered to; it says one of these each round."""

Then = Callable[[Nanos, str], None]


class Forgetting:
    """Of one logger.

    Args:
        me: this logger.
        settings: of the group.
        books: with the names of those that are forgotten.
        journal: to write to, and to wait for.
        colleagues: the other loggers.
        out: where frames go.
    """

    def __init__(
        self,
        me: MemberId,
        settings: GossipSettings,
        books: Books,
        journal: Journal,
        colleagues: Colleagues,
        out: Outbox,
    ) -> None:
        self._me = me
        self._settings = settings
        self._books = books
        self._journal = journal
        self._colleagues = colleagues
        self._out = out
        self._known: dict[str, set[str]] = {}  # by logger: what it has on disk
        self._waiting: list[tuple[str, Callable[[], None]]] = []
        self.then: Then = _nothing
        """Called when it is on disk that somebody is forgotten."""

    def forget(self, name: str, done: Callable[[], None]) -> None:
        """An operator wants it; told when all have it on disk. Raises ValueError where that cannot be."""
        if name not in self._books.forgotten:
            self._check(name)
            self._write([name])
        self._waiting.append((name, done))
        self._journal.then(lambda _now: self._settle())

    def _check(self, name: str) -> None:
        others = self._colleagues.names
        if name == self._me.name:
            raise ValueError(f"{name} cannot forget itself: ask another logger")
        if name not in others:
            known = ", ".join(others) or "none"
            raise ValueError(f"there is no other logger {name!r}: there are {known}")
        if self._colleagues.hears(name):
            raise ValueError(f"{name} is there: stop it first, and wait until it is not heard of any more")
        if len(others) < self._settings.log_acks:
            raise ValueError(
                f"log_acks is {self._settings.log_acks}, and only {len(others)} would be left: set it lower"
                " everywhere first"
            )

    def _write(self, names: list[str]) -> None:
        new = [name for name in names if name not in self._books.forgotten]
        for name in new:
            self._books.forgotten[name] = None
            self._journal.write(Forgot(name))
        if new:
            self._journal.then(lambda now: self._forgotten(now, new))

    def _forgotten(self, now: Nanos, names: list[str]) -> None:
        for name in names:
            self._out.deliver(Note("forgot", members=(MemberId(name),)))
            self.then(now, name)
        self.announce(names)

    def announce(self, names: list[str]) -> None:
        """To everybody: who misses that is told later."""
        self._out.multicast(Disown(names))

    # Among loggers

    def share(self) -> None:
        """Tell those that may not know it."""
        names = list(self._books.forgotten)
        for colleague in self._colleagues.there() if names else ():
            if not self._known.get(colleague.name, set()).issuperset(names):
                self._out.send(colleague, Disown(names))

    def remind(self, names: list[str]) -> None:
        """Members were told of these, by disks that are lost."""
        self._write([name for name in names if name in self._colleagues.names])

    def on_disown(self, _now: Nanos, source: MemberId, frame: Disown) -> None:
        """Another logger goes on without some: so does this one; answered when it is on disk."""
        self._write([name for name in frame.names if name in self._settings.loggers])
        self._journal.then(lambda _now: self._out.send(source, Disowned(list(self._books.forgotten))))

    def on_disowned(self, _now: Nanos, source: MemberId, frame: Disowned) -> None:
        """Another logger has these on disk."""
        self._known[source.name] = set(frame.names)
        self._settle()

    def _settle(self) -> None:
        """Who asked is answered as soon as all that are left have it on disk."""
        waiting, self._waiting = self._waiting, []
        for name, done in waiting:
            if all(name in self._known.get(other, ()) for other in self._colleagues.names):
                done()
            else:
                self._waiting.append((name, done))

    def began(self, colleague: str) -> None:
        """Another logger lost its disk, and with it what it knew."""
        self._known.pop(colleague, None)

    # The forgotten one, and members

    def refuse(self, _now: Nanos, source: MemberId, frame: Frame) -> None:
        """Nothing of what a forgotten logger says counts; it is told so."""
        if isinstance(frame, _REFUSED):
            self._out.send(source, Disown([source.name]))

    def tell(self, member: MemberId) -> None:
        """Whose word a member must not count."""
        if self._books.forgotten:
            self._out.send(member, Disown(list(self._books.forgotten)))


def _nothing(_now: Nanos, _name: str) -> None:
    """Set by the logger."""
