"""Confirmations, broken: an answer to a sender is true of every member it speaks of."""

from semcast.core.views import View
from semcast.protocols.ring import Ring
from semcast.protocols.ring.confirming import Answers
from semcast.protocols.ring.operation import Operation
from semcast.protocols.ring.ordering import RingOrder
from semcast.protocols.ring.sending import Sending
from semcast.sim.mutants.mutant import Mutant


class _ConfirmedWhenSent(Answers):
    def settle(self, order: RingOrder, view: View) -> None:
        self._sent.settle(view, delivered=self._sent.last, safe=order.confirmed_aru)


class _ConfirmedWhenSentSending(Sending):
    answers_kind = _ConfirmedWhenSent


class _ConfirmedWhenSentOperation(Operation):
    sending_kind = _ConfirmedWhenSentSending


class ConfirmedWhenSent(Ring):
    """Says that a message is delivered as soon as it has left, whatever is missing before it."""

    operation_kind = _ConfirmedWhenSentOperation


class _SafeWhenDelivered(Answers):
    def settle(self, order: RingOrder, view: View) -> None:
        delivered = order.in_order(self._sent.last)
        self._sent.settle(view, delivered=delivered, safe=delivered)


class _SafeWhenDeliveredSending(Sending):
    answers_kind = _SafeWhenDelivered


class _SafeWhenDeliveredOperation(Operation):
    sending_kind = _SafeWhenDeliveredSending


class SafeWhenDelivered(Ring):
    """Says that all have a message as soon as it is delivered here."""

    operation_kind = _SafeWhenDeliveredOperation


MUTANTS = {
    "confirmed-when-sent": Mutant(ConfirmedWhenSent),
    "safe-when-delivered": Mutant(SafeWhenDelivered, by_chance=False),
}
