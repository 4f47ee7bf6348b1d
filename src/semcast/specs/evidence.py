"""What a history says about its messages, put together once for all checkers."""

from functools import cached_property
from weakref import WeakKeyDictionary

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.relation import relation_of
from semcast.specs.runs import Runs, Span, union

_NOTHING = Runs()


class Evidence:
    """Who multicast, delivered and, in the paper's sense, has what."""

    def __init__(self, history: History) -> None:
        self.correct = history.correct
        self.processes = history.processes
        self.relation = relation_of(history)
        self.repeats: list[tuple[Event, Span]] = []
        """Deliveries of what the process had delivered before."""
        self._events = {process: history.of(process) for process in history.processes}
        self._multicast: dict[MemberId, Runs] = {}
        self._delivered: dict[tuple[MemberId, MemberId], Runs] = {}
        for event in history.events:
            self._take(event)
        self.senders = sorted({*self._multicast, *(sender for _, sender in self._delivered)})
        self.cut_off = frozenset(history.info.cut_off)
        self.untold = self._untold(history)
        """A message that its sender must have sent after its recording was cut off, if there is one.

        Then not everything is known of what replaces what, either.
        """
        self._has: dict[tuple[MemberId, MemberId], Runs] = {}

    def beyond(self, message: MessageId) -> bool:
        """Whether it was sent, if it was, where the recording of its sender is cut off."""
        return message.sender in self.cut_off and message.seq > self.multicast(message.sender).highest()

    def multicast(self, sender: MemberId) -> Runs:
        """What `sender` multicast."""
        return self._multicast.get(sender, _NOTHING)

    def delivered(self, process: MemberId, sender: MemberId) -> Runs:
        """What `process` delivered of `sender`."""
        return self._delivered.get((process, sender), _NOTHING)

    def has(self, process: MemberId, sender: MemberId) -> Runs:
        """What of `sender` the correct `process` delivered or delivered a replacement of."""
        key = process, sender
        if key not in self._has:
            self._has[key] = union([self.delivered(process, sender), self._replaced(process, sender)])
        return self._has[key]

    def find(self, kind: Kind, process: MemberId, sender: MemberId, seq: int) -> list[Event]:
        """The first event of that kind about that message, narrowed to it; none or one."""
        for event in self._events.get(process, ()):
            if event.kind is kind and event.sender == sender and event.seq <= seq <= event.last:
                return [event.only(seq)]
        return []

    def _take(self, event: Event) -> None:
        if event.kind is Kind.MULTICAST:
            self._multicast.setdefault(event.process, Runs()).add(event.seq, event.last)
        elif event.kind is Kind.DELIVER:
            assert event.sender is not None
            delivered = self._delivered.get((event.process, event.sender))
            if delivered is None:
                delivered = self._delivered[event.process, event.sender] = Runs()
            known = delivered.add(event.seq, event.last)
            self.repeats.extend((event, span) for span in known)

    def _untold(self, history: History) -> MessageId | None:
        if not self.cut_off:
            return None
        for event in history.events:
            named = [] if event.by is None else [event.by]
            if event.sender is not None and event.kind in (Kind.DELIVER, Kind.PURGE):
                named.append(MessageId(event.sender, event.last))
            for message in named:
                if self.beyond(message):
                    return message
        return None

    @cached_property
    def _direct(self) -> list[int]:
        """For each annotated message the correct processes that delivered it: bit n for the n-th."""
        masks = [0] * len(self.relation.messages)
        for number, process in enumerate(self.correct):
            for sender in self.senders:
                for span in self.delivered(process, sender):
                    for place in self.relation.places(sender, span):
                        masks[place] |= 1 << number
        return masks

    @cached_property
    def _covered(self) -> list[int]:
        masks = self._direct.copy()
        self.relation.cover(masks)
        return masks

    def _replaced(self, process: MemberId, sender: MemberId) -> Runs:
        """What `process` did not deliver of `sender`, but a replacement of it."""
        bit = 1 << self.correct.index(process)
        seqs = (
            self.relation.messages[place].seq
            for place in self.relation.places(sender)
            if self._covered[place] & ~self._direct[place] & bit
        )
        return Runs((seq, seq) for seq in seqs)


_evidence: WeakKeyDictionary[History, Evidence] = WeakKeyDictionary()


def evidence_of(history: History) -> Evidence:
    """The evidence of a history, gathered at the first call and kept while the history lives."""
    evidence = _evidence.get(history)
    if evidence is None:
        evidence = _evidence[history] = Evidence(history)
    return evidence
