"""Primary-backup replication (Pereira 2002, 2.3.2): one member executes, the others get what changed.

The primary is the first member of the view. It executes a request and multicasts what changed, with the
reply, as one operation; so backups that are slow skip what was overwritten. A request made at another
member is multicast, and everybody keeps it until its reply is there: when the primary fails, the next one
has, by view synchrony, a state that the primary had and all requests that this state does not answer, and
executes those. So each request that is answered was executed once, whoever failed meanwhile.

Deviation: replies wait for no acknowledgements of their own. A member is given the answer when the
operation is delivered to it; with uniform delivery that means that it survives whichever minority fails,
without it an answer may be forgotten if the primary fails right then.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from semcast.core.events import ViewChange
from semcast.core.ids import MemberId
from semcast.core.messages import Message
from semcast.obsolescence import OperationTracker
from semcast.patterns.operations import (
    Changes,
    Commit,
    OperationPart,
    Update,
    Value,
    Writer,
    WriterState,
    assign,
)
from semcast.patterns.pattern import Pattern, PatternMessage

_REPLY = "\0"
"""Replies are items, too: their names begin with this, and those of the application do not."""


class Executed(NamedTuple):
    """What executing a request comes to: which items change, and what is answered."""

    changes: Changes
    reply: bytes


class BackupReply(NamedTuple):
    """The reply to a request that was made here."""

    number: int
    reply: bytes


Execute = Callable[[Mapping[str, bytes], bytes], Executed]
"""Called with the state and a request, at the primary alone; must not raise."""


class Request(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A request, for the primary. It takes a slot, whose last request has been answered."""

    number: int
    slot: int
    body: bytes


class _Reply(msgspec.Struct, frozen=True, array_like=True, gc=False):
    origin: MemberId
    number: int
    reply: bytes


class _State(msgspec.Struct, frozen=True, array_like=True):
    items: dict[str, bytes]
    replies: dict[str, _Reply]
    requests: dict[str, tuple[MemberId, Request]]


_encode = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(OperationPart | Commit | Update | Request).decode
_read_reply = msgspec.msgpack.Decoder(_Reply).decode
_read_state = msgspec.msgpack.Decoder(_State).decode


def slot_of(origin: MemberId, request: Request) -> str:
    """The item that has the reply. The origin uses it again only when it has seen that."""
    return f"{_REPLY}{origin}/{request.slot}"


def _in_turn(asked: tuple[MemberId, Request]) -> tuple[MemberId, int]:
    return asked[0], asked[1].number


