"""What the simulator must know of a stack."""

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.registry import Registry
from semcast.core.stack import Stack
from semcast.history import History
from semcast.history.schema import FIFO
from semcast.sim.absence import UNTOLD, Absence
from semcast.sim.cluster import QUIET
from semcast.sim.mutants import Mutant
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.stacks import StackFactory
from semcast.wire.limits import MAX_MEMBERS


def _buffer(scenario: Scenario) -> int | None:
    return scenario.buffer


def _nobody(_history: History) -> Collection[MemberId]:
    return ()


def _nothing(_stacks: Sequence[Stack]) -> list[History]:
    return []


def _fifo(_scenario: Scenario) -> str:
    return FIFO


def _whenever(_scenario: Scenario) -> Nanos | None:
    return None


def _plenty(_scenario: Scenario) -> int:
    return 1024


def _ample(_scenario: Scenario) -> int:
    return 64 << 20


def _unknown(_scenario: Scenario) -> int | None:
    return None


def _quiet(_scenario: Scenario) -> Nanos:
    return QUIET


def _no(_about: object) -> bool:
    return False


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A stack, for simulations and swarms."""

    name: str
    stack: Callable[[Scenario, Mutant], StackFactory]
    """How members are made, or what a mutant has instead."""
    draw: Callable[[int, Fixed | None], Scenario]
    """A scenario with trouble in it. The same seed gives the same one for ever."""
    mutants: Mapping[str, Mutant] = {}
    """Broken ones that its swarm must catch."""
    limit: Callable[[Scenario], int | None] = _buffer
    """How many messages a member keeps at most; None where nothing is promised."""
    order: Callable[[Scenario], str] = _fifo
    """The order that is asked for, where there are several."""
    queue: Callable[[Scenario], int] = _plenty
    """How many messages may wait for a program, as its stack is set."""
    queue_bytes: Callable[[Scenario], int] = _ample
    """And how many bytes of them."""
    tighten: Callable[[Scenario, Random], Scenario] | None = None
    """The same scenario with queues as small as they may be; None where programs are not drawn."""
    backlog: Callable[[Scenario], int | None] = _unknown
    """How many messages ever wait for a program in its stack, at most; None where nothing is promised."""
    narrow: Callable[[Scenario, int], Scenario] | None = None
    """The same scenario with so few bytes in queues, and many messages."""
    backlog_bytes: Callable[[Scenario], int | None] = _unknown
    """How many bytes ever wait for a program in its stack, at most; None where nothing is promised."""
    announces: bool = False
    """Whether the stack says itself when messages leave; else they leave where it takes them."""
    transfers: Callable[[Scenario], bool] = _no
    """Whether who joins is given the state of the application."""
    goes_on: bool = False
    """Whether an application keeps its state where its member comes back as another incarnation."""
    disk: Callable[[Scenario], bool] = _no
    """Whether hosts have a disk, which members are told of."""
    finds_members: bool = False
    """Whether members find each other: then a healed group ends in one view of all who are there."""
    expels_misfits: bool = False
    """Whether who has set something otherwise leaves, however it met the others. On a ring, who works alone
    stays, and its log says why nobody comes."""
    heals_within: Callable[[Scenario], Nanos | None] = _whenever
    """How long after the last trouble all are in one view, at most; None where nothing is promised."""
    largest: int | None = MAX_MEMBERS
    """Members of a group, at most; None for any number."""
    quiet: Callable[[Scenario], Nanos] = _quiet
    """How long nothing happens to messages in a healed group before all is done that will be: longer than
    anything that its members repeat. What never rests, gossip and reports, does not count."""
    absence: Absence = UNTOLD
    """What a program says to its stack that knows when its machine is away (`Disconnect`, `Reconnect`)."""
    excused: Callable[[History], bool] = _no
    """Whether a run went so badly that the healed group may rightly wait for ever."""
    beside: Callable[[Sequence[Stack]], list[History]] = _nothing
    """What else happened in a run: histories that are judged beside that of the members, who are alive."""
    outsiders: Callable[[History], Collection[MemberId]] = _nobody
    """Processes that nobody has let in, or in again: they may wait for ever."""


FAMILIES: Registry[Family] = Registry("stack")
