"""Whom gossip asks: weights that change, members that come and go."""

from collections import Counter
from itertools import accumulate
from random import Random

from semcast.core.ids import MILLISECOND, MemberId
from semcast.protocols.gossip.peers import Peers
from semcast.protocols.gossip.settings import Choice
from semcast.protocols.gossip.weights import Weight, Weights


def test_weights_choose_as_a_plain_list_does() -> None:
    rng = Random(5)
    weights, plain = Weights(), list[Weight]()
    for _ in range(2000):
        deed, weight = rng.random(), rng.choice((None, rng.randrange(1, 50)))
        if deed < 0.3 or not plain:
            weights.append(weight)
            plain.append(weight)
        elif deed < 0.4:
            assert weights.pop() == plain.pop()
        else:
            place = rng.randrange(len(plain))
            weights.put(place, weight)
            plain[place] = weight
        if plain:
            share, other = rng.random(), rng.randrange(1, 20)
            sums = list(accumulate(other if each is None else each for each in plain))
            found = next(place for place, upto in enumerate(sums) if upto > share * sums[-1])
            assert weights.choose(share, other) == found


def test_who_is_near_is_asked_more_often_and_who_is_gone_never() -> None:
    near, far, gone = (MemberId(name) for name in ("near", "far", "gone"))
    peers = Peers([gone, near, far], Choice.LINEAR, Random(1))
    for number, (member, trip) in enumerate(((gone, 1), (near, 2), (far, 8)), 1):
        peers.asked(number, member, 0)
        peers.answered(number, member, trip * MILLISECOND)
    peers.forget("gone")
    asked = Counter(peers.choose() for _ in range(1000))
    assert set(asked) == {near, far}
    assert 700 < asked[near] < 900  # four times as near


def test_a_new_incarnation_is_measured_anew() -> None:
    peers = Peers([MemberId("p"), MemberId("q")], Choice.QUADRATIC, Random(1))
    for number, name in enumerate("pq", 1):
        peers.asked(number, MemberId(name), 0)
        peers.answered(number, MemberId(name), (1 if name == "q" else 1000) * MILLISECOND)
    assert {peers.choose() for _ in range(50)} == {MemberId("q")}
    peers.meet(MemberId("p", 1))  # as far as the median, now: as q
    assert {peers.choose() for _ in range(50)} == {MemberId("p", 1), MemberId("q")}


def test_places_that_come_at_once_are_those_that_come_one_by_one() -> None:
    for count in (0, 1, 2, 7, 8, 100):
        one_by_one, at_once = Weights(), Weights.unknown(count)
        for _ in range(count):
            one_by_one.append(None)
        for weights in (one_by_one, at_once):
            weights.append(5)
            weights.put(count // 2, 9)
        assert vars(one_by_one) == vars(at_once)
