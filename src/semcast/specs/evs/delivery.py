"""What a process delivers of its own and with others (Amir 1995, specifications 3 and 4).

Delivering m means here and below to deliver m or a message that makes it obsolete, directly or through
others, in the same com(c), and in specification 4 in the same c.
"""

from collections.abc import Iterable

from semcast.core.ids import MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.evs.configurations import Configurations, Stay, groups, judge
from semcast.specs.verdict import Findings, Verdict


def evs_3_self_delivery(history: History) -> Verdict:
    """3: what p sends in c it delivers in com(c), unless it crashes there.

    Counts messages, once their sender has moved on from com(c) or the run is over.
    """
    return judge("evs_3_self_delivery", history, _find_own, semantic=True)


def evs_4_failure_atomicity(history: History) -> Verdict:
    """4: processes that go from c to the same next configuration deliver the same messages in c.

    Counts pairs of a process and a message that another of them delivered in c.
    """
    return judge("evs_4_failure_atomicity", history, _find_differing, semantic=True)


def _find_own(known: Configurations, findings: Findings) -> None:
    for life in known.lives.values():
        for reg, stays in life.com.items():
            if known.owes(life.process, reg):
                lacking = known.lacking(stays, (part for stay in stays for part in stay.sent))
                known.report(
                    findings,
                    lacking,
                    lambda message: (
                        f"{message.sender} has neither its own {message} nor a replacement",
                        known.send_of(message),
                    ),
                )


def _find_differing(known: Configurations, findings: Findings) -> None:
    same = groups(known.stays, lambda stay: stay.after and (stay.configuration, stay.after.configuration))
    find_differences(known, same, findings)


def find_differences(known: Configurations, same: Iterable[list[Stay]], findings: Findings) -> None:
    """Stays, by groups, in which the same messages should have been delivered."""
    for stays in same:
        delivered = {part: stay for stay in reversed(stays) for part in stay.delivered}
        for stay in stays:

            def case(
                message: MessageId, stay: Stay = stay, delivered: dict[int, Stay] = delivered
            ) -> tuple[str, list[Event]]:
                other = delivered[known.parts.around(message)]
                return (
                    f"{stay.process} has neither {message} nor a replacement in {stay.configuration}",
                    known.find(Kind.DELIVER, other.process, message),
                )

            known.report(findings, known.lacking([stay], delivered), case)
