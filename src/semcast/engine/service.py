"""What a replicated service is: an object that does actions in order, and answers questions."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol, runtime_checkable

import msgspec


class ActionError(Exception):
    """Raised by a service when it rejects an action. Nothing is changed, at any server.

    The client that requested the action gets the same error.
    """

    position = 0
    """The place of the action that failed, for who asked."""


class Context(msgspec.Struct, frozen=True, gc=False):
    """What an action may use besides its own arguments: the same at every server."""

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
        """Random numbers for this action, the same at every server."""
        return Random(self.seed)


@runtime_checkable
class Service(Protocol):
    """The service to replicate. Its methods are called in the thread of the event loop, one at a time.

    `apply` must be deterministic: no clock, randomness or files except through the context.
    """

    def apply(self, action: bytes, context: Context, /) -> bytes:
        """Execute the next action; returns the reply to its client. Raise ActionError to reject it.

        Any other exception stops this server.
        """

    def query(self, question: bytes, /) -> bytes:
        """Answer a query, without changing the state."""

    def snapshot(self) -> bytes:
        """The whole state."""

    def restore(self, state: bytes, /) -> None:
        """Replace the state by this one."""


class Forks(Protocol):
    """A service that knows how to copy itself; else it is copied by `copy.deepcopy`."""

    def fork(self) -> Service:
        """A copy for dirty reads: what is done to it shows nowhere else."""


class Procedure(msgspec.Struct, frozen=True):
    """A named action that every server executes (Amir 1995, 7.1, active replication).

    `run` gets the service, the arguments and the context. A server without the version that an action asks
    for stops until its program is updated.
    """

    name: str
    version: int
    run: Callable[[Any, bytes, Context], bytes]


Expectation = tuple[bytes, bytes]
"""A question and its answer: if that is not the answer any more, nothing is done (interactive actions)."""
Expectations = Sequence[Expectation]
