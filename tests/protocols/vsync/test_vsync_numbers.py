"""How an application's count of its messages becomes numbers of the stack, over several incarnations."""

from random import Random

from semcast.core import Enumeration, KEnumeration, MemberId, MessageId
from semcast.core.messages import batch_of
from semcast.core.outbox import Outbox
from semcast.protocols.vsync import VirtualSynchrony, VsyncSettings
from semcast.protocols.vsync.numbers import Numbers

P, Q = MemberId("p"), MemberId("q")
AGAIN = MemberId("p", 1)
ROOM = 1 << 10


def took(numbers: Numbers, *firsts: int) -> None:
    for first in firsts:
        numbers.took(batch_of(P, first, [b"."]))


def named(who: MemberId, *seqs: int) -> Enumeration:
    return Enumeration(tuple(MessageId(who, seq) for seq in seqs))


def test_own_messages_are_named_by_the_numbers_they_got() -> None:
    numbers = Numbers(P, ROOM)
    took(numbers, 1, 4, 5)
    assert numbers.translated(named(P, 1, 2, 3)) == named(P, 1, 4, 5)
    assert numbers.translated(named(Q, 2)) == named(Q, 2), "those of others have one number only"


def test_a_k_enumeration_is_relative_to_its_own_message() -> None:
    third = KEnumeration(3, 0b11)
    numbers = Numbers(P, ROOM)
    took(numbers, 1, 2)
    assert numbers.translated(third) == third
    numbers = Numbers(P, ROOM)
    took(numbers, 1, 4)
    assert numbers.translated(third) == KEnumeration(5, 0b1001), "the first and the fourth"
    total = KEnumeration(9, 0b1, total=True)
    assert numbers.translated(total) is total, "positions in the total order are everybody's"


def test_a_k_enumeration_of_a_former_life_reaches_back_to_what_was_taken_over() -> None:
    numbers = Numbers(AGAIN, ROOM, {P: 3})
    took(numbers, 1, 2)
    assert numbers.translated(KEnumeration(6, 0b1111)) == KEnumeration(3, 0b11)


def test_what_was_not_taken_yet_cannot_be_named() -> None:
    numbers = Numbers(P, ROOM)
    took(numbers, 1)
    assert numbers.translated(named(P, 1, 2)) == named(P, 1)


def test_who_comes_back_names_what_it_took_over_and_nothing_older() -> None:
    former = Numbers(P, ROOM)
    took(former, 1, 2, 3)
    assert former.successors() == {P: 3}
    numbers = Numbers(AGAIN, ROOM, former.successors())
    took(numbers, 2)
    assert numbers.translated(named(P, 3, 4)) == named(AGAIN, 2), "the fourth for p is the first of p#1"
    assert numbers.translated(named(AGAIN, 1)) == named(AGAIN, 2)
    assert numbers.successors() == {P: 4, AGAIN: 1}


def test_an_enumeration_takes_up_no_more_than_its_room() -> None:
    numbers = Numbers(P, 50)
    took(numbers, *range(1, 6))
    assert numbers.translated(named(P, 1, 2, 3, 4, 5)) == named(P, 4, 5), "the latest are named"


def test_what_may_be_lost_is_named_as_the_application_counts() -> None:
    numbers = Numbers(P, ROOM)
    took(numbers, 1, 4, 5)
    assert numbers.after(3) == (MessageId(P, 2), MessageId(P, 3))
    assert numbers.after(5) == ()


def test_a_stack_that_never_was_in_a_view_hands_on_what_it_was_given() -> None:
    settings = VsyncSettings(minimum=2)
    stack = VirtualSynchrony(AGAIN, settings, Random(1), Outbox(), {P: 3})
    stack.start(0)
    assert not stack.behind(), "in no view there is none that the program could know"
    assert stack.unsettled() == ()
    third = MemberId("p", 2)
    again = stack.successor(third, Random(2), Outbox())
    assert again.settings.minimum == 0, "the group is there: it only joins"
    assert again._numbers.successors() == {P: 3, AGAIN: 0, third: 0}
