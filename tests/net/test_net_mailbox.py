"""The mailbox: lists grow for applications that are fast with them, whatever else they do."""

from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.messages import batch_of
from semcast.net.mailbox import Mailbox

P = MemberId("p")


class Clock:
    now: Nanos = 0

    def __call__(self) -> Nanos:
        return self.now


def visit(mailbox: Mailbox, clock: Clock, *, count: int, busy: Nanos, elsewhere: Nanos = 0) -> int:
    mailbox.put([batch_of(P, 1, [b"."] * count)])
    mailbox.take()
    clock.now += busy
    mailbox.dealt_with()
    clock.now += elsewhere
    return mailbox.want


def test_an_application_that_is_brief_with_full_lists_gets_longer_ones() -> None:
    clock = Clock()
    mailbox = Mailbox(clock)
    before = mailbox.want
    assert visit(mailbox, clock, count=before, busy=MILLISECOND) == 2 * before


def test_what_an_application_does_between_lists_says_nothing() -> None:
    clock = Clock()
    mailbox = Mailbox(clock)
    before = mailbox.want
    assert visit(mailbox, clock, count=before, busy=0, elsewhere=1000 * MILLISECOND) == 2 * before
    assert visit(mailbox, clock, count=2 * before, busy=0) == 4 * before


def test_a_list_with_little_in_it_proves_nothing() -> None:
    clock = Clock()
    mailbox = Mailbox(clock)
    before = mailbox.want
    assert visit(mailbox, clock, count=1, busy=0) == before


def test_an_application_that_takes_long_gets_few() -> None:
    clock = Clock()
    mailbox = Mailbox(clock)
    for _ in range(5):
        visit(mailbox, clock, count=mailbox.want, busy=10 * MILLISECOND * mailbox.want + 1)
    assert mailbox.want == 1


def test_a_list_counts_once() -> None:
    clock = Clock()
    mailbox = Mailbox(clock)
    before = visit(mailbox, clock, count=mailbox.want, busy=0)
    mailbox.dealt_with()
    assert mailbox.want == before
