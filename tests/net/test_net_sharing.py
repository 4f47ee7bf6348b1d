"""Who shares sockets with whom, and when they are closed; and the sockets of many meeting points."""

import gc
import socket
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pytest

from semcast.net import sharing
from semcast.net.addresses import LOOPBACK, meeting_point
from semcast.net.meeting import MeetingSockets
from semcast.net.sharing import Lease, lease
from semcast.net.sockets import Endpoint

HERE = (LOOPBACK, 0)
MOST = int(Path("/proc/sys/net/ipv4/igmp_max_memberships").read_text())


def name() -> str:
    return f"sharing {token_hex(4)}"


def rent(group: str = "", *, meets: bool = True, **how: bool) -> Lease:
    group = group or name()
    return lease(group, HERE, meeting_point(group) if meets else None, ("unicast", meets), **how)


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    assert not sharing.EXCHANGES._open
    assert not sharing.EXCHANGES._groups


def is_open(held: Lease) -> bool:
    return held.exchange.endpoint.filenos()[0] >= 0


def test_groups_that_are_alike_share_until_the_last_is_gone() -> None:
    held = [rent() for _ in range(3)]
    exchange = held[0].exchange
    assert all(each.shared and each.exchange is exchange for each in held)
    assert len(exchange.filenos()) == 2
    for each in held:
        assert is_open(each)
        each.release()
        each.release()  # once is enough
    assert not is_open(held[0])


def test_others_do_not_share() -> None:
    held = [rent(), rent(meets=False), rent(alone=True)]
    assert len({each.exchange for each in held}) == 3
    assert [each.shared for each in held] == [True, True, False]
    for each in held:
        each.release()
        assert not is_open(each)


def test_a_second_member_of_a_group_has_sockets_of_its_own() -> None:
    group = name()
    first, second = rent(group), rent(group)
    other = rent()
    assert first.exchange is other.exchange is not second.exchange
    first.release()
    third = rent(group)
    assert third.exchange is other.exchange
    for each in (second, third, other):
        each.release()


def test_what_cannot_be_opened_leaves_nothing_behind() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(HERE)
        with pytest.raises(OSError, match="in use"):
            lease(name(), taken.getsockname(), None)


def test_a_lease_that_nobody_holds_is_given_back() -> None:
    held = rent()
    exchange = held.exchange
    del held
    gc.collect()
    assert exchange.endpoint.filenos()[0] == -1


def test_who_comes_after_sockets_broke_gets_others() -> None:
    first = rent()
    first.exchange.failed(OSError("gone"))
    second = rent()
    assert second.exchange is not first.exchange
    first.release()
    assert is_open(second)
    second.release()


def test_a_socket_more_when_the_kernel_allows_no_more_meeting_points_to_one() -> None:
    endpoint = Endpoint(HERE)
    points = [meeting_point(name()) for _ in range(MOST + 2)]
    for point in points[:MOST]:
        endpoint.meet(point)
    assert len(endpoint.filenos()) == 2
    endpoint.meet(points[MOST])
    assert len(endpoint.filenos()) == 3
    endpoint.part(points[0])
    endpoint.part(points[1])
    endpoint.meet(points[0])
    endpoint.meet(points[MOST + 1])
    assert len(endpoint.filenos()) == 3, "there was room again"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
        for point in (points[MOST], points[1], points[0]):
            mouth.sendto(point[0].encode(), point)
        heard: list[bytes] = []
        while len(heard) < 2:
            heard += [data for data, _, met in endpoint.receive(endpoint.filenos()) if met]
    endpoint.close()
    assert sorted(heard) == sorted(point[0].encode() for point in (points[MOST], points[0]))


def test_two_groups_with_one_meeting_point() -> None:
    endpoint = Endpoint(HERE)
    point = meeting_point(name())
    endpoint.meet(point)
    endpoint.meet(point)
    endpoint.part(point)
    endpoint.send([b"x"], [point])
    with Endpoint(HERE)._own as mouth:
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
        mouth.sendto(b"y", point)
        heard: list[bytes] = []
        while not heard:
            heard += [data for data, _, _ in endpoint.receive(endpoint.filenos())]
    endpoint.part(point)
    endpoint.close()
    assert heard == [b"y"], "nobody hears oneself"


def test_only_what_was_sent_to_a_meeting_point_was_met() -> None:
    """The socket is bound to a port, and takes what is sent to this host alone, too."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        made: list[socket.socket] = []

        def make() -> socket.socket:
            made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            return made[-1]

        sockets = MeetingSockets(socket.AF_INET, LOOPBACK, own, make)
        point = meeting_point(name())
        sockets.meet(point)

        def told(host: str) -> list[tuple[int, int, bytes]]:
            return [(socket.IPPROTO_IP, 8, bytes(8) + socket.inet_aton(host))]

        assert sockets.met(told(point[0]))
        assert not sockets.met(told(LOOPBACK))
        assert not sockets.met(told("239.255.0.1"))
        assert not sockets.met([])
        sockets.part(point)
        assert not sockets.met(told(point[0]))
        sockets.close()
