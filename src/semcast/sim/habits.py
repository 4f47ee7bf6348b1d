"""What the program of a simulated member does with its group: reads, answers, stops, never reads.

A program reads in one task, which also sends its answers, and waits in `send` in the middle of what it reads.
What it sends by itself comes from the same task (`Bursts.single`) or from another.
"""

from random import Random

import msgspec

from semcast.core.ids import MILLISECOND, Nanos


class Habit(msgspec.Struct, frozen=True):
    """The ways of one program."""

    iterates: bool = True
    """Whether it ever asks for what is delivered."""
    receives: bool = True
    """Whether it joined to be given anything."""
    answers: int = 0
    """Messages with which it answers each one of others that is no answer itself."""
    stops_after: int | None = None
    """It stops reading after so many messages, until the run is over and everybody reads."""
    pause: Nanos = 0
    """It reads all there is, then nothing for so long."""


READER = Habit()
_SMALL = 9
"""Members of a group in which some answer everything."""
ANSWER = b"answer"
"""How the payloads of answers end."""


def draw_habits(rng: Random, size: int) -> dict[int, Habit]:
    """Those of a group; members that are not in it just read. Few answer: all have to read the answers."""
    drawn = {number: habit for number in range(size) if (habit := _draw(rng)) is not READER}
    answering = [number for number, habit in drawn.items() if habit.answers]
    most = 3 if size <= _SMALL else 0
    return {number: habit for number, habit in drawn.items() if number not in answering[most:]}


def _draw(rng: Random) -> Habit:
    kind = rng.choice(("reads", "reads", "answers", "answers", "never", "deaf", "stops", "bursts"))
    match kind:
        case "answers":
            return Habit(answers=rng.choice((1, 1, 2, 3)))
        case "never":
            return Habit(iterates=False)
        case "deaf":
            return Habit(iterates=False, receives=False)
        case "stops":
            return Habit(stops_after=rng.choice((0, 1, 20)))
        case "bursts":
            return Habit(pause=rng.choice((20, 300)) * MILLISECOND)
    return READER
