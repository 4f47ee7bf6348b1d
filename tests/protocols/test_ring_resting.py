"""The first member of an idle ring holds the token. Nobody who has something to send waits for that."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest
from tests.protocols.ringlab import RingLab

from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.outbox import Dest, Frame
from semcast.protocols.ring import RingSettings
from semcast.protocols.ring.frames import Packet

HOLD = 50
"""Milliseconds; a rotation takes three."""


class SlowLab(RingLab):
    """Packets come later than the token that was sent after them: who gets that has yet to say it has all."""

    latency: Nanos = MILLISECOND
    behind: Nanos = 2_500_000

    def post(self, source: MemberId, sends: Sequence[tuple[Dest, Frame]]) -> None:
        before = len(self.wire)
        super().post(source, sends)
        letters = list(self.wire)
        for place, letter in enumerate(letters[before:], before):
            if isinstance(letter.frames[0], Packet):
                letters[place] = letter._replace(at=letter.at + self.behind)
        self.wire = deque(sorted(letters, key=lambda letter: letter.at))


def idle(**settings: Any) -> SlowLab:
    lab = SlowLab("pqr", RingSettings(hold=HOLD * MILLISECOND, **settings))
    lab.start()
    lab.run_for(800)
    assert all(len(ring.order.members) == 3 for ring in lab.rings.values())
    return lab


def said(lab: RingLab, name: str) -> str:
    return "".join(word for word in lab.story[name] if len(word) == 1)


@pytest.mark.parametrize("sender", "pqr")
def test_who_had_no_room_in_the_window_does_not_wait(sender: str) -> None:
    lab = idle(window=4, visit=4, visit_least=4, packet_bytes=100, accelerated=4)
    many = 40
    for _ in range(many):
        lab.multicast(sender, b"x" * 60)
    lab.run_for(4 * many)
    assert [sum(len(word) == 60 for word in lab.story[name]) for name in "pqr"] == [many] * 3


@pytest.mark.parametrize("after", range(1, 16))
@pytest.mark.parametrize("sender", "pqr")
def test_whoever_sends_again_does_not_wait(sender: str, after: int) -> None:
    """Whatever the token said when it was here last, as the first message was under way to somebody."""
    lab = idle()
    lab.multicast(sender, b"a")
    lab.run_for(after)
    lab.multicast(sender, b"b")
    lab.run_for(20)
    assert [said(lab, name) for name in "pqr"] == ["ab"] * 3
