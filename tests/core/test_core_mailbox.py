"""The mailbox: lists grow for applications that are fast with them, whatever else they do."""

from random import Random

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


def keeps_reading(mailbox: Mailbox, *, each: Nanos, fixed: Nanos, lists: int, jitter: Nanos = 0) -> list[int]:
    """An application to which a list and a message cost so much; how long its lists get."""
    rng, wants = Random(5), []
    for number in range(lists):
        busy = fixed + each * mailbox.want + round(jitter * rng.random())
        wants.append(visit(mailbox, count=mailbox.want, busy=busy, since=number * 1000 * MILLISECOND))
    return wants


def test_an_application_that_takes_long_for_each_list_gets_long_ones() -> None:
    """It commits, or acknowledges to a logger far away: a message a list would be as slow as a full list."""
    mailbox = Mailbox(most=1024)
    assert keeps_reading(mailbox, each=1000, fixed=50 * MILLISECOND, lists=100)[-1] == 1024


def test_an_application_on_a_busy_machine_gets_long_lists_if_only_the_list_costs_it() -> None:
    mailbox = Mailbox(most=1024)
    wants = keeps_reading(mailbox, each=1000, fixed=50 * MILLISECOND, jitter=40 * MILLISECOND, lists=400)
    assert sum(wants[200:]) / 200 > 256


def test_an_application_that_takes_long_for_each_message_gets_few_and_keeps_getting_few() -> None:
    mailbox = Mailbox(most=1024)
    wants = keeps_reading(mailbox, each=50 * MILLISECOND, fixed=0, lists=1000)
    assert max(wants[1:]) <= 2
    assert wants.count(2) < 50, "a longer list is a rare try"


def test_an_application_that_changes_its_ways_is_followed() -> None:
    mailbox = Mailbox(most=1024)
    keeps_reading(mailbox, each=50 * MILLISECOND, fixed=0, lists=100)
    assert keeps_reading(mailbox, each=0, fixed=50 * MILLISECOND, lists=1000)[-1] == 1024
    assert keeps_reading(mailbox, each=50 * MILLISECOND, fixed=0, lists=10)[-1] == 1


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
