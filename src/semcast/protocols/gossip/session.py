"""A member's session at its logger: admission, reports, leaving (5.2, 5.3 in its simple form: loggers admit).

Deviations. A report says what the *program* is through with, where the paper derives acknowledgements from
what gossip does not ask for: that says received, not delivered, and knows nothing of what a member asks the
logger for (R-3, R-9). `Confirm` names the attempt, and every answer the incarnation. At most once: the
logger's numbers may be older than what the incarnation before delivered, so each sender is asked which number
it gave last, after the confirmation.

Where no logger is there, sponsors admit (`applying.py`).
"""

from collections.abc import Callable
from typing import NamedTuple

from semcast.core.events import Away, Back, Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.frames import (
    Confirm,
    Farewell,
    Join,
    Leave,
    Refused,
    Report,
    Reported,
    Said,
    Say,
    Through,
    reports,
)
from semcast.protocols.gossip.receiver import Receiver
from semcast.protocols.gossip.sender import Sender
from semcast.protocols.gossip.settings import GossipSettings

_IN_VAIN = 3
"""Periods without an answer to a report after which a session counts as away."""
_DOUBLINGS = 3
"""How often a session that nobody admits becomes twice as patient: an admission takes longer than a report,
as several loggers write it down. An attempt that is given up too early is worth nothing."""
_UNANSWERED = 16
"""Reports that may be on their way: the logger may be far."""
_MOST = 256
"""Streams at a time of which something is awaited."""


class _Sent(NamedTuple):
    at: Nanos
    attempt: int
    whole: int
    parts: dict[int, list[Through]]


def _all_of_it(_stream: MemberId, through: int) -> int:
    return through


def _always() -> bool:
    return True


def _no() -> bool:
    return False


