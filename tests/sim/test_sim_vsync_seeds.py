"""Seeds of virtual synchrony that once failed, and why."""

import pytest

from semcast.core import Enumeration, KEnumeration, MemberId, MessageId
from semcast.core.messages import batch_of
from semcast.sim.swarm import examine
from semcast.sim.vsync_scenario import draw_vsync
from semcast.sim.workloads import Source, constant, plain

SEEDS = {
    910116: "a token holder's own words took numbers that its application did not know of, so that commits "
    "replaced messages they did not mean",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_seeds_that_once_failed(seed: int) -> None:
    finding = examine(draw_vsync(seed))
    assert finding.clean, finding.broken


def test_annotations_name_messages_by_the_numbers_they_got() -> None:
    p = MemberId("p")
    source = Source(constant(1.0), plain())
    third = KEnumeration(3, 0b11)
    for number in (1, 2):
        source.sent(batch_of(p, number, [b"."]))
    assert source.numbered(third) == third
    source = Source(constant(1.0), plain())
    for number in (1, 4):
        source.sent(batch_of(p, number, [b"."]))
    assert source.numbered(third) == KEnumeration(5, 0b1001)
    named = Enumeration((MessageId(p, 2),))
    assert source.numbered(named) == named, "the stack knows what the second message is"
