"""How a program changes a replicated service: one action, many at once, or a procedure by name."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Unpack, overload

from semcast.engine import contents
from semcast.engine.errors import RequestError
from semcast.engine.levels import STRICT, EarlyLevel, UpdateLevel, check_update
from semcast.engine.outcomes import Outcome
from semcast.engine.reports import Receipt, raised
from semcast.engine.requesting import (
    Asking,
    Seen,
    check_bytes,
    check_client,
    cut_of,
    expectations,
    milliseconds,
)
from semcast.engine.requests import Requests
from semcast.engine.service import Expectation
from semcast.engine.store import Store
from semcast.engine.waiting import Waiter, Waiters, forgotten, within
from semcast.replication.actions import Asked, asked, plain
from semcast.replication.creation import QUEUED, Wish


class UpdatingSide(ABC):
    """The part of a `Replica` that takes updates: a base class, so that no action costs another call."""

    _largest: int
    _procedures: Mapping[str, int]
    _requests: Requests
    _store: Store
    _waiters: Waiters

    @abstractmethod
    def _check_takes(self) -> None:
        """Raise unless this server makes actions."""

    @overload
    async def update(
        self,
        action: bytes,
        *,
        level: Literal["strict"] = ...,
        **asked: Unpack[Asking],
    ) -> Outcome: ...

    @overload
    async def update(
        self,
        action: bytes,
        *,
        level: EarlyLevel,
        **asked: Unpack[Asking],
    ) -> Receipt: ...

    @overload
    async def update(
        self,
        action: bytes,
        *,
        level: UpdateLevel,
        **asked: Unpack[Asking],
    ) -> Outcome | Receipt: ...

    async def update(
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
    ) -> Outcome | Receipt:
        """Execute an action at every server, once.

        Args:
            action: passed to the service.
            level: `strict`: answered when ordered and executed here; waits for a primary. `queued`: once
                it is on the disk here, in a minority, too. `timestamped` and `commutative`: the same, for
                actions whose order does not matter.
            client: id of the client, for requests that may be repeated: a number is executed once.
            number: number of the request, from 1 on.
            floor: the client has the outcomes of all its requests with lower numbers.
            seen: of a dirty read that this request depends on.
            expect: queries and their answers; if one has another answer, the action is rejected.
            timeout: seconds to wait; then TimeoutError. The action may still be executed.

        Raises `ActionError` if the service rejects it, `RefusedError` if this server cannot accept it.
        """
        check_bytes("action", action, self._largest)
        wanted = expectations(expect) if expect else ()
        if level == STRICT and client == "" and number == floor == 0 and seen == "" and not wanted:
            return raised((await within(timeout, self._order([action]), "the outcome"))[0])
        kind = contents.CALL if wanted else contents.UPDATE
        body = contents.call(action, "", 0, wanted) if wanted else action
        return await self._request(kind, body, level, client, number, floor, seen, timeout)

    async def call(
        self,
        procedure: str,
        body: bytes = b"",
        *,
        version: int | None = None,
        level: UpdateLevel = "strict",
        client: str = "",
        number: int = 0,
        floor: int = 0,
        seen: Seen = "",
        expect: Iterable[Expectation] = (),
        timeout: float | None = None,
    ) -> Outcome | Receipt:
        """Run a named procedure at every server; by default its newest version here."""
        newest = self._procedures.get(procedure)
        if newest is None:
            known = ", ".join(sorted(self._procedures)) or "none"
            raise RequestError(f"procedure {procedure!r}: choose from {known}")
        check_bytes("body", body, self._largest)
        chosen = newest if version is None else version
        content = contents.call(body, procedure, chosen, expectations(expect))
        return await self._request(contents.CALL, content, level, client, number, floor, seen, timeout)

    async def update_many(self, actions: Sequence[bytes], *, timeout: float | None = None) -> list[Outcome]:
        """Execute several strict actions in this order, perhaps with others in between; their outcomes.

        What the service refuses has its reason in `Outcome.error`. It costs much less than one by one.
        """
        for each in actions:
            check_bytes("action", each, self._largest)
        if not actions:
            return []
        return await within(timeout, self._order(actions), "the outcomes")

    def _order(self, actions: Sequence[bytes]) -> "asyncio.Future[list[Outcome]]":
        """Strict actions that nobody may ask for again: what is asked for most, so it has to be quick."""
        self._check_takes()
        first, waiter = self._waiters.open(len(actions))
        self._waiters.await_actions(first, len(actions), waiter)
        self._requests.add(list(map(Wish, contents.plain_updates(milliseconds(), first, actions))))
        return waiter.future

    async def _request(
        self,
        kind: int,
        body: bytes,
        level: str,
        client: str,
        number: int,
        floor: int,
        seen: Seen,
        timeout: float | None,
    ) -> Outcome | Receipt:
        check_update(level)
        check_client(client, number, floor)
        cut = cut_of(seen)
        self._check_takes()
        token, waiter = self._waiters.open()
        if client and (known := self._known(client, number, waiter)) is not None:
            return known if level != STRICT else await known.ordered()
        content = contents.written(kind, level, milliseconds(), token, body)
        action = asked(Asked(client, number, floor, content)) if client else plain(content)
        if client:
            self._waiters.await_request(client, number, waiter)
        else:
            self._waiters.await_actions(token, 1, waiter)
        if level == STRICT:
            self._requests.add([Wish(action, STRICT, token if cut else None, cut)])
            if cut:
                self._waiters.await_actions(token, 1, waiter)
            return raised((await within(timeout, waiter.future, "the outcome"))[0])
        durable = self._waiters.ticket(token)
        self._requests.add([Wish(action, QUEUED, token, cut)])
        await within(timeout, durable, "the disk of this server")
        return Receipt(waiter)

    def _known(self, client: str, number: int, waiter: Waiter) -> Receipt | None:
        """Of a request that was done before, the outcome."""
        outcome = self._store.outcomes.find(client, number)
        if outcome is not None:
            waiter.future.set_result([outcome])
            return Receipt(waiter)
        if number < self._store.outcomes.floor(client):
            raise forgotten(client, number)
        return None
