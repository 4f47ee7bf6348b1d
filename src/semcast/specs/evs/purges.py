"""Receipts for what was purged (issue 4: nothing is ever purged across a configuration event)."""

from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.evidence import evidence_of
from semcast.specs.evs.configurations import Configurations, Life, judge
from semcast.specs.verdict import Findings, Verdict, untold


def evs_purge_within_configuration(history: History) -> Verdict:
    """A receipt names a message of the same regular configuration, that is delivered or has a receipt, too.

    Counts receipts, by messages. Whether the other one was delivered is judged once the process has moved
    on from that configuration, or the run is over.
    """
    name = "evs_purge_within_configuration"
    message = evidence_of(history).untold
    return judge(name, history, _find_unfounded) if message is None else untold(name, message)


def _find_unfounded(known: Configurations, findings: Findings) -> None:
    for life in known.lives.values():
        delivered = {part for kind, part in life.steps if kind is Kind.DELIVER}
        for event in known.rows[life.process]:
            if event.kind is Kind.PURGE:
                _judge(known, life, delivered, event, findings)


def _judge(known: Configurations, life: Life, delivered: set[int], event: Event, findings: Findings) -> None:
    wrong = [part for part in known.parts.of(event) if _problem(known, life, delivered, event, part)]
    known.report(
        findings,
        wrong,
        lambda message: (
            f"{life.process} purged {message}, "
            f"{_problem(known, life, delivered, event, known.parts.around(message))}",
            [event.only(message.seq)],
        ),
    )


def _problem(known: Configurations, life: Life, delivered: set[int], event: Event, part: int) -> str | None:
    if event.by is None:
        return "and does not say for what"
    by = known.parts.holding(event.by)
    stay = known.sent.get(part)
    if stay is None or not stay.configuration.regular or not known.sent_in(by, stay.configuration):
        return f"and {event.by} was not sent in the same configuration"
    if by in delivered or by in life.receipts or not known.owes(life.process, stay.configuration):
        return None
    return f"and has no {event.by}"
