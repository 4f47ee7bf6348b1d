"""Replicated state: each member writes items of its own, everybody sees them (Pereira 2002, 3.4)."""

from collections.abc import Mapping
from types import MappingProxyType

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

_read = msgspec.msgpack.Decoder(OperationPart | Commit | Update).decode
_read_state = msgspec.msgpack.Decoder(dict[str, dict[str, bytes]]).decode


class ReplicatedState(Pattern):
    """Items with one writer each: the member they belong to. For groups with FIFO or causal order.

    What others see of a writer's items is at every change of view, and when all is quiet, a state that the
    writer had. In between a slow member may see some items newer than others, but never half of an
    operation. Items belong to a name: a member that comes back goes on where it was when it left,
    if joiners are given the state.

    >>> from semcast.core import Batch
    >>> p, q = ReplicatedState(MemberId("p")), ReplicatedState(MemberId("q"))
    >>> p.operation({"bid": b"99", "ask": b"101"})
    >>> seq = 0
    >>> while (message := p.waiting()) is not None:    # what a stack does
    ...     seq += 1
    ...     p.sent()
    ...     q.on_delivery(Batch(p.me, seq, [message.payload], message.annotation))
    ...     print(dict(q.of("p")))
    {}
    {}
    {'bid': b'99', 'ask': b'101'}
    """

    tracker: type[OperationTracker] = OperationTracker
    replica: type[WriterState] = WriterState

    def __init__(self, me: MemberId, k: int = 256) -> None:
        """A message can replace the `k` before it at most."""
        super().__init__(me)
        self._writer = Writer(self.tracker(k))
        self._replicas: dict[str, WriterState] = {}
        self._written: dict[str, bytes] = {}

    # For the application

    def update(self, item: str, value: Value) -> None:
        """Assign to an item of one's own; None deletes it."""
        self.operation({item: value})

    def operation(self, changes: Changes) -> None:
        """Assign to several at once: nobody ever sees a part of it."""
        assign(self._written, changes)
        self._writer.operation(changes)

    def of(self, writer: str) -> Mapping[str, bytes]:
        """The items of a member: one's own as written, others' as far as they are known here."""
        return MappingProxyType(self._written) if writer == self.me.name else self.seen(writer)

    def seen(self, writer: str) -> Mapping[str, bytes]:
        """The items of a member as the group has delivered them here, also one's own."""
        replica = self._replicas.get(writer)
        return MappingProxyType({} if replica is None else replica.state)

    def writers(self) -> list[str]:
        """Whose items are known here."""
        return sorted(self._replicas)

    # The group

    def export(self) -> bytes:
        """All items of everybody, as delivered."""
        return msgspec.msgpack.encode({name: self._replicas[name].state for name in self.writers()})

    def restore(self, state: bytes) -> None:
        """Forget all items, and go on from these."""
        self._replicas = {}
        for name, items in _read_state(state).items():
            replica = self._replicas[name] = self.replica()
            replica.state.update(items)
        self._written = dict(self.seen(self.me.name))
        for changes in self._writer.operations():
            assign(self._written, changes)

    def waiting(self) -> PatternMessage | None:
        """The next message to multicast."""
        return self._writer.waiting()

    def sent(self) -> None:
        """It left."""
        self._writer.sent()

    def _on_message(self, message: Message) -> None:
        try:
            record = _read(message.payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.refused += 1
            return
        self._replicas.setdefault(message.sender.name, self.replica()).apply(record)

    def _on_view(self, change: ViewChange) -> None:  # noqa: ARG002
        for replica in self._replicas.values():
            replica.begin_view()
        self._writer.begin_view()
