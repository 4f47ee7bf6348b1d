"""The checkers of causal domains against sentences read literally, on random small histories."""

from collections import Counter
from random import Random

import pytest
from tests.specs.domain_histories import shuffled, wander
from tests.specs.domain_literal import JUDGED, Literal

from semcast.specs import Status, check

SEEDS = 150


@pytest.mark.parametrize("part", range(4))
def test_checkers_say_what_the_sentences_say(part: int) -> None:
    seen: Counter[tuple[str, Status]] = Counter()
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        history = wander(seed)
        if seed % 2:
            history = shuffled(history, Random(seed))
        literal = Literal(history)
        for verdict in check(history, JUDGED):
            expected = literal.judge(verdict.property)
            assert (verdict.status, verdict.count) == expected, (seed, str(verdict))
            seen[verdict.property, verdict.status] += 1
    for name in JUDGED:
        assert seen[name, Status.HOLDS] > 5, name
        assert seen[name, Status.VIOLATED] > 5, name
