"""How many rounds of gossip it takes until everybody has a message (Sun 2000, section 4.2).

Of n members n0 have the message after its multicast. In each round everybody contacts one member: with *pull*
who lacks the message asks, with *push* who has it tells. Rounds *suffice* if the probability that somebody
still lacks the message is below an error.

Two models. The recurrence (4.2.2) treats members as independent, which is wrong where few have the message:
from n0 = 1 pull takes 13 rounds by it and 23 exactly. The Markov chain (4.2.1) over the number of those who
have it is exact; the paper has it for pull only, with uniform choice it works for push, too (balls in bins).

Deviations: the paper writes a probability for its complement in several places (P_k < delta is
1 - P_k < delta); `itself` says whether a member may choose itself, as the paper's formulas have it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb, expm1, inf, log, log1p
from random import Random
from typing import Literal

Contact = Literal["pull", "push"]
Bias = Literal["uniform", "linear", "quadratic"]
Reading = Literal["inverse", "difference"]

MOST_ROUNDS = 10_000
"""Gossip that takes longer does not converge."""
_NEGLIGIBLE = 1e-18
"""Probabilities below this are dropped: far below any error that is asked for."""


@dataclass(frozen=True, slots=True)
class Epidemic:
    """n members, n0 of which have the message; contacts are uniform, and fail with probability `loss`."""

    n: int
    n0: int
    contact: Contact = "pull"
    loss: float = 0.0
    itself: bool = True
    """Whether a member may choose itself, and waste its round."""

    def __post_init__(self) -> None:
        if not 1 <= self.n0 <= self.n or self.n < 2:
            raise ValueError(f"{self.n0} of {self.n} members have the message: at least 1 of at least 2")
        if not 0 <= self.loss < 1:
            raise ValueError(f"a loss of {self.loss}: between 0 and 1")

    @property
    def hit(self) -> float:
        """The probability that a contact reaches a given other member."""
        return (1 - self.loss) / (self.n if self.itself else self.n - 1)


def contact_loss(loss: float, messages: int) -> float:
    """What becomes of a contact of so many messages, if each is lost on its own: pull takes 2, push 3.

    >>> contact_loss(0.01, 2)
    0.01990000000000003
    """
    return 1 - float((1 - loss) ** messages)


# The recurrence


def lacking(epidemic: Epidemic) -> Iterator[float]:
    """1 - P_k for k = 1, 2, ...: the probability that a member that lacked the message still does."""
    hit, n0, others = epidemic.hit, epidemic.n0, epidemic.n - epidemic.n0 - 1
    left = 1.0
    while True:
        has = 1 - left
        if epidemic.contact == "pull":
            left *= 1 - hit * (n0 + others * has)
        else:
            left *= (1 - hit) ** n0 * (1 - has * hit) ** others
        yield left


def rounds_by_recurrence(epidemic: Epidemic, error: float = 1e-6) -> int:
    """Rounds that suffice by 4.2.2: figure 4-2 came from this.

    >>> [rounds_by_recurrence(Epidemic(100, n0)) for n0 in (1, 10, 50, 99)]
    [13, 9, 6, 4]
    """
    count = epidemic.n - epidemic.n0
    errors = (-expm1(count * log1p(-left)) if left < 1 else 1.0 for left in lacking(epidemic))
    return _first_below(errors, error) if count else 0


def bound(n: int, n0: int, error: float = 1e-6) -> float:
    """Rounds of uniform pull that suffice, by the closed forms at the end of 4.2.2.

    The inequalities they are derived from do not hold (P_k >= 1 - e^-k is false for k = 1, n0 < 0.632 n); the
    results held wherever they were compared with the chain.
    """
    if n0 == n:
        return 0.0
    if n0 > n / 2:
        return -log(error / (n - n0))
    return 1 - log(2 * n0 * error / (n * (n - n0)))


# The Markov chain


def distributions(epidemic: Epidemic) -> Iterator[Mapping[int, float]]:
    """After each round, how probable it is that so many members have the message."""
    step = _pulled if epidemic.contact == "pull" else _pushed
    known: dict[int, Mapping[int, float]] = {}
    now: dict[int, float] = {epidemic.n0: 1.0}
    while True:
        then: dict[int, float] = {}
        for have, weight in now.items():
            if have not in known:
                known[have] = step(epidemic, have)
            for more, chance in known[have].items():
                then[more] = then.get(more, 0.0) + weight * chance
        now = {have: weight for have, weight in then.items() if weight > _NEGLIGIBLE}
        yield now


def rounds_exactly(epidemic: Epidemic, error: float = 1e-6) -> int:
    """Rounds that suffice by the Markov chain.

    >>> rounds_exactly(Epidemic(100, 1)), rounds_exactly(Epidemic(100, 10, "push"))
    (23, 22)
    """
    errors = (
        sum(chance for have, chance in now.items() if have < epidemic.n) for now in distributions(epidemic)
    )
    return _first_below(errors, error) if epidemic.n0 < epidemic.n else 0


def unfinished(epidemic: Epidemic, rounds: int) -> float:
    """How probable it is that after so many rounds somebody lacks the message."""
    for number, now in enumerate(distributions(epidemic), 1):
        if number == rounds:
            return sum(chance for have, chance in now.items() if have < epidemic.n)
    raise AssertionError("distributions go on for ever")


def expected_rounds(epidemic: Epidemic) -> float:
    """The mean number of rounds until everybody has the message: the chain's time to absorption."""
    step = _pulled if epidemic.contact == "pull" else _pushed
    takes = {epidemic.n: 0.0}
    for have in range(epidemic.n - 1, epidemic.n0 - 1, -1):
        chances = step(epidemic, have)
        stays = chances.get(have, 0.0)
        onward = sum(chance * takes[more] for more, chance in chances.items() if more > have)
        takes[have] = (1 + onward) / (1 - stays) if stays < 1 else inf
    return takes[epidemic.n0]


