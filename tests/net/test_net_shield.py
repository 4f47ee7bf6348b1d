"""Floods: who sends much that is of no use is kept out by the kernel, and nobody else is."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from semcast.core.ids import SECOND
from semcast.net.addresses import Address, plain
from semcast.net.filters import MOST_NAMED, program
from semcast.net.shield import LIMIT, LIMIT_OF_ALL, MOST, PENALTY, Shield
from semcast.net.sockets import Endpoint

FLOODER: Address = ("127.0.0.1", 6666)


def test_few_useless_datagrams_are_nobodys_flood() -> None:
    shield = Shield()
    for second in range(10):
        for _ in range(LIMIT - 1):
            shield.note(second * SECOND, FLOODER)
    assert not shield.alarmed
    assert not shield.verdict(10 * SECOND)


def test_who_floods_is_kept_out_for_a_while() -> None:
    shield = Shield()
    for _ in range(LIMIT):
        shield.note(0, FLOODER)
    alarms = [shield.alarmed]
    assert shield.verdict(1).keep_out == (FLOODER,)
    alarms.append(shield.alarmed)
    assert not shield.verdict(PENALTY)
    assert alarms == [True, False]


def test_too_many_to_name_leave_members_and_a_share_of_the_others() -> None:
    shield = Shield()
    for number in range(LIMIT_OF_ALL):
        shield.note(0, ("127.0.0.1", number))
    assert shield.alarmed
    found = shield.verdict(1)
    assert found.few
    assert found.keep_out == ()


def test_memory_is_bounded_and_so_are_the_names() -> None:
    shield = Shield()
    for number in range(200_000):
        shield.note(0, (f"10.0.{number // 50_000}.1", number % 50_000))
    for port in range(2 * MOST):
        for _ in range(LIMIT):
            shield.note(2 * SECOND, ("127.0.0.1", port))
    assert len(shield._counts) <= 4096 + 2 * MOST
    assert len(shield.verdict(2 * SECOND).keep_out) == MOST


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_largest_program_fits_in_the_kernel(family: socket.AddressFamily) -> None:
    host = "192.0.2.1" if family == socket.AF_INET else "2001:db8::1"
    named = [(host, port) for port in range(MOST_NAMED)]
    assert len(program(family, named[:-64], named[-64:], few=True)) <= 4096


class Scene:
    """A member, and sockets that send to it."""

    def __init__(self, host: str, opened: ExitStack) -> None:
        self.endpoint = Endpoint((host, 0))
        opened.callback(self.endpoint.close)
        self.senders = [socket.socket(self.endpoint.family, socket.SOCK_DGRAM) for _ in range(3)]
        for each in self.senders:
            opened.enter_context(each)
            each.bind((host, 0))
        self.addresses = [plain(each.getsockname()) for each in self.senders]

    def heard(self, count: int) -> list[int]:
        """What comes of so many datagrams of each."""
        found = [0] * len(self.senders)
        for _ in range(count):
            for each in self.senders:
                each.sendto(b"x", self.endpoint.address)
            for _, address, _ in self.endpoint.receive(self.endpoint.filenos()):
                found[self.addresses.index(address)] += 1
        return found


@pytest.fixture(params=["127.0.0.1", "::1"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    with ExitStack() as opened:
        yield Scene(request.param, opened)


def test_the_kernel_keeps_out_whom_it_is_told_to(scene: Scene) -> None:
    flooder, member, _ = scene.addresses
    scene.endpoint.keep_out([flooder], [member], few=False)
    assert scene.heard(10) == [0, 10, 10]
    assert scene.endpoint.stats.kept_out == 0
    scene.endpoint.keep_out([], [], few=False)
    assert scene.endpoint.stats.kept_out == 10
    assert scene.heard(10) == [10, 10, 10]
    scene.endpoint.count_drops()
    assert scene.endpoint.stats.kernel_drops == 0


def test_a_member_comes_in_even_where_it_is_to_be_kept_out(scene: Scene) -> None:
    member = scene.addresses[1]
    scene.endpoint.keep_out([member], [member], few=False)
    assert scene.heard(10) == [10, 10, 10]


def test_of_strangers_a_share_comes_in(scene: Scene) -> None:
    member = scene.addresses[0]
    scene.endpoint.keep_out([], [member], few=True)
    known, one, two = scene.heard(2000)
    assert known == 2000
    assert 0 < one < 1000
    assert 0 < two < 1000


def test_a_burst_of_small_datagrams_is_read_in_one_go() -> None:
    with ExitStack() as opened:
        scene = Scene("127.0.0.1", opened)
        for _ in range(20):
            scene.senders[0].sendto(b"small", scene.endpoint.address)
        assert len(scene.endpoint.receive(scene.endpoint.filenos())) == 20
