"""What a logger has to do with the others: they exchange messages, promises and sessions, or forget one."""

from collections.abc import Callable
from typing import Any

from semcast.core.events import Left
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox
from semcast.protocols.gossip.admission import Admission
from semcast.protocols.gossip.beginning import Beginning
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.colleagues import Colleagues
from semcast.protocols.gossip.copying import Copying
from semcast.protocols.gossip.departing import Departing
from semcast.protocols.gossip.ending import Ending
from semcast.protocols.gossip.forgetting import FORGOTTEN, Forgetting
from semcast.protocols.gossip.frames import (
    Begin,
    Closed,
    Disown,
    Disowned,
    Gone,
    Heard,
    Inquire,
    Logged,
    Notice,
    Past,
    Promise,
    Seek,
    Share,
    Shared,
    Sought,
)
from semcast.protocols.gossip.intake import Intake
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.pulling import Pulling
from semcast.protocols.gossip.retention import Retaining

Handler = Callable[[Nanos, MemberId, Any], None]


class Cooperating:
    """Of one logger.

    Args:
        me: this logger.
        lease: how long sessions have to come here when theirs is forgotten.
        books: what it has.
        roster: who is there.
        colleagues: the others.
        forgetting: remembers who never comes back.
        beginning: what a new log has to know first.
        retaining: what stays in the log.
        ending: ends streams.
        departing: knows who is gone.
        intake: takes messages in.
        admission: its sessions.
        pulling: asks others for messages.
        copying: waits for what others have on disk.
        end: to stop, because the others go on without this one.
        out: where frames go.
    """

    def __init__(
        self,
        me: MemberId,
        lease: Nanos,
        books: Books,
        roster: Roster,
        colleagues: Colleagues,
        forgetting: Forgetting,
        beginning: Beginning,
        retaining: Retaining,
        ending: Ending,
        departing: Departing,
        intake: Intake,
        admission: Admission,
        pulling: Pulling,
        copying: Copying,
        end: Callable[[], None],
        out: Outbox,
    ) -> None:
        self._me = me
        self._lease = lease
        self._books = books
        self._roster = roster
        self._colleagues = colleagues
        self._forgetting = forgetting
        self._beginning = beginning
        self._retaining = retaining
        self._ending = ending
        self._departing = departing
        self._intake = intake
        self._admission = admission
        self._pulling = pulling
        self._copying = copying
        self._end = end
        self._out = out
        forgetting.then = self._go_on_without
        self.handlers: dict[type[Frame], Handler] = {
            Promise: self._on_promise,
            Share: self._on_share,
            Shared: lambda _now, source, frame: admission.on_shared(source, frame),
            Seek: lambda _now, source, frame: admission.sharing.on_seek(source, frame),
            Sought: admission.on_sought,
            Inquire: lambda _now, source, frame: ending.on_inquire(source, frame),
            Closed: ending.on_closed,
            Notice: pulling.on_notice,
            Gone: pulling.on_gone,
            Heard: departing.on_heard,
            Logged: self._on_logged,
        }
        self.beginners: dict[type[Frame], Handler] = {
            Begin: lambda _now, source, frame: beginning.on_begin(source, frame),
            Past: beginning.on_past,
            Disown: self._on_disown,
            Disowned: forgetting.on_disowned,
        }
        """Also before the log is in use."""

    def exchange(self, now: Nanos, number: int) -> None:
        """In each round: messages, promises, sessions."""
        self._pulling.ask(number)
        streams = self._books.streams.values() if self._retaining.waits(now) else ()
        self._colleagues.promise(number, [(stream.sender, stream.floor) for stream in streams])
        self._colleagues.share()
        self._admission.sharing.seek()

    def _on_promise(self, _now: Nanos, source: MemberId, frame: Promise) -> None:
        self._colleagues.on_promise(source, frame)
        for stream, _, logged in frame.promised:
            self._intake.hear_of(stream, logged)
        self._copying.look()

    def _on_logged(self, _now: Nanos, source: MemberId, frame: Logged) -> None:
        for stream, upto in frame.upto:
            self._colleagues.on_logged(source, frame.log, stream, upto)
        self._copying.look()

    def _on_share(self, now: Nanos, source: MemberId, frame: Share) -> None:
        self._admission.sharing.on_share(now, source, frame)
        if frame.over:
            self._departing.gone(frame.member)

    # Who never comes back

    def _on_disown(self, now: Nanos, source: MemberId, frame: Disown) -> None:
        if self._me.name not in frame.names:
            self._forgetting.on_disown(now, source, frame)
        else:
            self._end()
            self._out.deliver(Left(f"{source.name} goes on without {self._me.name}: {FORGOTTEN}"))

    def _go_on_without(self, now: Nanos, name: str) -> None:
        """On disk: nobody waits for that logger any more, and its sessions have time to come here."""
        self._colleagues.forget(name)
        self._roster.disown(name)
        self._retaining.start()  # what waited for that logger's disk
        self._retaining.wait_for_reports(now)
        self._ending.wait_for_sessions(now + self._lease)
        for stream in [each for each in self._books.streams if each.name == name]:
            self._departing.gone(stream)
        self._departing.excuse(now)
        self._departing.end_all()
        self._beginning.look(now)
        self._admission.look(now)
        self._copying.look()
