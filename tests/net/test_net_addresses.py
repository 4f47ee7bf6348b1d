"""How people write addresses, and what is wrong with some."""

import socket

import pytest

from semcast.net.addresses import (
    AddressError,
    find_address,
    meeting_point_of,
    split_address,
    valid_host,
    written,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.7:5000", ("192.0.2.7", 5000)),
        ("[2001:db8::7]:5000", ("2001:db8::7", 5000)),
        ("[fe80::1%eth0]:5000", ("fe80::1%eth0", 5000)),
        ("localhost:5000", ("localhost", 5000)),
        ("db-1.example.org:65535", ("db-1.example.org", 65535)),
        ("my_host:1", ("my_host", 1)),
    ],
)
def test_forms_of_addresses(text: str, address: tuple[str, int]) -> None:
    assert split_address(text) == address
    assert written(address) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("localhost", "is not an address and a port"),
        ("localhost:", "is not an address and a port"),
        ("localhost:0", "is not an address and a port"),
        ("localhost:65536", "is not an address and a port"),
        ("localhost:5²", "is not an address and a port"),
        ("::1:5000", "stands in brackets"),
        ("[127.0.0.1]:5000", "no IPv6 address in the brackets"),
        ("[::1:5000", "stands in brackets"),
        ("300.1.1.1:5000", "neither an address nor the name"),
        ("1.2.3:5000", "neither an address nor the name"),
        ("a b:5000", "neither an address nor the name"),
        (":5000", "neither an address nor the name"),
        ("-x:5000", "neither an address nor the name"),
    ],
)
def test_what_is_no_address_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(AddressError, match=why):
        split_address(text)


def test_names_are_looked_up_in_the_family_that_is_needed() -> None:
    assert find_address("localhost:5000", socket.AF_INET) == ("127.0.0.1", 5000)
    assert find_address("[::1]:5000", socket.AF_INET6) == ("::1", 5000)
    assert find_address("localhost:0", any_port=True)[1] == 0


def test_a_host_that_nobody_knows() -> None:
    with pytest.raises(AddressError, match=r"cannot find host 'nobody\.invalid'"):
        find_address("nobody.invalid:5000")


def test_an_address_of_the_other_family() -> None:
    with pytest.raises(AddressError, match="is an IPv6 address, and this member is bound to one of IPv4"):
        find_address("[::1]:5000", socket.AF_INET)


def test_where_members_meet() -> None:
    assert meeting_point_of("g", "::1") is None
    four, six = meeting_point_of("g", "192.0.2.1"), meeting_point_of("g", "2001:db8::1")
    assert four is not None
    assert six is not None
    assert four[0].startswith("239.255.")
    assert six[0].startswith("ff12::")
    assert four[1] == six[1]


@pytest.mark.parametrize("text", ["224.0.0.1", "0.0.0.0", "255.255.255.255", "::", "ff02::1", "x", ""])  # noqa: S104
def test_what_is_not_the_address_of_one_host(text: str) -> None:
    assert not valid_host(text)


@pytest.mark.parametrize("text", ["127.0.0.1", "::1", "fe80::1%2"])
def test_what_is(text: str) -> None:
    assert valid_host(text)
