"""The sentences of virtual synchrony (Pereira 2002, 2.2 and 4.4 to 4.6) read literally over small histories.

Every event is one event of one message, causality is Warshall's closure, and each property is its sentence
with all quantifiers spelled out. How often it is broken is counted as the checkers say.
"""

from collections.abc import Callable, Hashable, Iterator
from itertools import pairwise, product
from typing import NamedTuple, TypeVar

from semcast.core import MemberId, Message, MessageId
from semcast.history import Event, History, Kind
from semcast.obsolescence import obsoletes
from semcast.specs import Status

T = TypeVar("T", bound=Hashable)


class Did(NamedTuple):
    """One event of one message; `stay` is which of the views of its process it is in, -1 for none."""

    process: MemberId
    place: int
    kind: Kind
    message: MessageId
    stay: int
    order: int | None


class Stay(NamedTuple):
    process: MemberId
    nth: int
    number: int
    members: tuple[MemberId, ...]


class Literal:
    """A history as the papers see it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.quiesced = history.info.quiesced
        self.cut_off = set(history.info.cut_off)
        self.stays: list[Stay] = []
        self.did: list[Did] = []
        self.times: list[int] = []
        self.said: dict[MessageId, Event] = {}
        for process in history.processes:
            self._read(process)
        self.sent: dict[MessageId, Did] = {}
        for did in self.did:
            if did.kind is Kind.MULTICAST:
                self.sent.setdefault(did.message, did)
        self.positions: dict[MessageId, set[int]] = {}
        for did in self.did:
            if did.order is not None:
                self.positions.setdefault(did.message, set()).add(did.order)
        everything = set(self.said)
        self.endless = any(x == y for x, y in self.replaced_by(everything))

    def _read(self, process: MemberId) -> None:
        nth = -1
        for event in self.history.of(process):
            if event.kind is Kind.VIEW:
                nth += 1
                self.stays.append(Stay(process, nth, event.view or 0, event.members or ()))
            if event.kind in (Kind.MULTICAST, Kind.DELIVER, Kind.PURGE) and event.sender is not None:
                for seq in range(event.seq, event.last + 1):
                    message = MessageId(event.sender, seq)
                    order = None if event.order is None else event.order + seq - event.seq
                    self.did.append(Did(process, len(self.did), event.kind, message, nth, order))
                    self.times.append(event.at)
                    if event.kind is Kind.MULTICAST:
                        self.said.setdefault(message, event)

    # words

    def crashed(self, process: MemberId) -> bool:
        return process in self.cut_off or any(e.kind is Kind.CRASH for e in self.history.of(process))

    def views(self) -> list[int]:
        return sorted({stay.number for stay in self.stays})

    def in_view(self, number: int) -> list[Stay]:
        return [stay for stay in self.stays if stay.number == number]

    def following(self, stay: Stay) -> Stay | None:
        return next((s for s in self.stays if s.process == stay.process and s.nth == stay.nth + 1), None)

    def last(self, process: MemberId) -> Stay | None:
        return max((s for s in self.stays if s.process == process), key=lambda s: s.nth, default=None)

    def goes_on(self, stay: Stay) -> bool:
        """It installs another view, or the run ends with all members of the latest view in it."""
        if self.following(stay) is not None:
            return True
        latest = self.views()[-1]
        if not self.quiesced or stay.number != latest or self.crashed(stay.process):
            return False
        for member in self.in_view(latest)[0].members:
            there = self.last(member)
            if there is None or there.number != latest or self.crashed(member):
                return False
        return True

    def delivered(self, stay: Stay) -> list[MessageId]:
        found = [d for d in self.did if (d.process, d.stay, d.kind) == (*stay[:2], Kind.DELIVER)]
        return list(dict.fromkeys(did.message for did in found))

    def view_sent(self, message: MessageId) -> int | None:
        did = self.sent.get(message)
        if did is None or did.stay < 0:
            return None
        return next(s.number for s in self.stays if (s.process, s.nth) == (did.process, did.stay))

    def multicast_in(self, number: int) -> set[MessageId]:
        return {message for message in self.sent if self.view_sent(message) == number}

    def replaced_by(self, messages: set[MessageId]) -> set[tuple[MessageId, MessageId]]:
        return closure({(x, y) for x, y in product(messages, messages) if self._obsoletes(y, x)})

    def _obsoletes(self, new: MessageId, old: MessageId) -> bool:
        later = Message(new, b"", self.said[new].annotation)
        positions: list[int | None] = [None, *self.positions.get(old, ())]
        return any(obsoletes(later, Message(old, b"", self.said[old].annotation, at)) for at in positions)

    def has(self, stay: Stay, message: MessageId) -> bool:
        replaced = self.replaced_by(self.multicast_in(stay.number))
        return any(m == message or (message, m) in replaced for m in self.delivered(stay))

    def lacking(self, owed: Callable[[Stay], set[MessageId]]) -> int:
        return sum(
            not self.has(stay, message) for stay in self.stays if self.goes_on(stay) for message in owed(stay)
        )

    # views

    def vs_view_agreement(self) -> int:
        wrong = sum(stay.members != self.in_view(stay.number)[0].members for stay in self.stays)
        wrong += sum(stay.process not in stay.members for stay in self.stays)
        for process in self.history.processes:
            own = [stay.number for stay in self.stays if stay.process == process]
            wrong += sum(after <= before for before, after in pairwise(own))
            kinds = [event.kind for event in self.history.of(process)]
            wrong += sum(k is Kind.VIEW and Kind.CRASH in kinds[:n] for n, k in enumerate(kinds))
        return wrong

    def vs_primary_partition(self) -> int:
        wrong = sum(len({frozenset(s.members) for s in self.in_view(v)}) > 1 for v in self.views())
        for stay in self.stays:
            after = self.following(stay)
            wrong += after is not None and any(stay.number < v < after.number for v in self.views())
        return wrong + sum(self.usurped(v, w) for v, w in pairwise(self.views()))

    def usurped(self, number: int, following: int) -> bool:
        if following != number + 1 and (self.cut_off or not self.quiesced):
            return False
        members = set(self.in_view(number)[0].members)
        going_on = members & set(self.in_view(following)[0].members)
        crashed = {member for member in members if self.crashed(member)}
        if not going_on and members - crashed:
            return True
        ignored = {stay.process for stay in self.in_view(number) if self.ignored(stay, following)}
        agreed = going_on | (crashed - ignored)
        half = len(agreed) * 2 == len(members) and self.in_view(number)[0].members[0] in agreed
        return self.quiesced and not half and len(agreed) * 2 <= len(members)

    def ignored(self, stay: Stay, following: int) -> bool:
        """It went on when the next view was there, and has what one who went there does without."""
        others = [s for s in self.in_view(stay.number) if (n := self.following(s)) and n.number == following]
        if not others or self.endless or self.untold():
            return False
        views = [e for e in self.history.events if e.kind is Kind.VIEW]
        first = min(event.at for event in views if event.view == following)
        here = [d for d in self.did if (d.process, d.stay) == stay[:2] and d.kind is not Kind.PURGE]
        late = any(self.at(did) > first for did in here)
        return late and not all(self.has(others[0], did.message) for did in here)

    def at(self, did: Did) -> int:
        return self.times[did.place]

    # messages and views

    def vs_sending_view_delivery(self) -> int:
        wrong = 0
        for stay in self.stays:
            sent = [message for message in self.delivered(stay) if message in self.sent]
            wrong += sum(self.view_sent(message) != stay.number for message in sent)
        for process in self.history.processes:
            number, crashed = None, False
            for event in self.history.of(process):
                number = event.view if event.kind is Kind.VIEW else number
                crashed = crashed or event.kind is Kind.CRASH
                if event.kind in (Kind.MULTICAST, Kind.DELIVER):
                    foreign = event.kind is Kind.MULTICAST and event.view != number
                    wrong += event.count * (crashed or number is None or foreign)
        return wrong

    def vs_semantic_validity(self) -> int:
        def owed(stay: Stay) -> set[MessageId]:
            return {m for m, did in self.sent.items() if (did.process, did.stay) == stay[:2]}

        return self.lacking(owed)

    def vs_view_synchrony(self) -> int:
        return sum(
            len(self.delivered_with(stay) - set(self.delivered(stay)))
            for stay in self.stays
            if self.goes_on(stay)
        )

    def delivered_with(self, stay: Stay) -> set[MessageId]:
        """By those who go on to the same next view."""
        after = self.following(stay)
        found: set[MessageId] = set()
        for other in self.in_view(stay.number):
            next_of = self.following(other)
            same = next_of.number == after.number if after and next_of else after is next_of
            if same and self.goes_on(other):
                found |= set(self.delivered(other))
        return found

    def vs_semantic_view_synchrony(self) -> int:
        return self.lacking(self.delivered_with)

    def vs_semantic_uniform_agreement(self) -> int:
        return self.lacking(
            lambda stay: {m for other in self.in_view(stay.number) for m in self.delivered(other)}
        )

    def vs_semantic_fifo_view_completeness(self) -> int:
        def owed(stay: Stay) -> set[MessageId]:
            later = [m for m in self.delivered(stay) if m in self.sent]
            return {
                m
                for m in self.multicast_in(stay.number)
                if any(m.sender == other.sender and m.seq < other.seq for other in later)
            }

        return self.lacking(owed)

    # causal order

    def causal_events(self, number: int) -> list[Did]:
        """Sends in the view, and the first delivery of each of these, if it is in the view."""
        here = {(stay.process, stay.nth) for stay in self.in_view(number)}
        inside = self.multicast_in(number)
        seen: set[tuple[MemberId, MessageId]] = set()
        found = []
        for did in self.did:
            if did.kind is Kind.DELIVER:
                if (did.process, did.message) in seen:
                    continue
                seen.add((did.process, did.message))
            elif did.kind is not Kind.MULTICAST or self.sent[did.message] != did:
                continue
            if did.message in inside and (did.process, did.stay) in here:
                found.append(did)
        return found

    def happens_before(self, number: int) -> set[tuple[Did, Did]]:
        events = self.causal_events(number)
        local = {(d, e) for d, e in product(events, events) if d.process == e.process and d.place < e.place}
        sends = {(self.sent[d.message], d) for d in events if d.kind is Kind.DELIVER}
        return closure(local | sends)

    def circular(self, number: int) -> set[Did]:
        before = self.happens_before(number)
        circle = {x for x, y in before if x == y}
        return {d for d in circle | {y for x, y in before if x in circle} if d.kind is Kind.DELIVER}

    def causally_precedes(self, number: int) -> set[tuple[MessageId, MessageId]]:
        return {
            (d.message, e.message)
            for d, e in self.happens_before(number)
            if d.kind is Kind.MULTICAST and e.kind is Kind.MULTICAST
        }

    def causal_delivery(self) -> int:
        wrong = 0
        for number in self.views():
            circular = self.circular(number)
            wrong += len(circular)
            precedes = self.causally_precedes(number)
            events = [d for d in self.causal_events(number) if d.kind is Kind.DELIVER and d not in circular]
            wrong += len(
                {
                    late
                    for early, late in product(events, events)
                    if early.process == late.process
                    and early.place < late.place
                    and (late.message, early.message) in precedes
                }
            )
        return wrong

    def semantic_causal_completeness(self) -> int:
        def owed(stay: Stay) -> set[MessageId]:
            events = self.causal_events(stay.number)
            got = {d.message for d in events if (d.process, d.stay, d.kind) == (*stay[:2], Kind.DELIVER)}
            return {old for old, new in self.causally_precedes(stay.number) if new in got}

        return self.lacking(owed)

    # total order

    def total_order(self) -> int:
        return self.disordered([stay for stay in self.stays if self.goes_on(stay)])

    def uniform_total_order(self) -> int:
        return self.disordered(self.stays)

    def disordered(self, stays: list[Stay]) -> int:
        wrong = {
            (one, late)
            for one, other in product(stays, stays)
            if one.number == other.number
            for early, late in ordered(self.delivered(one))
            if (late, early) in set(ordered(self.delivered(other)))
        }
        first: dict[MessageId, int] = {}
        moved = backwards = 0
        for process in self.history.processes:
            before: int | None = None
            for message, at in self.placed(process, stays):
                moved += first.setdefault(message, at) != at
                backwards += before is not None and at <= before
                before = at
        return len(wrong) + moved + backwards + len(first) - len(set(first.values()))

    def placed(self, process: MemberId, stays: list[Stay]) -> Iterator[tuple[MessageId, int]]:
        for stay in (stay for stay in stays if stay.process == process):
            seen = set()
            for did in self.did:
                here = (did.process, did.stay, did.kind) == (process, stay.nth, Kind.DELIVER)
                if here and did.order is not None and did.message not in seen:
                    seen.add(did.message)
                    yield did.message, did.order

    # state

    def vs_state_transfer(self) -> int:
        wrong = 0
        states: dict[int, dict[MemberId, dict[MemberId, str | None]]] = {}
        for process in self.history.processes:
            beginning: int | None = None
            for event in self.history.of(process):
                if event.kind is Kind.VIEW:
                    beginning = event.view
                if event.kind in (Kind.DELIVER, Kind.CRASH):
                    beginning = None
                if event.kind is Kind.APPLY and event.view is not None and event.sender is not None:
                    wrong += event.view != beginning
                    states.setdefault(event.view, {}).setdefault(process, {})[event.sender] = event.digest
        for number, of in states.items():
            for sender in {sender for theirs in of.values() for sender in theirs}:
                found = {
                    theirs.get(sender)
                    for process, theirs in of.items()
                    if sender in theirs or self.said_all(process, number)
                }
                wrong += len(found) > 1
        return wrong

    def said_all(self, process: MemberId, number: int) -> bool:
        rows = [event for event in self.history.of(process) if event.kind is not Kind.CRASH]
        if rows[-1].kind is Kind.APPLY and rows[-1].view == number:
            return self.quiesced and not self.crashed(process)
        return True

    # verdicts

    def untold(self) -> bool:
        """Whether a message is known that its sender must have multicast after its recording was cut off."""
        named = {did.message for did in self.did if did.kind is not Kind.MULTICAST}
        named |= {event.by for event in self.history.events if event.by is not None}
        return any(
            m.sender in self.cut_off and all(m.seq > own.seq for own in self.said if own.sender == m.sender)
            for m in named
        )

    def tells_nothing(self, name: str) -> bool:
        if not self.stays:
            return True
        if "semantic" in name and (self.endless or self.untold()):
            return True
        if name == "vs_state_transfer":
            return not any(e.kind is Kind.APPLY and e.view is not None for e in self.history.events)
        if name == "semantic_causal_completeness":
            return any(self.circular(number) for number in self.views())
        return False

    def expected(self, name: str) -> tuple[Status, int]:
        if self.tells_nothing(name):
            return Status.UNKNOWN, 0
        count = getattr(self, name)()
        if not count and name in ("vs_sending_view_delivery", "causal_delivery") and self.untold():
            return Status.UNKNOWN, 0
        return (Status.VIOLATED if count else Status.HOLDS), count


def ordered(messages: list[MessageId]) -> Iterator[tuple[MessageId, MessageId]]:
    for place, message in enumerate(messages):
        for later in messages[place + 1 :]:
            yield message, later


def closure(pairs: set[tuple[T, T]]) -> set[tuple[T, T]]:
    after: dict[T, set[T]] = {}
    for x, y in pairs:
        after.setdefault(x, set()).add(y)
    for middle in list(after):
        for reached in after.values():
            if middle in reached:
                reached.update(after[middle])
    return {(x, y) for x, reached in after.items() for y in reached}
