"""An operator's word: only for the view it was given for, and only from who may give it."""

import pytest
from tests.core.test_core_turn import A, Echo
from tests.net.test_net_seat import Desk

from semcast.core import MemberId, Nanos, Outbox
from semcast.core.handover import Handover
from semcast.net.addresses import LOOPBACK, Address
from semcast.net.exchange import Exchange
from semcast.net.hub import Hub
from semcast.net.seat import Seat
from semcast.net.sockets import Endpoint
from semcast.protocols.ring.frames import FRAMES
from semcast.wire.datagrams import Codec
from semcast.wire.status import GoOn


class Told(Echo):
    """Counts how often it was told to go on."""

    told = 0

    def reform(self, now: Nanos) -> None:
        self.told += 1


def seat() -> tuple[Seat, Told]:
    stack = Told(A, Outbox())
    made = Seat(A, stack, Handover(2), wake_application=lambda: None)
    made.attach(Desk().hub)
    made.start(0, ())
    return made, stack


def test_a_word_about_another_view_means_nothing() -> None:
    made, stack = seat()
    here = stack.view().id
    made.reform(here + 1)
    made.run(1, ())
    assert stack.told == 0
    made.reform(here)
    made.run(2, ())
    assert stack.told == 1


@pytest.mark.parametrize(("address", "told"), [((LOOPBACK, 4000), 1), (("10.0.0.9", 4000), 0)])
def test_without_a_key_only_who_runs_on_this_host_is_believed(address: Address, told: int) -> None:
    made, stack = seat()
    endpoint = Endpoint((LOOPBACK, 0), None)
    hub = Hub(A, Exchange(endpoint), Codec("g", (), 1400, FRAMES), ())
    hub.seat(made)
    assert hub._look_at(1, MemberId("watcher"), address, [GoOn(stack.view().id)]) == []
    made.run(2, ())
    hub.close()
    endpoint.close()
    assert stack.told == told
