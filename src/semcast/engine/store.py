"""The replicated state of one server: what the service has, up to which position, and outcomes for clients.

A store is told of actions in green order, many at a time. It shows what is green to weak reads, and what is
green with known reds behind it to dirty ones.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias

import msgspec

from semcast.engine.contents import ProcedureCall
from semcast.engine.errors import ReplicaError
from semcast.engine.outcomes import KeptOutcome, Outcome, Outcomes
from semcast.engine.service import ActionError, Context, Procedure, Service
from semcast.replication.actions import Asked

Todo: TypeAlias = tuple[bytes, Context, int, ProcedureCall | None, Asked | None]
"""An action that is to be done: a tuple, since there is one for every action at every server.

What the service is given; its context; the token by which the outcome finds who waits for it here, 0 where
nobody does; what is called, where there is more to it than the body; and who asked for it, if it may again.
"""
Done: TypeAlias = tuple[int, Asked | None, Outcome]
"""What came of one of them: its token, who asked, and the outcome."""


class TooSlowError(Exception):
    """Actions take longer than they may here. Nothing of them is done."""


class Store(Protocol):
    """What the engine needs of a replicated state."""

    position: int
    """All actions up to it are done."""
    stamp: int
    """The highest stamp of these."""
    outcomes: Outcomes

    def apply(self, actions: Sequence[Todo], upto: int, seconds: float | None = None) -> list[Done]:
        """Do actions, in order; all up to this position are done then.

        It may take so many seconds, where a store can tell, and raises TooSlowError then. Returns what came
        of each that somebody waits for, or may ask for again.
        """

    def query(self, question: bytes) -> bytes:
        """Answer from what is green."""

    def dirty(self, question: bytes, reds: Sequence[Todo]) -> bytes:
        """Answer from what is green, and from these in their order behind it."""

    def mark(self, position: int) -> None:
        """Remember what is green: it is asked for by this position."""

    def snapshot(self) -> bytes:
        """All of it."""

    def restore(self, state: bytes) -> None:
        """Forget everything, and go on from this, if it is further."""

    def close(self) -> None:
        """It is not used any more."""


Procedures = Mapping[tuple[str, int], Callable[..., bytes]]


def by_name(procedures: Sequence[Procedure]) -> Procedures:
    """Procedures, each by name and version."""
    return {(each.name, each.version): each.run for each in procedures}


class State(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A snapshot."""

    position: int
    stamp: int
    outcomes: KeptOutcome
    service: bytes


_decode_state = msgspec.msgpack.Decoder(State).decode


class ServiceStore:
    """The state that a service has in memory.

    Args:
        service: of the program.
        procedures: what actions may call.
    """

    def __init__(self, service: Service, procedures: Procedures) -> None:
        self.position = 0
        self.stamp = 0
        self.outcomes = Outcomes()
        self._service = service
        self._procedures = procedures
        self._fork: Fork | None = None

    def apply(self, actions: Sequence[Todo], upto: int, seconds: float | None = None) -> list[Done]:  # noqa: ARG002
        """One by one. Whatever a service does, it cannot be undone."""
        self._fork = None
        found: list[Done] = []
        service, apply = self._service, self._service.apply
        for todo in actions:
            body, context, token, call, asked = todo
            error = ""
            try:  # nearly always: worth a way of its own
                result = apply(body, context) if call is None else _run(service, self._procedures, todo, call)
            except ActionError as refused:
                result, error = b"", str(refused) or "refused"
            if type(result) is not bytes:
                raise _no_bytes(result)
            if token or asked is not None:
                outcome = Outcome(context.position, result, error)
                found.append((token, asked, outcome))
                if asked is not None:
                    self.outcomes.add(asked, outcome)
        self.position = upto
        return found

    def query(self, question: bytes) -> bytes:
        """Of the service."""
        return self._service.query(question)

    def dirty(self, question: bytes, reds: Sequence[Todo]) -> bytes:
        """Of a copy, which is kept as long as no green action comes and no red one is in between."""
        if not reds:
            return self.query(question)
        fork = self._fork
        if fork is None or not fork.extends_to(reds):
            fork = self._fork = Fork(_copied(self._service), self._procedures)
        fork.show(reds)
        return fork.service.query(question)

    def mark(self, position: int) -> None:
        """Only its program knows what is equal in a service."""

    def snapshot(self) -> bytes:
        """Everything."""
        state = self._service.snapshot()
        if not isinstance(state, bytes):
            raise ReplicaError(f"snapshot of the service is {type(state).__name__}, and not bytes")
        return msgspec.msgpack.encode(State(self.position, self.stamp, self.outcomes.written(), state))

    def restore(self, state: bytes) -> None:
        """As it was there."""
        found = _decode_state(state)
        if found.position <= self.position:
            return
        self._service.restore(found.service)
        self.position, self.stamp = found.position, found.stamp
        self.outcomes.restore(found.outcomes)
        self._fork = None

    def close(self) -> None:
        """A service in memory needs nothing."""


class Fork:
    """A copy of a service that shows reds."""

    def __init__(self, service: Service, procedures: Procedures) -> None:
        self.service = service
        self._procedures = procedures
        self._shown: list[Todo] = []

    def extends_to(self, reds: Sequence[Todo]) -> bool:
        """Whether what it shows is the beginning of these."""
        return list(reds[: len(self._shown)]) == self._shown

    def show(self, reds: Sequence[Todo]) -> None:
        """Do those that it does not show yet."""
        for todo in reds[len(self._shown) :]:
            body, context, _, call, _ = todo
            with suppress(ActionError):
                if call is None:
                    self.service.apply(body, context)
                else:
                    _run(self.service, self._procedures, todo, call)
            self._shown.append(todo)


def _no_bytes(result: object) -> ReplicaError:
    return ReplicaError(f"apply of the service returned {type(result).__name__}, and not bytes")


def _run(service: Service, procedures: Procedures, todo: Todo, call: ProcedureCall) -> bytes:
    _, context, _, _, _ = todo
    for question, answer in call.expect:
        if service.query(question) != answer:
            raise ActionError(f"expectation failed: the answer to {question[:64]!r} has changed")
    if not call.procedure:
        return service.apply(call.body, context)
    run = procedures.get((call.procedure, call.version))
    if run is None:
        raise ReplicaError(
            f"the action at {context.position} calls {call.procedure!r} version {call.version}, which "
            "this program does not have: update it, and start it again"
        )
    return run(service, call.body, context)


def _copied(service: Service) -> Service:
    fork: Callable[[], Service] | None = getattr(service, "fork", None)
    return copy.deepcopy(service) if fork is None else fork()
