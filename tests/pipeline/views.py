"""Histories of groups with primary views, sound and broken, that the tests of `verify` share."""

from random import Random

import msgspec
from tests.pipeline.histories import (
    drop_delivery,
    lose_half,
    named,
    renumbered,
    repeat_delivery,
    swap_deliveries,
)
from tests.pipeline.rings import growing
from tests.specs.vsync_histories import random_history, sound_history, torn

from semcast.history import History
from semcast.sim.mutants import MUTANTS
from semcast.sim.simulate import simulate
from semcast.sim.vsync_scenario import draw_vsync

CAUSAL = (22, 54, 7)
"""Seeds of causal groups, which record vector times."""

CAUGHT = {"vector-too-small": 7, "stamp-lost-with-purged": 12}
"""Mutants of causal groups, with seeds."""


def views(seeds: range) -> list[History]:
    """Drawn, damaged, with recordings that are cut off; some are recorded with positions, some without."""
    drawn = [named(random_history(seed), f"views-{seed}") for seed in seeds]
    cut = [named(torn(sound_history(seed), Random(seed)), f"torn-{seed}") for seed in seeds[::8]]
    return [history for history in (*drawn, *cut) if len(history.events) > 4 and growing(history)]


def simulated(seeds: range) -> list[History]:
    """Of the protocol, and of a mutant."""
    sound = [named(simulate(draw_vsync(seed)).history, f"vsync-{seed}") for seed in (*seeds, *CAUSAL)]
    name, mutant = next(iter(MUTANTS["vsync"].items()))
    return [
        *sound,
        named(simulate(draw_vsync(seeds[0]), mutant).history, f"vsync-{name}"),
        *(
            named(simulate(draw_vsync(seed), MUTANTS["vsync"][name]).history, name)
            for name, seed in CAUGHT.items()
        ),
        *planted(sound[-1]),
    ]


def planted(history: History) -> list[History]:
    """With causal order broken, or something missing."""
    found = []
    for edit in (swap_deliveries, drop_delivery, repeat_delivery, lose_half):
        events = list(history.events)
        edit(events, Random(3))
        found.append(renumbered(msgspec.structs.replace(history.info, run=f"causal-{edit.__name__}"), events))
    return found
