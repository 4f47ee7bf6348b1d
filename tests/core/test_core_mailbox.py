"""The mailbox: lists grow for applications that are fast with them, whatever else they do."""

from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.mailbox import Mailbox
from semcast.core.messages import batch_of

P = MemberId("p")


def visit(mailbox: Mailbox, *, count: int, busy: Nanos, since: Nanos = 0) -> int:
    mailbox.put([batch_of(P, 1, [b"."] * count)])
    mailbox.take(since)
    mailbox.dealt_with(since + busy)
    return mailbox.want


def test_an_application_that_is_brief_with_full_lists_gets_longer_ones() -> None:
    mailbox = Mailbox()
    before = mailbox.want
    assert visit(mailbox, count=before, busy=MILLISECOND) == 2 * before


def test_what_an_application_does_between_lists_says_nothing() -> None:
    mailbox = Mailbox()
    before = mailbox.want
    assert visit(mailbox, count=before, busy=0) == 2 * before
    assert visit(mailbox, count=2 * before, busy=0, since=1000 * MILLISECOND) == 4 * before


def test_a_list_with_little_in_it_proves_nothing() -> None:
    mailbox = Mailbox()
    before = mailbox.want
    assert visit(mailbox, count=1, busy=0) == before


def test_an_application_that_takes_long_gets_few() -> None:
    mailbox = Mailbox()
    for _ in range(5):
        visit(mailbox, count=mailbox.want, busy=10 * MILLISECOND * mailbox.want + 1)
    assert mailbox.want == 1


def test_large_messages_come_in_short_lists() -> None:
    """However brief the application is with them: they lie in memory."""
    mailbox = Mailbox(most_bytes=1000)
    for _ in range(3):
        mailbox.put([batch_of(P, 1, [bytes(300)] * mailbox.want)])
        mailbox.take(0)
        mailbox.dealt_with(0)
    assert mailbox.want == 3
    mailbox.put([batch_of(P, 1, [bytes(5000)])])
    mailbox.take(0)
    mailbox.dealt_with(0)
    assert mailbox.want == 1, "one at least, whatever its size"


def test_bytes_beyond_the_bound_are_counted() -> None:
    mailbox = Mailbox(lists=1)
    for size in (100, 20, 3):
        mailbox.put([batch_of(P, 1, [bytes(size)])])
    assert mailbox.excess() == (2, 23)


def test_a_list_counts_once() -> None:
    mailbox = Mailbox()
    before = visit(mailbox, count=mailbox.want, busy=0)
    mailbox.dealt_with(1000 * MILLISECOND)
    assert mailbox.want == before


def test_without_lists_there_is_room_only_while_the_application_asks() -> None:
    mailbox = Mailbox(lists=0)
    assert not mailbox.has_room()
    mailbox.asked = True
    assert mailbox.has_room()
    mailbox.put([batch_of(P, 1, [b"."])])
    assert not mailbox.has_room()
