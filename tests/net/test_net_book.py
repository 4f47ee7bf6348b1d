"""Who is where: members of the view keep their places whatever strangers say."""

from semcast.core.ids import SECOND, MemberId
from semcast.net.addresses import Address
from semcast.net.book import _STRANGERS, _STRANGERS_AT_ONE_ADDRESS, AddressBook

A, B = MemberId("a"), MemberId("b")
HERE: Address = ("127.0.0.1", 5000)
THERE: Address = ("127.0.0.1", 5001)


def ghost(number: int) -> MemberId:
    return MemberId(f"ghost {number}")


def test_ghosts_evict_each_other_and_no_member_of_the_view() -> None:
    """Each address has few places for strangers: one socket cannot take them all."""
    book = AddressBook()
    book.heard(0, A, HERE)
    book.settle((A, B))
    for number in range(10_000):
        book.heard(number, ghost(number), THERE)
    book.heard(10_000, B, ("127.0.0.1", 5002))
    for number in range(10_000, 20_000):
        book.heard(number, ghost(number), ("127.0.0.1", 6000 + number))
    assert book.find(A) == HERE
    assert book.find(B) == ("127.0.0.1", 5002)
    assert len(book.targets()) <= 2 + _STRANGERS


def test_one_address_has_few_places() -> None:
    book = AddressBook()
    newcomer = MemberId("newcomer")
    book.heard(0, newcomer, HERE)
    for number in range(1000):
        book.heard(1 + number, ghost(number), THERE)
    assert book.find(newcomer) == HERE
    known = [number for number in range(1000) if book.find(ghost(number)) is not None]
    assert known == list(range(1000 - _STRANGERS_AT_ONE_ADDRESS, 1000))


def test_a_member_is_elsewhere_only_when_it_was_silent_where_it_was() -> None:
    book = AddressBook()
    assert book.heard(0, A, HERE)
    assert not book.heard(SECOND, A, THERE)
    assert book.find(A) == HERE
    assert book.heard(2 * SECOND, A, HERE)
    assert book.heard(6 * SECOND, A, THERE), "silent for four seconds"
    assert book.find(A) == THERE


def test_what_others_said_gives_way_at_once_to_what_is_heard() -> None:
    book = AddressBook()
    book.introduced(0, A, HERE)
    assert book.heard(1, A, THERE)
    assert book.find(A) == THERE
    book.introduced(2, A, HERE)
    assert book.find(A) == THERE


def test_who_was_in_a_view_stays_known_after_it_until_it_is_silent() -> None:
    """After a partition the other side is to be found again."""
    book = AddressBook()
    book.heard(0, A, HERE)
    book.settle((A, B))
    book.settle((B,))
    for number in range(1000):
        book.heard(number, ghost(number), ("127.0.0.1", 6000 + number))
    assert book.find(A) == HERE
    book.forget(31 * SECOND)
    assert book.find(A) is None


def test_members_of_the_view_are_introduced_before_strangers() -> None:
    book = AddressBook()
    book.heard(0, A, HERE)
    book.settle((A,))
    book.heard(1, ghost(1), THERE)
    assert [member for member, _ in book.contacts(1)] == [A]
