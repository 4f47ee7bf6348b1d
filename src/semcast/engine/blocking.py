"""Replicated services for programs without asyncio: the same calls, which block.

A thread of its own runs the event loop; the service is called there, and nowhere else.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from semcast.engine.levels import ReadLevel, UpdateLevel
from semcast.engine.loopthread import InThread, LoopThread
from semcast.engine.outcomes import Outcome
from semcast.engine.replica import Replica
from semcast.engine.replica import replicate as replicate_async
from semcast.engine.reports import Answer, Receipt, Status
from semcast.engine.requesting import Seen
from semcast.engine.service import Expectation, Procedure, Service
from semcast.engine.session import Session


class BlockingReceipt:
    """As `Receipt`."""

    def __init__(self, loop: LoopThread, receipt: Receipt) -> None:
        self._loop, self._receipt = loop, receipt

    def ordered(self) -> Outcome:
        """Wait until it is ordered and executed here."""
        return self._loop.call(self._receipt.ordered())


class BlockingSession:
    """As `Session`. Made by `BlockingReplica.session`."""

    def __init__(self, loop: LoopThread, session: Session) -> None:
        self._loop, self._session = loop, session

    @property
    def client(self) -> str:
        """Its id."""
        return self._session.client

    @property
    def token(self) -> str:
        """What to take to another server."""
        return self._session.token

    def update(
        self,
        action: bytes,
        *,
        level: UpdateLevel = "strict",
        number: int = 0,
        expect: Iterable[Expectation] = (),
        timeout: float | None = None,
    ) -> Outcome | BlockingReceipt:
        """As `Session.update`."""
        done: Outcome | Receipt = self._loop.call(
            self._session.update(action, level=level, number=number, expect=expect, timeout=timeout)
        )
        return BlockingReceipt(self._loop, done) if isinstance(done, Receipt) else done

    def query(self, question: bytes, *, level: ReadLevel = "session", timeout: float | None = None) -> Answer:
        """As `Session.query`."""
        return self._loop.call(self._session.query(question, level=level, timeout=timeout))


class BlockingReplica(InThread[Replica]):
    """As `Replica`. Made by `replicate`; its methods may be called by any thread."""

    def __init__(
        self, name: str, service: Service, procedures: Sequence[Procedure], given: Mapping[str, Any]
    ) -> None:
        super().__init__(name, "replicate")
        self._service, self._procedures, self._given = service, procedures, given

    async def _open(self) -> Replica:
        return await replicate_async(self._name, self._service, procedures=self._procedures, **self._given)

    def update(
        self,
        action: bytes,
        *,
        level: UpdateLevel = "strict",
        client: str = "",
        number: int = 0,
        floor: int = 0,
        seen: Seen = "",
        expect: Iterable[Expectation] = (),
        timeout: float | None = None,
    ) -> Outcome | BlockingReceipt:
        """As `Replica.update`."""
        loop, replica = self._opened()
        done: Outcome | Receipt = loop.call(
            replica.update(
                action,
                level=level,
                client=client,
                number=number,
                floor=floor,
                seen=seen,
                expect=expect,
                timeout=timeout,
            )
        )
        return BlockingReceipt(loop, done) if isinstance(done, Receipt) else done

    def call(
        self,
        procedure: str,
        body: bytes = b"",
        *,
        version: int | None = None,
        level: UpdateLevel = "strict",
        timeout: float | None = None,
    ) -> Outcome | BlockingReceipt:
        """As `Replica.call`."""
        loop, replica = self._opened()
        done = loop.call(replica.call(procedure, body, version=version, level=level, timeout=timeout))
        return BlockingReceipt(loop, done) if isinstance(done, Receipt) else done

    def update_many(self, actions: Sequence[bytes], *, timeout: float | None = None) -> list[Outcome]:
        """As `Replica.update_many`."""
        loop, replica = self._opened()
        return loop.call(replica.update_many(actions, timeout=timeout))

    def query(
        self,
        question: bytes,
        *,
        level: ReadLevel = "session",
        position: int = 0,
        timeout: float | None = None,
    ) -> Answer:
        """As `Replica.query`."""
        loop, replica = self._opened()
        return loop.call(replica.query(question, level=level, position=position, timeout=timeout))

    def session(self, client: str = "", token: str = "") -> BlockingSession:
        """As `Replica.session`."""
        loop, replica = self._opened()
        return BlockingSession(loop, replica.session(client, token))

    def status(self) -> Status:
        """As `Replica.status`."""
        return self._opened()[1].status()


def replicate(
    group: str,
    service: Service,
    *,
    procedures: Sequence[Procedure] = (),
    config: Path | None = None,
    **settings: Any,
) -> BlockingReplica:
    """As `semcast.replicate`: `with blocking.replicate("counter", Counter(), ...) as replica: ...`."""
    return BlockingReplica(group, service, procedures, {"config": config, **settings})