def _pulled(epidemic: Epidemic, have: int) -> Mapping[int, float]:
    """p(i, j): each of those who lack the message asks one member, and gets it from those who have it."""
    rest, asked = epidemic.n - have, min(have * epidemic.hit, 1.0)
    return {
        have + more: chance
        for more in range(rest + 1)
        if (chance := comb(rest, more) * asked**more * (1 - asked) ** (rest - more)) > _NEGLIGIBLE
    }


def _pushed(epidemic: Epidemic, have: int) -> Mapping[int, float]:
    """Each of those who have it tells one member: balls in bins, one ball after the other."""
    rest, hit = epidemic.n - have, epidemic.hit
    told = {0: 1.0}
    for _ in range(have):
        then: dict[int, float] = {}
        for count, weight in told.items():
            fresh = (rest - count) * hit
            then[count] = then.get(count, 0.0) + weight * (1 - fresh)
            if fresh * weight > _NEGLIGIBLE:
                then[count + 1] = then.get(count + 1, 0.0) + weight * fresh
        told = then
    return {have + count: weight for count, weight in told.items()}


# Any choice of targets


def choice(
    round_trips: Sequence[Sequence[float]], bias: Bias, reading: Reading = "inverse"
) -> list[list[float]]:
    """C(i, j): the probability that i contacts j, by their round-trip time.

    What "linear" means is not said: 1/rtt (`inverse`), or the distance from the longest (`difference`), to
    which a fiftieth of the span is added so that nobody is left out. Quadratic is the square of either.
    """
    power = {"uniform": 0, "linear": 1, "quadratic": 2}[bias]
    rows = []
    for me, row in enumerate(round_trips):
        others = [rtt for other, rtt in enumerate(row) if other != me]
        nearest, farthest = min(others), max(others)
        span = farthest - nearest or 1.0
        weights = [
            0.0 if other == me else _nearness(rtt, farthest, span, reading) ** power
            for other, rtt in enumerate(row)
        ]
        total = sum(weights)
        rows.append([weight / total for weight in weights])
    return rows


def _nearness(rtt: float, farthest: float, span: float, reading: Reading) -> float:
    return 1 / rtt if reading == "inverse" else (farthest - rtt) / span + 0.02


def spread(
    chosen: Sequence[Sequence[float]], have: Sequence[float], contact: Contact = "pull", loss: float = 0.0
) -> Iterator[list[float]]:
    """P_i(k) for k = 1, 2, ...: the recurrence of 4.2.2 with C(i, j), from any P_i(0)."""
    now = list(have)
    size = range(len(now))
    gets: Callable[[int], float] = (
        (lambda me: (1 - loss) * sum(chosen[me][other] * now[other] for other in size if other != me))
        if contact == "pull"
        else (lambda me: 1 - _missed_by_all(me, chosen, now, loss))
    )
    while True:
        now = [now[me] + (1 - now[me]) * got for me, got in enumerate([gets(me) for me in size])]
        yield now


def rounds_of_choice(
    chosen: Sequence[Sequence[float]],
    have: Sequence[float],
    contact: Contact = "pull",
    loss: float = 0.0,
    error: float = 1e-6,
) -> int:
    """Rounds that suffice, by the same recurrence: 1 - prod P_i(k) is below the error."""
    errors = (1 - _product(now) for now in spread(chosen, have, contact, loss))
    return _first_below(errors, error)


def _missed_by_all(me: int, chosen: Sequence[Sequence[float]], now: Sequence[float], loss: float) -> float:
    return _product(
        1 - now[other] * chosen[other][me] * (1 - loss) for other in range(len(now)) if other != me
    )


def _product(factors: Iterator[float] | Sequence[float]) -> float:
    result = 1.0
    for factor in factors:
        result *= factor
    return result


# Simulated


def simulated_rounds(epidemic: Epidemic, rng: Random) -> int:
    """One run, member by member."""
    n, have = epidemic.n, set(range(epidemic.n0))
    for rounds in range(MOST_ROUNDS):
        if len(have) == n:
            return rounds
        callers = range(n) if epidemic.contact == "pull" else sorted(have)
        got = set()
        for caller in callers:
            target = _target(caller, n, rng, itself=epidemic.itself)
            if rng.random() < epidemic.loss:
                continue
            if epidemic.contact == "push":
                got.add(target)
            elif target in have:
                got.add(caller)
        have |= got
    return MOST_ROUNDS


def _target(caller: int, n: int, rng: Random, *, itself: bool) -> int:
    if itself:
        return rng.randrange(n)
    target = rng.randrange(n - 1)
    return target + (target >= caller)


def _first_below(errors: Iterator[float], error: float) -> int:
    for rounds, found in enumerate(errors, 1):
        if found < error:
            return rounds
        if rounds == MOST_ROUNDS:
            break
    raise ValueError(f"more than {MOST_ROUNDS} rounds")
