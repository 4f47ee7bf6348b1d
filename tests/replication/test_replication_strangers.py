"""Two groups of one name on one network: they do not mix, each goes on, and whoever runs them is told."""

from random import Random

from semcast.core import Batch, MemberId
from semcast.core.ids import MILLISECOND
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.lab import Disk, Lab, Seat
from semcast.protocols.ring import Ring, RingSettings, SlowPolicy
from semcast.replication.settings import ReplicationSettings
from semcast.replication.stack import Replication

RING = RingSettings(
    policy=SlowPolicy.BLOCK,
    token_loss=60 * MILLISECOND,
    gather=20 * MILLISECOND,
    join=10 * MILLISECOND,
    commit=60 * MILLISECOND,
    calm=20 * MILLISECOND,
    presence=50 * MILLISECOND,
    hold=5 * MILLISECOND,
)


def below(me: MemberId, rng: Random, out: Outbox) -> Stack:
    return Ring(me, RING, rng, out)


def server(lab: Lab, name: str, names: str) -> Seat:
    member = MemberId(name)
    settings = ReplicationSettings(names=tuple(names))
    stack = Replication(member, settings, below, Random(name), Outbox())
    return lab.add(member, stack, disk=Disk())


def machine(seat: Seat) -> Replication:
    assert isinstance(seat.stack, Replication)
    return seat.stack


def done(seat: Seat) -> list[bytes]:
    taken = seat.application.taken  # type: ignore[attr-defined]
    return [payload for each in taken if isinstance(each, Batch) for payload in each.payloads]


def test_two_groups_that_meet_stay_apart_and_both_go_on() -> None:
    lab = Lab(latency=MILLISECOND)
    seats = {name: server(lab, name, names) for names in ("ab", "cd") for name in names}
    lab.carries = lambda source, dest, _: (source in "ab") == (dest in "ab")
    lab.start()
    lab.run(1000 * MILLISECOND)
    for name in "ac":
        seats[name].multicast(name.encode(), safe=True)
    lab.run(200 * MILLISECOND)
    lab.carries = lambda *_: True
    lab.run(1000 * MILLISECOND)
    for name in "bd":
        seats[name].multicast(name.encode(), safe=True)
    lab.run(500 * MILLISECOND)
    assert len(seats["a"].stack.view().members) == 4, "they are in one configuration"
    assert [done(seats[name]) for name in "abcd"] == [[b"a", b"b"]] * 2 + [[b"c", b"d"]] * 2
    for name, others in zip("abcd", ("c, d", "c, d", "a, b", "a, b"), strict=True):
        assert machine(seats[name]).phase() == "operational"
        assert f"founded by {others}" in machine(seats[name]).machine.refusal
        assert not machine(seats[name]).strangers


def test_who_would_found_where_a_group_of_this_name_is_waits_and_says_why() -> None:
    lab = Lab(latency=MILLISECOND)
    seats = {name: server(lab, name, "ab") for name in "ab"}
    lab.start()
    lab.run(1000 * MILLISECOND)
    late = {name: server(lab, name, "cd") for name in "cd"}
    for seat in late.values():
        seat.start()
    lab.run(1000 * MILLISECOND)
    seats["a"].multicast(b"a", safe=True)
    lab.run(500 * MILLISECOND)
    assert [done(seat) for seat in seats.values()] == [[b"a"]] * 2
    assert [done(seat) for seat in late.values()] == [[]] * 2
    for seat in late.values():
        assert "founded by a, b" in machine(seat).machine.refusal
    assert machine(seats["a"]).machine.refusal == ""
