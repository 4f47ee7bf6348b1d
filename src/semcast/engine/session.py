"""A client of a replicated service: it sees its own writes, and what it asks twice is done once."""

from collections.abc import Iterable
from secrets import token_hex
from typing import TYPE_CHECKING, Literal, Unpack, overload

import msgspec

from semcast.engine.errors import RequestError
from semcast.engine.levels import DIRTY, SESSION, EarlyLevel, ReadLevel, UpdateLevel
from semcast.engine.outcomes import Outcome
from semcast.engine.requesting import AskingAgain, Seen
from semcast.engine.service import ActionError, Expectation

if TYPE_CHECKING:
    from semcast.engine.replica import Replica
    from semcast.engine.reports import Answer, Receipt


class Taken(msgspec.Struct, frozen=True, array_like=True):
    """What a session takes to another server."""

    client: str
    next: int
    open: list[int]
    """Requests whose outcome it has not seen."""
    position: int
    seen: Seen


_decode = msgspec.json.Decoder(Taken).decode


class Session:
    """Made by `Replica.session`. One task uses it at a time.

    Args:
        replica: the server that it talks to.
        client: its id; made up where it is empty.
        token: of the same session elsewhere.
    """

    def __init__(self, replica: "Replica", client: str = "", token: str = "") -> None:
        self._replica = replica
        self.client = client or token_hex(8)
        self._next = 1
        self._open: dict[int, Receipt | None] = {}
        self._position = 0
        self._seen: Seen = ""
        if token:
            self._take_over(token, client)

    def _take_over(self, token: str, client: str) -> None:
        try:
            taken = _decode(token)
        except msgspec.MsgspecError as error:
            raise RequestError(f"token: this is not the token of a session: {error}") from None
        if client and client != taken.client:
            raise RequestError(f"token: this is the session of {taken.client}, and client is {client}")
        self.client, self._next = taken.client, taken.next
        self._open = dict.fromkeys(taken.open)
        self._position, self._seen = taken.position, taken.seen

    @property
    def token(self) -> str:
        """What to take to another server, to go on there."""
        taken = Taken(self.client, self._next, list(self._open), self._position, self._seen)
        return msgspec.json.encode(taken).decode()

    @property
    def number(self) -> int:
        """That of the next request."""
        return self._next

    @overload
    async def update(
        self,
        action: bytes,
        *,
        level: Literal["strict"] = ...,
        **asked: Unpack[AskingAgain],
    ) -> Outcome: ...

    @overload
    async def update(
        self,
        action: bytes,
        *,
        level: EarlyLevel,
        **asked: Unpack[AskingAgain],
    ) -> "Receipt": ...

    @overload
    async def update(
        self,
        action: bytes,
        *,
        level: UpdateLevel,
        **asked: Unpack[AskingAgain],
    ) -> "Outcome | Receipt": ...

    async def update(
        self,
        action: bytes,
        *,
        level: UpdateLevel = "strict",
        number: int = 0,
        expect: Iterable[Expectation] = (),
        timeout: float | None = None,
    ) -> "Outcome | Receipt":
        """As `Replica.update`; with `number` the same request once more, after its answer was lost."""
        if number >= self._next:
            raise RequestError(
                f"number {number}: this session has not asked it; its next one is {self._next}"
            )
        chosen = number or self._next
        self._next = max(self._next, chosen + 1)
        self._open.setdefault(chosen, None)
        floor = min(self._open)
        try:
            done = await self._replica.update(
                action,
                level=level,
                client=self.client,
                number=chosen,
                floor=min(floor, chosen),
                seen=self._seen,
                expect=expect,
                timeout=timeout,
            )
        except ActionError:
            self._open.pop(chosen, None)  # an outcome like any other
            raise
        if isinstance(done, Outcome):
            self._saw(chosen, done)
        else:
            self._open[chosen] = done
        return done

    async def query(
        self, question: bytes, *, level: ReadLevel = "session", timeout: float | None = None
    ) -> "Answer":
        """As `Replica.query`; a session shows all that it wrote."""
        position = await self.settled(level)
        answer = await self._replica.query(
            question, level=level, position=position, client=self.client, timeout=timeout
        )
        self.showed(level, answer.position, answer.seen)
        return answer

    async def settled(self, level: ReadLevel) -> int:
        """The position that a read has to show, once that is known."""
        if level == SESSION:
            await self._settle()
        return self._position

    def showed(self, level: ReadLevel, position: int, seen: str) -> None:
        """What a read of this session showed."""
        self._position = max(self._position, position)
        if level == DIRTY:
            self._seen = seen

    async def _settle(self) -> None:
        """Wait for the outcomes of what was answered early."""
        for number, receipt in list(self._open.items()):
            if receipt is not None:
                try:
                    self._saw(number, await receipt.ordered())
                except ActionError:
                    self._open.pop(number, None)

    def _saw(self, number: int, outcome: Outcome) -> None:
        self._open.pop(number, None)
        self._position = max(self._position, outcome.position)
