"""A server that is told to leave while it still enters: it is gone at once, and does not come after all."""

from random import Random

import pytest

from semcast.core import MemberId, Outbox
from semcast.core.events import Left
from semcast.core.outbox import Sync
from semcast.core.stack import Stack
from semcast.protocols.ring import Ring, RingSettings
from semcast.replication.frames import Wanted
from semcast.replication.settings import ReplicationSettings
from semcast.replication.stack import Replication, ReplicationTimer
from semcast.replication.states import State

ME = MemberId("a", 1)


def below(me: MemberId, rng: Random, out: Outbox) -> Stack:
    return Ring(me, RingSettings(), rng, out)


def started(*names: str) -> Replication:
    """A server whose epoch is on its way to the disk."""
    server = Replication(ME, ReplicationSettings(names=names), below, Random(1), Outbox())
    server.recover(0, [])
    server.start(0)
    return server


def finish_syncs(server: Replication, now: int) -> None:
    """The disk has done all that it was asked for."""
    tickets = [each.ticket for each in server.out.writes if isinstance(each, Sync)]
    server.out.writes.clear()
    for ticket in tickets:
        server.on_synced(now, ticket)


def left(server: Replication) -> list[str]:
    return [event.cause for event in server.out.events if isinstance(event, Left)]


def silent(server: Replication) -> bool:
    """Whether it neither says anything nor waits for anything."""
    timers = dict(server.out.timers)
    return not server.out.sends and not any(timers.values())


@pytest.mark.parametrize("names", [("a",), ("a", "b", "c"), ()])
def test_who_leaves_before_its_epoch_is_on_the_disk_never_enters(names: tuple[str, ...]) -> None:
    server = started(*names)
    assert server.machine.state is State.BOOT
    server.leave(1)
    assert left(server) == ["asked to"]
    finish_syncs(server, 2)
    server.on_timer(3, ReplicationTimer.PULL)
    assert silent(server)
    assert (server.phase(), left(server)) == ("left", ["asked to"])


def test_who_leaves_while_it_asks_others_for_what_it_lacks_asks_no_more() -> None:
    server = started()
    finish_syncs(server, 1)
    assert server.machine.state is State.OUT
    assert any(isinstance(frame, Wanted) for _, frame in server.out.sends)
    server.out.sends.clear()
    server.leave(2)
    server.on_timer(3, ReplicationTimer.PULL)
    assert silent(server)
    assert left(server) == ["asked to"]


def test_who_leaves_while_what_it_lacked_is_on_its_way_to_the_disk_does_not_come_back() -> None:
    server = started()
    finish_syncs(server, 1)
    server.machine.journal.sync(server._come_back)
    server.out.sends.clear()
    server.leave(2)
    finish_syncs(server, 3)
    assert silent(server)
    assert left(server) == ["asked to"]


def test_who_leaves_while_it_looks_for_the_others_is_gone_after_a_token_loss() -> None:
    server = started("a", "b", "c")
    finish_syncs(server, 1)
    server.leave(2)
    assert server.inner.phase() in ("gather", "left")
    deadline = 2 + RingSettings().token_loss
    for now in range(2, deadline + 2, RingSettings().token_loss // 10):
        for timer, at in list(dict(server.out.timers).items()):
            if at is not None and at <= now and not left(server):
                server.on_timer(now, timer)
    assert left(server) == ["asked to"]