class Session:
    """Where the member stands with its logger, if there is one."""

    def __init__(
        self, me: MemberId, settings: GossipSettings, receiver: Receiver, sender: Sender, out: Outbox
    ) -> None:
        self.admitted = not settings.logs and not settings.sponsored
        """Whether anything may be received."""
        self.over = False
        """Whether the session has ended."""
        self.logger: MemberId | None = None
        """Its home; None where there are no loggers, or none was found yet."""
        self._me = me
        self._settings = settings
        self._receiver = receiver
        self._sender = sender
        self._out = out
        self.attempt = 1
        """Another one for each logger that is asked, and whenever sponsors are."""
        self._in_vain = 0  # attempts at loggers that were given up since it began
        self._t_join: dict[MemberId, int] = {}  # where streams begin, as sponsors said
        self.bound: Callable[[MemberId, int], int] = _all_of_it
        """As much of what it is through with as a logger may know."""
        self.tells_others: Callable[[], bool] = _no
        """To say to other members that this one leaves; False if there is nobody to be told."""
        self.may_leave: Callable[[], bool] = _always
        """Whether nobody else depends on this session."""
        self.leaving = False
        """Whether the member wants to leave."""
        self.why = ""
        """Why it cannot stay, where it gives up."""
        self._asked_others = False  # a logger that did not answer in time, and may have admitted it
        self._sponsored_at = 0  # the attempt that sponsors were last asked with
        self._confirmed: dict[int, Confirm] = {}
        self._asks_senders = False
        self._frozen: dict[MemberId, None] = {}  # streams that are being closed before they were heard of
        self._unsure: dict[MemberId, None] = {}  # streams that wait for a word of their sender
        self._reminders: dict[MemberId, int] = {}
        self._serial = 0
        self._reports: dict[int, _Sent] = {}
        self._heard_at: Nanos = 0  # when the last report was sent that was answered; before, when it began
        self._moved_at: Nanos = 0
        self._moving = False  # its logger has not answered a report yet
        self._away = False

    @property
    def level(self) -> str:
        """What a crash does to it."""
        return "at-most-once" if self._settings.at_most_once else "at-least-once"

    def start(self, now: Nanos) -> None:
        """Begin to ask for admission."""
        self._heard_at = now
        if self._settings.logs:
            start, at, filter_ = self._settings.start, self._settings.start_at, self._settings.filter
            self._out.deliver(Note("begin", level=start, order=at, digest=filter_ or None))
            if self._settings.explicit:
                self._out.deliver(Note("explicit"))
        self._ask()

    def move(self, now: Nanos, logger: MemberId) -> None:
        """This is the logger from now on, or another incarnation of it.

        A session that was admitted moves with its own position: its next report says it.
        """
        former, self.logger = self.logger, logger
        if former is not None and former.name == logger.name:
            self._asked_others = self._asked_others or former != logger
            if former != logger and self._with_sponsors:
                self.leave_sponsors(now)
            return
        self._moved_at = now
        self._asked_others = self._asked_others or former is not None
        if former is not None or self._with_sponsors:
            self._moving = former is not None
            self.attempt += 1
            self._confirmed.clear()
        if not self.admitted and not self.why:
            self._in_vain += former is not None
            self._ask()

    def deserted(self, now: Nanos) -> bool:
        """Whether its logger has not answered for so long that another may be better."""
        return self.logger is not None and now - self._last_word > self._patience

    @property
    def _patience(self) -> Nanos:
        """How long a logger may take to answer."""
        doublings = 0 if self.admitted else min(self._in_vain, _DOUBLINGS)
        return (_IN_VAIN * self._settings.report) << doublings

    def leave(self, now: Nanos) -> None:
        """End the session as soon as what was sent is logged."""
        self.leaving = True
        self._out.deliver(Note("detached" if self._settings.stays else "leave"))
        if not self._settings.logs:
            self.over = not self.tells_others()
        elif self.logger is None and not self.admitted:
            self.over = True
        else:
            self.on_period(now)

    def give_up(self, now: Nanos, why: str) -> bool:
        """It cannot stay; returns whether a logger has to end the session first.

        Who is refused may have one all the same: of a logger that was asked before, and was slow. Nobody
        would use it, and logs would keep everything for it.
        """
        settings = self._settings
        may_have_one = not settings.stays if self.admitted else self._asked_others or self._sponsored_at > 0
        if not may_have_one:
            return False
        self.why = why
        if not self.leaving:
            self.leaving = True
            self._out.deliver(Note("leave"))
        self.on_period(now)
        return True

    @property
    def parting(self) -> bool:
        """Whether it wants to leave, and nothing holds it: its logger is asked to end the session."""
        logged = self._sender.logged == self._sender.seq
        return self.leaving and (logged or bool(self.why)) and self.may_leave()

    def on_period(self, now: Nanos) -> None:
        """It is time for a report, or for another try."""
        if self._settings.logs and now - self._heard_at > _IN_VAIN * self._settings.report:
            self.go_away(now)
        if self.logger is None:
            return  # nobody is there to be asked
        if self.parting:
            if self._settings.stays and not self.why:
                self._report(now)
                self.over = True
                return
            self._out.send(self.logger, Leave(self._sender.seq))
        elif not self.admitted:
            self._ask()
        elif not self._report_again(now):
            self._report(now)
        self.ask_senders()

    def ask_senders(self) -> None:
        """Those that have yet to say where they are."""
        for stream in self._unsure:
            self._ask_sender(stream)

    def go_away(self, now: Nanos) -> None:
        """No logger hears it any more, or none will; nor has since the last report that was answered."""
        if not self._away:
            self._away = True
            self._out.deliver(Note("disconnect", order=now - self._heard_at))
            self._out.deliver(Away())

    def is_meant(self, incarnation: int) -> bool:
        """Whether an answer is to this incarnation, and not to one before, which asked the same."""
        return incarnation == self._me.incarnation

    # Admission

    def _ask(self) -> None:
        if self.logger is not None and not self._with_sponsors:
            settings = self._settings
            join = Join(
                self.attempt,
                settings.start,
                settings.at_most_once,
                settings.start_at,
                settings.start_log,
                settings.filter,
                again=self._me.incarnation > 0,
            )
            self._out.send(self.logger, join)

    def on_refused(self, frame: Refused) -> str | None:
        """The logger does not admit; returns why, if that is about this attempt."""
        mine = frame.attempt == self.attempt and self.is_meant(frame.incarnation)
        return frame.why if mine and not self.admitted else None

    def on_confirm(self, frame: Confirm) -> bool:
        """The logger admits; returns whether that is complete."""
        mine = frame.attempt == self.attempt and self.is_meant(frame.incarnation)
        if self.admitted or not mine or frame.part >= frame.parts:
            return False
        if any(part.parts != frame.parts for part in self._confirmed.values()):
            self._confirmed.clear()
        self._confirmed[frame.part] = frame
        if len(self._confirmed) < frame.parts:
            return False
        self.admitted = True
        self._asks_senders = self._must_ask(frame)
        for part in self._confirmed.values():
            self._begin(part)
        self._confirmed.clear()
        return True

    def _must_ask(self, confirmed: Confirm) -> bool:
        """Whether a former incarnation may have delivered more than the logger knows."""
        return self._settings.at_most_once and (confirmed.again or self._me.incarnation > 0)

    def _begin(self, confirmed: Confirm) -> None:
        """Streams that the logger knows begin at once; or when their senders have said where they are."""
        for stream, last in confirmed.ended:
            if stream not in self._receiver.ended:
                self._receiver.end(stream, last)
                self._out.deliver(Note("start", sender=stream, seq=last, level=self.level))
        for stream, seq in confirmed.after:
            if self._asks_senders:
                self.doubt(stream)
            elif stream not in self._receiver.streams and stream not in self._receiver.ended:
                self._receiver.open(stream, seq, self.level)

    def start_of(self, stream: MemberId) -> int | None:
        """After which number this member is owed a stream; None if that is not known yet."""
        if not self.admitted:
            return None
        if self._asks_senders:
            self.doubt(stream)
            return None
        if not self._settings.logs and not self._settings.sponsored and self._me.incarnation > 0:
            return None  # it begins with what it hears
        return self._t_join.get(stream, 0)

    # Sponsors

    def needs_sponsors(self, now: Nanos) -> bool:
        """Whether no logger was there for so long that others may take this member in.

        Only who begins with what comes, and never had a session: where else to begin, a logger alone knows.
        """
        settings = self._settings
        new = settings.start == "new" and self._me.incarnation == 0
        waits = settings.logs and not self.admitted and not self.leaving
        return settings.sponsored and new and waits and now - self._last_word > self._patience

    @property
    def _last_word(self) -> Nanos:
        return max(self._heard_at, self._moved_at)

    def another_attempt(self) -> int:
        """What answers the former one does not count any more."""
        self.attempt += 1
        self._sponsored_at = self.attempt
        self._confirmed.clear()
        return self.attempt

    @property
    def _with_sponsors(self) -> bool:
        """Whether the attempt is theirs: a logger that admitted it too would begin elsewhere."""
        return self.attempt == self._sponsored_at and not self.admitted

    def leave_sponsors(self, now: Nanos) -> None:
        """Too few answer: ask loggers for a while."""
        self.attempt += 1
        self._in_vain += 1
        self._moved_at = now
        self._ask()

    def begin_after(self, t_join: dict[MemberId, int]) -> None:
        """Sponsors have taken this member in; what comes after that is owed to it."""
        self.admitted = True
        self._t_join = t_join
        self._asks_senders = self._settings.at_most_once and self._me.incarnation > 0
        for stream, seq in sorted(t_join.items()):
            if self._asks_senders:
                self.doubt(stream)
            elif stream not in self._receiver.streams and stream not in self._receiver.ended:
                self._receiver.open(stream, seq, self.level)

    def freeze(self, stream: MemberId) -> None:
        """A stream is being closed of which nothing was heard here: it will come from logs, if at all."""
        if len(self._frozen) < _MOST:
            self._frozen[stream] = None

    def is_frozen(self, stream: MemberId) -> bool:
        """Whether that was said of it."""
        return stream in self._frozen

    def doubt(self, stream: MemberId) -> None:
        """Ask a sender which number it gave last."""
        if stream not in self._unsure and stream not in self._receiver.streams and len(self._unsure) < _MOST:
            self._unsure[stream] = None
            self._ask_sender(stream)

    def _ask_sender(self, stream: MemberId) -> None:
        """A former incarnation of this member says nothing any more: its stream is closed, some time."""
        if stream.name != self._me.name:
            self._out.send(stream, Say(self._me.incarnation))

    def on_said(self, source: MemberId, frame: Said) -> int | None:
        """The word of a sender; returns it if it was awaited."""
        if source not in self._unsure or frame.fresh != self._me.incarnation:
            return None
        del self._unsure[source]
        return frame.seq

    def remind(self, stream: MemberId, last: int) -> None:
        """The logger does not know that all of a stream that is over is settled here."""
        if last and len(self._reminders) < _MOST:
            self._reminders[stream] = last

    def settled(self, stream: MemberId) -> None:
        """A stream is over: nobody need say anything about it."""
        self._frozen.pop(stream, None)
        self._unsure.pop(stream, None)

    # Reports

    def _report(self, now: Nanos) -> None:
        self._serial += 1
        self._reports.pop(self._serial - _UNANSWERED, None)
        vector = self._receiver.standing()
        vector += [(stream, last, 0) for stream, last in self._reminders.items()]
        self._reminders.clear()
        if self._moving:  # its new logger knows nothing of what it is through with
            vector += [(stream, last, last) for stream, last in self._receiver.ended.entries()]
        parts = reports((stream, self.bound(stream, seq), known) for stream, seq, known in vector)
        self._reports[self._serial] = sent = _Sent(now, self.attempt, len(parts), dict(enumerate(parts)))
        self._send_report(sent)

    def _report_again(self, now: Nanos) -> bool:
        """The last one, if it has several parts and none was answered: some of them may have been lost.

        A logger to which the session is new waits for all parts of one report.
        """
        sent = self._reports.get(self._serial)
        if sent is None or sent.whole == 1 or len(sent.parts) < sent.whole or sent.attempt != self.attempt:
            return False
        if now - sent.at >= _IN_VAIN * self._settings.report:
            return False
        self._send_report(sent)
        return True

    def _send_report(self, sent: _Sent) -> None:
        assert self.logger is not None
        for part, through in sent.parts.items():
            self._out.send(self.logger, Report(self._serial, sent.attempt, through, part, sent.whole))

    def on_reported(self, frame: Reported) -> bool:
        """The logger has heard; returns whether that answers one of the last reports."""
        report = self._reports.get(frame.serial) if self.is_meant(frame.incarnation) else None
        if report is None or frame.part not in report.parts:
            return False
        for stream, through, _ in report.parts.pop(frame.part):
            found = self._receiver.streams.get(stream)
            if found is not None and found.last is not None and through >= found.last:
                self._receiver.finish(stream)
        if not report.parts:
            del self._reports[frame.serial]
            self._moving = self._moving and report.at < self._moved_at
            self._heard_at = max(self._heard_at, report.at)
            if self._away:
                self._away = False
                self._out.deliver(Note("reconnect"))
                self._out.deliver(Back())
        return True

    def on_farewell(self, frame: Farewell) -> bool:
        """The logger has written down that a session is over; returns whether it is this one."""
        if not self.is_meant(frame.incarnation):
            return False
        self.over = self.leaving
        return True
