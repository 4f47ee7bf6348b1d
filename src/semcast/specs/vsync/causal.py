"""Causal order inside a view (Pereira 2002, 4.6 and A.4; Birman et al. 1991, 4.1 to 5.1).

m causally precedes m' if a process multicasts or delivers m before it multicasts m', all in one view, or
through others so. Vector times begin anew with each view (I, 5.5), and so does the reckoning here.
"""

from collections.abc import Iterator

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.evs.configurations import Stay
from semcast.specs.verdict import Findings, Verdict, unknown
from semcast.specs.vsync.pasts import Past, pasts_of
from semcast.specs.vsync.views import Step, Views, find_lacking, judge, views_of


def causal_delivery(history: History) -> Verdict:
    """P, 4.6: if m causally precedes m', nobody delivers m after m'.

    Counts messages m at each process, and those whose delivery is in a circle, or behind one, of
    deliveries that precede the multicast.
    """
    return judge("causal_delivery", history, _find_overtaken, told=True)


def semantic_causal_completeness(history: History) -> Verdict:
    """P, 4.6: who delivers m' in v and goes on delivers in v all that causally precedes m', or replacements.

    Counts pairs of a process and a message.
    """
    name = "semantic_causal_completeness"
    if any(past.stuck for past in pasts_of(views_of(history))):
        return unknown(name, "precedence runs in a circle")
    return judge(name, history, _find_gaps, semantic=True)


class _Asked:
    """How many messages of each sender precede something that one process delivered in the view."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self.counts = [0] * len(past.sends)
        self._last: list[tuple[int, ...] | None] = [None] * len(past.sends)

    def deliver(self, part: int) -> None:
        sender, number = self._past.place[part]
        before = self._past.before[part]
        if self._last[sender] is not before:
            self._last[sender] = before
            self.counts = list(map(max, self.counts, before))
        self.counts[sender] = max(self.counts[sender], number - 1)

    def owed(self) -> Iterator[int]:
        """What precedes, part by part."""
        for sends, count in zip(self._past.sends, self.counts, strict=True):
            yield from sends[:count]


def _find_overtaken(views: Views, findings: Findings) -> None:
    for past in pasts_of(views):
        stuck = set(past.stuck)
        for process, steps in past.paths.items():
            asked = _Asked(past)
            late: list[int] = []
            for kind, part in steps:
                if kind is Kind.DELIVER and (process, part) not in stuck:
                    sender, number = past.place[part]
                    if number <= asked.counts[sender]:
                        late.append(part)
                    asked.deliver(part)
            _report_late(views, past, process, late, findings)
        for process, part in past.stuck:
            _report_circle(views, process, part, findings)


def _witness(views: Views, past: Past, message: MessageId, steps: list[Step]) -> MessageId:
    """The first message delivered in these steps that `message` precedes."""
    old = views.known.parts.around(message)
    behind = (part for kind, part in steps if kind is Kind.DELIVER and past.precedes(old, part))
    return views.known.parts.first(next(behind))


def _report_late(views: Views, past: Past, process: MemberId, late: list[int], findings: Findings) -> None:
    known = views.known

    def case(message: MessageId) -> tuple[str, list[Event]]:
        earlier = _witness(views, past, message, past.paths[process])
        events = [*known.find(Kind.DELIVER, process, earlier), *known.find(Kind.DELIVER, process, message)]
        return f"{process} delivered {message} after {earlier}, which it precedes", events

    known.report(findings, sorted(late), case)


def _report_circle(views: Views, process: MemberId, part: int, findings: Findings) -> None:
    def case(message: MessageId) -> tuple[str, list[Event]]:
        events = [*views.known.find(Kind.DELIVER, process, message), *views.known.send_of(message)]
        return f"{process} delivered {message} in a circle of deliveries that precede the multicast", events

    views.known.report(findings, [part], case)


def _find_gaps(views: Views, findings: Findings) -> None:
    known = views.known
    for past in pasts_of(views):
        for stay in filter(views.closed, past.stays):
            asked = _Asked(past)
            for kind, part in past.steps[stay.slot]:
                if kind is Kind.DELIVER:
                    asked.deliver(part)

            def proof(message: MessageId, stay: Stay = stay, past: Past = past) -> list[Event]:
                later = _witness(views, past, message, past.steps[stay.slot])
                return [*known.send_of(message), *known.find(Kind.DELIVER, stay.process, later)]

            find_lacking(views, findings, stay, asked.owed(), proof)
