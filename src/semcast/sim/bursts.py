"""How the inputs of a host and the messages of its application are grouped.

A live loop takes in all that has arrived since it looked last, and live programs hand over runs of messages
and find a mailbox. So do simulated hosts that are given `Bursts`; the others take one input at a time, and
their applications are given a message when they ask for one, as the papers' experiments assume.
"""

from random import Random

import msgspec

from semcast.core.ids import MICROSECOND, Nanos


class Bursts(msgspec.Struct, frozen=True):
    """How much comes together."""

    gather: Nanos = 0
    """What arrives within so long of the first input is handled in one turn."""
    most: int = 64
    """Inputs of one turn."""
    run: int = 1
    """Messages that the application hands over in one call."""
    send_messages: int = 64
    """Messages that wait to be sent before the application has to wait."""
    single: bool = False
    """Whether the application reads and sends in one task: while it waits to send, it reads nothing."""
    confirms: int = 0
    """Of so many calls that send, one asks what became of its messages; 0 for none."""
    waits: bool = False
    """Whether whoever asks does nothing else until it has the answer, as `send(..., confirm=)` does."""


WAITING = range(200, 5000)
"""Seeds that draw programs which wait. Seeds before and after these are known by what they once found."""


def with_waiting(rng: Random, seed: int, bursts: Bursts) -> Bursts:
    """Sometimes programs wait for what they asked, in the task that reads or in another."""
    if seed not in WAITING or rng.random() < 0.7:
        return bursts
    confirms, single = rng.choice((1, 1, 3)), rng.random() < 0.5
    return msgspec.structs.replace(bursts, confirms=confirms, single=single, waits=True)


def draw_bursts(rng: Random) -> Bursts:
    """Those of one run."""
    return Bursts(
        gather=rng.choice((0, 20, 200, 1000)) * MICROSECOND,
        most=rng.choice((2, 8, 64)),
        run=rng.choice((1, 3, 10)),
        send_messages=rng.choice((1, 10, 100)),
        single=rng.random() < 0.3,
        confirms=rng.choice((0, 1, 5)),
    )