class PrimaryBackup(Pattern):
    """A service that survives its primary. For groups with FIFO or causal order, and state transfer.

    >>> from semcast.core import Batch, View
    >>> def count(state, request):
    ...     value = int(state.get("count", b"0")) + int(request)
    ...     return Executed({"count": b"%d" % value}, b"now %d" % value)
    >>> service = PrimaryBackup(MemberId("p"), count)
    >>> service.on_delivery(ViewChange(View(1, (service.me,))))
    >>> service.request(b"5"), service.request(b"7")
    (1, 2)
    >>> for seq in range(1, 7):                                     # what a stack does
    ...     message = service.waiting(); service.sent()
    ...     service.on_delivery(Batch(service.me, seq, [message.payload], message.annotation))
    >>> service.take_answers()
    [BackupReply(number=1, reply=b'now 5'), BackupReply(number=2, reply=b'now 12')]
    >>> dict(service.state)
    {'count': b'12'}
    """

    tracker: type[OperationTracker] = OperationTracker

    def __init__(self, me: MemberId, execute: Execute, k: int = 256, window: int = 8) -> None:
        """A message can replace the `k` before it; a member has at most `window` requests under way."""
        super().__init__(me)
        if window < 1:
            raise ValueError(f"window must be at least 1, not {window}")
        self._execute = execute
        self._window = window
        self._writer = Writer(self.tracker(k))
        self._replica = WriterState(self._write)
        self._ahead: dict[str, bytes] | None = None  # at the primary: after all that was executed
        self._replies: dict[str, _Reply] = {}  # by slot
        self._requests: dict[str, tuple[MemberId, Request]] = {}  # not answered yet, by slot
        self._number = 0
        self._mine: dict[int, bytes] = {}  # made here, and not answered
        self._handed_in = 0  # requests of this member up to here are under way
        self._answers: list[BackupReply] = []

    # For the application

    @property
    def primary(self) -> MemberId | None:
        """Who executes requests; None before the first view."""
        return None if self.view is None else self.view.members[0]

    @property
    def state(self) -> Mapping[str, bytes]:
        """The items, as the group has delivered them here."""
        return MappingProxyType(self._replica.state)

    def request(self, body: bytes) -> int:
        """Ask the primary, wherever it is; the answer has the number that this returns."""
        self._number += 1
        self._mine[self._number] = body
        self._hand_in()
        return self._number

    def take_answers(self) -> list[BackupReply]:
        """The answers that came since the last call."""
        answers, self._answers = self._answers, []
        return answers

    # The group

    def export(self) -> bytes:
        """The items, the last replies, and the requests without one."""
        return _encode(_State(self._replica.state, self._replies, self._requests))

    def restore(self, state: bytes) -> None:
        """Go on from this state: of the service, and of the requests that it does not answer."""
        restored = _read_state(state)
        self._replica.state.clear()
        self._replica.state.update(restored.items)
        self._replies = restored.replies
        self._requests = restored.requests

    def waiting(self) -> PatternMessage | None:
        """The next message to multicast."""
        return self._writer.waiting()

    def sent(self) -> None:
        """It left."""
        self._writer.sent()

    def _on_message(self, message: Message) -> None:
        try:
            record = _read(message.payload)
            if isinstance(record, OperationPart | Update) and record.item.startswith(_REPLY):
                _read_reply(record.value or b"")
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.refused += 1
            return
        if isinstance(record, Request):
            self._on_request(message.sender, record)
        elif message.sender == self.primary:
            self._replica.apply(record)
            self._hand_in()
        else:
            self.refused += 1

    def _on_request(self, origin: MemberId, request: Request) -> None:
        slot = slot_of(origin, request)
        reply = self._replies.get(slot)
        if reply is not None and reply.number >= request.number:
            return  # the reply was faster
        self._requests[slot] = origin, request
        if self.primary == self.me:
            self._run(origin, request)

    def _on_view(self, change: ViewChange) -> None:
        """The same rules everywhere, from what everybody knows: no further agreement is needed."""
        self._replica.begin_view()
        self._writer.begin_view()
        here = set(change.view.members)
        self._replies = {slot: reply for slot, reply in self._replies.items() if reply.origin in here}
        self._requests = {slot: asked for slot, asked in self._requests.items() if asked[0] in here}
        if self.primary == self.me and self._ahead is None:
            self._take_over()
        elif self.primary != self.me and self._ahead is not None:
            self._step_down()
        self._hand_in()

    def _take_over(self) -> None:
        """All that the last primary did and anybody saw is here: go on from there."""
        self._ahead = dict(self._replica.state)
        self._writer.clear()  # requests of this member that never left
        for origin, request in sorted(self._requests.values(), key=_in_turn):
            self._run(origin, request)
        self._resume()

    def _step_down(self) -> None:
        """What did not leave never happened; the next primary has the requests of others."""
        self._ahead = None
        self._writer.clear()
        self._resume()

    def _resume(self) -> None:
        """Hand in again what is not known to all."""
        mine = [request.number for origin, request in self._requests.values() if origin == self.me]
        self._handed_in = max(mine, default=0)

    def _hand_in(self) -> None:
        """Give requests of this member to the primary, as many as may be under way."""
        while self.view is not None and self._handed_in < self._number:
            number = self._handed_in + 1
            if number in self._mine:
                if number - next(iter(self._mine)) >= self._window:
                    return
                request = Request(number, number % self._window, self._mine[number])
                if self._ahead is None:
                    self._writer.plain(_encode(request))
                else:
                    self._run(self.me, request)
            self._handed_in = number

    def _run(self, origin: MemberId, request: Request) -> None:
        """Execute a request, and tell everybody what came of it."""
        assert self._ahead is not None
        outcome = self._execute(MappingProxyType(self._ahead), request.body)
        for item in outcome.changes:
            if item.startswith(_REPLY):
                raise ValueError(f"item {item!r}: names that begin with a zero byte are taken")
        assign(self._ahead, outcome.changes)
        reply = _encode(_Reply(origin, request.number, outcome.reply))
        self._writer.operation({**outcome.changes, slot_of(origin, request): reply})

    # Items

    def _write(self, item: str, value: Value) -> None:
        if not item.startswith(_REPLY):
            assign(self._replica.state, {item: value})
        elif value is not None:
            reply = self._replies[item] = _read_reply(value)
            asked = self._requests.get(item)
            if asked is not None and asked[1].number <= reply.number:
                del self._requests[item]  # also if its own reply was purged
            if reply.origin == self.me and self._mine.pop(reply.number, None) is not None:
                self._answers.append(BackupReply(reply.number, reply.reply))
