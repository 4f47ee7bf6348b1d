"""Who delivers the same in a view (Pereira 2002, 2.2.5, 4.4.1 and 4.5)."""

from semcast.core.ids import MessageId
from semcast.history.events import Event, History
from semcast.history.schema import Kind
from semcast.specs.evs.configurations import Stay
from semcast.specs.verdict import Findings, Verdict
from semcast.specs.vsync.views import Proof, Views, find_lacking, going_on_together, judge, number_of


def vs_view_synchrony(history: History) -> Verdict:
    """P, 2.2.5: who goes from one view to the same next one has delivered the same messages in it.

    Replacements do not count, so it is promised only where nothing is purged. Counts pairs of a process and
    a message.
    """
    return judge("vs_view_synchrony", history, _find_not_the_same)


def vs_semantic_view_synchrony(history: History) -> Verdict:
    """P, 4.4.1: what somebody delivers in v, all who go on to the same next view have in v.

    To have a message is to deliver it or a replacement. Counts pairs of a process and a message.
    """
    return judge("vs_semantic_view_synchrony", history, _find_not_replaced, semantic=True)


def vs_semantic_uniform_agreement(history: History) -> Verdict:
    """P, 4.5: what anybody delivers in v, and be it one that crashes, all who go on from v have in v.

    What was delivered by who ended in a view that was re-formed may be lost, and is not owed. Counts pairs of
    a process and a message.
    """
    return judge("vs_semantic_uniform_agreement", history, _find_contaminated, semantic=True)


def _find_not_the_same(views: Views, findings: Findings) -> None:
    for stays in going_on_together(views):
        delivered, proof = _deliveries(views, stays)
        for stay in stays:

            def case(message: MessageId, stay: Stay = stay, proof: Proof = proof) -> tuple[str, list[Event]]:
                return f"{stay.process} has no {message} in view {number_of(stay)}", proof(message)

            views.known.report(findings, sorted(delivered.keys() - stay.delivered.keys()), case)


def _find_not_replaced(views: Views, findings: Findings) -> None:
    for stays in going_on_together(views):
        delivered, proof = _deliveries(views, stays)
        for stay in stays:
            find_lacking(views, findings, stay, delivered, proof)


def _find_contaminated(views: Views, findings: Findings) -> None:
    for stays in views.of.values():
        delivered, proof = _deliveries(views, [stay for stay in stays if not views.bereft(stay)])
        for stay in stays:
            if views.closed(stay):
                find_lacking(views, findings, stay, delivered, proof)


def _deliveries(views: Views, stays: list[Stay]) -> tuple[dict[int, Stay], Proof]:
    """What was delivered in any of the stays, and by whom first."""
    delivered = {part: stay for stay in reversed(stays) for part in stay.delivered}

    def proof(message: MessageId) -> list[Event]:
        holder = delivered[views.known.parts.around(message)]
        return views.known.find(Kind.DELIVER, holder.process, message)

    return delivered, proof
