"""Delivery in the sending view, and behind which messages (Pereira 2002, 2.2.3, 2.2.5 and 4.4.1)."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from semcast.core.ids import MemberId, MessageId
from semcast.history.events import Event, History
from semcast.history.schema import GONE, Kind
from semcast.specs.evs.basic import report_row
from semcast.specs.evs.configurations import Stay
from semcast.specs.verdict import Findings, Verdict
from semcast.specs.vsync.views import Views, find_lacking, judge, number_of


def vs_sending_view_delivery(history: History) -> Verdict:
    """P, 2.2.5: a message is delivered, by whomever, in the view it was multicast in.

    Counts messages at each process that delivered them in another view; those multicast or delivered
    outside every view, which is before the first or after a crash; and those multicast with another
    number than that of the view the process is in. What a sender may have multicast after its recording
    was cut off does not count.
    """
    return judge("vs_sending_view_delivery", history, _find_elsewhere, told=True)


def vs_semantic_validity(history: History) -> Verdict:
    """P, 2.2.3 and 4.4.2: what a process multicasts in v it delivers there, or a replacement, if it goes on.

    Counts messages.
    """
    return judge("vs_semantic_validity", history, _find_own, semantic=True)


def vs_semantic_fifo_view_completeness(history: History) -> Verdict:
    """P, 4.4.1: who delivers m' in v and goes on has there what its sender multicast in v before m'.

    To have a message is to deliver it or a replacement, in v. Counts pairs of a process and a message.
    """
    return judge("vs_semantic_fifo_view_completeness", history, _find_gaps, semantic=True)


def _find_elsewhere(views: Views, findings: Findings) -> None:
    known = views.known
    for stay in known.stays:
        wrong = [part for part in stay.delivered if not _at_home(views, stay, part)]

        def case(message: MessageId, stay: Stay = stay) -> tuple[str, list[Event]]:
            events = [*known.send_of(message), *known.find(Kind.DELIVER, stay.process, message)]
            return (
                f"{stay.process} delivered {message} in view {number_of(stay)}, not where it was sent",
                events,
            )

        known.report(findings, sorted(wrong), case)
    for rows in known.rows.values():
        for event, problem in _problems(rows):
            report_row(findings, event, f"{event.process} {problem}")


def _at_home(views: Views, stay: Stay, part: int) -> bool:
    """Whether it was multicast in the view, or never, which is for integrity to judge."""
    if part not in views.known.sent:
        return True
    sent = views.known.sent[part]
    return sent is not None and number_of(sent) == number_of(stay)


def _problems(rows: Sequence[Event]) -> Iterator[tuple[Event, str]]:
    number: int | None = None
    crashed = False
    for event in rows:
        match event.kind:
            case Kind.VIEW:
                number = event.view
            case kind if kind in GONE:
                crashed = True
            case Kind.MULTICAST | Kind.DELIVER if crashed:
                yield event, f"has a {event.kind.value} after its crash"
            case Kind.MULTICAST | Kind.DELIVER if number is None:
                yield event, f"has a {event.kind.value} outside every view"
            case Kind.MULTICAST if event.view != number:
                yield event, f"multicast in view {event.view} while it was in {number}"


def _find_own(views: Views, findings: Findings) -> None:
    for stay in views.known.stays:
        if views.closed(stay):
            find_lacking(views, findings, stay, stay.sent, views.known.send_of)


def _find_gaps(views: Views, findings: Findings) -> None:
    known = views.known
    for number, stays in views.of.items():
        sends = views.sends(number)
        for stay in filter(views.closed, stays):
            latest: dict[MemberId, int] = {}
            for part in stay.delivered:
                sender = known.parts.sender(part)
                if part in known.sent and part > latest.get(sender, -1):
                    latest[sender] = part
            owed = [
                part
                for sender, last in sorted(latest.items())
                for part in _before(sends.get(sender, []), last)
            ]

            def proof(
                message: MessageId, stay: Stay = stay, latest: dict[MemberId, int] = latest
            ) -> list[Event]:
                later = known.parts.last(latest[message.sender])
                return [*known.send_of(message), *known.find(Kind.DELIVER, stay.process, later)]

            find_lacking(views, findings, stay, owed, proof)


def _before(parts: list[int], last: int) -> list[int]:
    return parts[: bisect_left(parts, last)]
