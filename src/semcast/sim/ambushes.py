"""Ambushes: whom they catch."""

from collections.abc import Sequence

from semcast.sim.faults import Ambush


def caught_by(
    ambush: Ambush,
    before: Sequence[tuple[str, ...]],
    phases: Sequence[tuple[str, ...]],
    syncing: Sequence[bool],
) -> list[int]:
    """The members that an ambush strikes at now; none if it has to go on waiting.

    Args:
        ambush: what is waited for.
        before: the phases of each member when it was looked at last.
        phases: those of now; none for a member that crashed.
        syncing: whether the disk of each has a sync under way.
    """
    if ambush.phase == "installed":
        behind = any("evs" in each for each in phases)
        through = ["evs" in old and "operational" in new for old, new in zip(before, phases, strict=True)]
        caught = [number for number, here in enumerate(through) if here and behind]
    else:
        caught = [number for number, each in enumerate(phases) if each and ambush.phase in (*each, "")]
    if ambush.syncing:
        caught = [number for number in caught if syncing[number]]
    return caught if ambush.everybody or len(caught) < len(phases) else []
