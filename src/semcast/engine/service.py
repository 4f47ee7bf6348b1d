"""What a replicated service is: an object that does actions in order, and answers questions."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol, runtime_checkable

import msgspec


class ActionError(Exception):
    """A service raises it where an action cannot be done: nothing changed, here and everywhere.

    Whoever asked for the action is given the same error.
    """

    position = 0
    """The place of the action that failed, for who asked."""


class Context(msgspec.Struct, frozen=True, gc=False):
    """What an action may know besides itself: the same at every server."""

    position: int
    """Its place in the order of all; 0 where it has none yet, on a fork for dirty reads."""
    stamp: int
    """Milliseconds since 1970 when it was asked for; never less than that of the action before it."""
    seed: int
    """For chance that is the same everywhere."""
    level: str = "strict"
    client: str = ""
    number: int = 0
    """Who asked, under which number, where that was said."""

    def rng(self) -> Random:
        """Chance for this action."""
        return Random(self.seed)


@runtime_checkable
class Service(Protocol):
    """What is replicated. All methods are called in the thread of the program's event loop, one at a time.

    `apply` must be deterministic: no clock, no chance, no file but what the context gives.
    """

    def apply(self, action: bytes, context: Context, /) -> bytes:
        """Do the next action; returns what its client is told. ActionError where it cannot be done.

        Any other exception stops this server.
        """

    def query(self, question: bytes, /) -> bytes:
        """Answer a question; changes nothing."""

    def snapshot(self) -> bytes:
        """All of the state."""

    def restore(self, state: bytes, /) -> None:
        """Forget the state, and go on from this one."""


class Forks(Protocol):
    """A service that knows how to copy itself; else it is copied by `copy.deepcopy`."""

    def fork(self) -> Service:
        """A copy for dirty reads: what is done to it shows nowhere else."""


class Procedure(msgspec.Struct, frozen=True):
    """An action by name: every server runs the same version of it (Amir 1995, 7.1, active replication).

    `run` is given the service, what the caller gave, and the context. A server that has not the version that
    an action asks for stops until its program is updated.
    """

    name: str
    version: int
    run: Callable[[Any, bytes, Context], bytes]


Expectation = tuple[bytes, bytes]
"""A question and its answer: if that is not the answer any more, nothing is done (interactive actions)."""
Expectations = Sequence[Expectation]
