"""Messages that a logger sends itself, for programs that are no members: a gateway into the group.

A batch has a key. Key and messages are one record, so that a program which does not know whether its batch
was taken, because it or the logger crashed, gives it again with the same key, and it is logged once. Members
hear of messages when they are on disk: else a number could be given twice. The program is answered when as
many loggers as `log_acks` says have the batch on disk. The newest `publish_keys` keys are known, and of each
owner (`owner/batch`) the last.
"""

from collections.abc import Callable, Iterator, Sequence

from semcast.core.annotations import Annotation, Item
from semcast.core.events import Note, Sent
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch, batch_of
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.copying import Copying
from semcast.protocols.gossip.data import data_of
from semcast.protocols.gossip.frames import Said, Say
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.keys import Batched
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.queries import MAX_KEY
from semcast.protocols.gossip.records import Published
from semcast.protocols.gossip.settings import GossipSettings
from semcast.protocols.gossip.streamruns import item_bytes
from semcast.protocols.semantic.answers import LENGTH
from semcast.wire.annotations import to_wire
from semcast.wire.limits import check_message

MAX_MESSAGES = 4096
"""Of a batch, or of a piece of one."""
MAX_BATCH = 1 << 20
"""Bytes of the messages of a batch, or of a piece of one."""
_BESIDE = 64
"""Bytes that a frame takes besides, about."""
Answer = Callable[[str, int], None]
"""Called once a batch is on enough disks: with "logged" or "known", and its position; or with "again", if its
key was asked for once more meanwhile: then that is answered."""


class Publishing:
    """The own stream of a logger."""

    def __init__(
        self,
        me: MemberId,
        settings: GossipSettings,
        books: Books,
        journal: Journal,
        copying: Copying,
        out: Outbox,
    ) -> None:
        self._frame_bytes = settings.frame_bytes
        self._me = me
        self._books = books
        self._journal = journal
        self._copying = copying
        self._out = out

    def publish(
        self,
        key: bytes,
        payloads: Sequence[bytes],
        annotations: Sequence[Annotation | None],
    ) -> Batched:
        """Log a batch, and have it sent to all when it is on disk; returns where it is."""
        stream = self.stream()
        first = stream.contiguous + 1
        batches = [
            batch_of(self._me, seq, [payload], annotation)
            for seq, (payload, annotation) in enumerate(zip(payloads, annotations, strict=True), first)
        ]
        messages = [(batch.payloads[0], to_wire(batch.annotation)) for batch in batches]
        position = self._journal.write(Published(key, self._me, first, messages))
        self._books.keys.add(key, self._me, first, len(batches))
        for batch in batches:
            stream.store(batch)
        stream.messages.place(first, batches[-1].last, position)
        self.send(batches)
        return Batched(self._me, first, batches[-1].last)

    def stream(self) -> LogStream:
        """Of this logger, however many others there are."""
        return self._books.own(self._me)

    def send(self, batches: Sequence[Batch]) -> None:
        """Have what was stored sent to all when it is on disk.

        Of a large batch the first messages and the last: who lacks what is between asks for it, as fast as it
        takes it.
        """
        for batch in batches:
            self._out.deliver(Sent(batch, 1))
        self._journal.then(lambda _now: self._send(batches))

    def _send(self, batches: Sequence[Batch]) -> None:
        room, sent = MAX_BATCH, 0
        for batch in batches:
            for part in _frames(batch, self._frame_bytes):
                if room <= 0:
                    break
                self._out.multicast(data_of(part))
                room -= part.size + _BESIDE
                sent = part.last
        last = batches[-1]
        if sent < last.last:
            self._out.multicast(data_of(last.cut(last.last, last.last)))

    def answer(self, key: bytes, batch: Batched, level: str, answer: Answer) -> None:
        """As soon as enough loggers have it on disk; then the program may forget it, as a sender does."""

        def settled(enough: bool) -> None:
            if enough:
                count = batch.last - batch.first + 1
                self._out.deliver(Note("letgo", sender=batch.sender, seq=batch.first, count=count))
            known = self._books.keys.get(key)  # its messages may have left the log since
            position = 0 if known is None or known.position is None else known.position
            answer(level if enough else "again", position)

        self._journal.then(lambda _now: self._copying.wait(key, batch.sender, batch.last, settled))

    def on_say(self, _now: Nanos, source: MemberId, frame: Say) -> None:
        """Which number was given last: those that are not on disk may be given again."""
        stream = self._books.streams.get(self._me)
        self._out.send(source, Said(frame.fresh, 0 if stream is None else stream.contiguous))


def check_batch(key: bytes, payloads: Sequence[bytes], annotations: Sequence[Annotation | None]) -> None:
    """Raise ValueError unless that can be logged, once for its key."""
    check_key(key)
    check_messages(payloads, annotations)


def check_key(key: bytes) -> None:
    """Raise ValueError unless a batch can have this key."""
    if not 0 < len(key) <= MAX_KEY:
        raise ValueError(f"a key has 1 to {MAX_KEY} bytes, and this one {len(key)}")


def check_messages(payloads: Sequence[bytes], annotations: Sequence[Annotation | None]) -> None:
    """Raise ValueError unless these can be logged together."""
    for payload, annotation in zip(payloads, annotations, strict=True):
        if annotation is not None and not isinstance(annotation, Item):
            raise ValueError("a batch names items: the numbers of its messages are not known beforehand")
        check_message(payload, annotation)
    if not 0 < len(payloads) <= MAX_MESSAGES or sum(map(len, payloads)) > MAX_BATCH:
        raise ValueError(f"a batch has 1 to {MAX_MESSAGES} messages, of {MAX_BATCH} bytes in all")


def _frames(batch: Batch, room: int) -> Iterator[Batch]:
    """A run in parts that fit into a frame each."""
    if batch.annotation is not None or len(batch.payloads) == 1:
        yield batch
        return
    first, left = batch.first, room
    for seq, payload in enumerate(batch.payloads, batch.first):
        size = len(payload) + LENGTH
        if batch.items is not None:
            size += item_bytes(batch.items[seq - batch.first])
        if seq > first and size > left:
            yield batch.cut(first, seq - 1)
            first, left = seq, room
        left -= size
    yield batch.cut(first, batch.last)
