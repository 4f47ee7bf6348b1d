"""From delivered batches to the store, and from there to those who wait: a list at a time."""

import asyncio
import time
from collections.abc import Callable, Sequence
from zlib import crc32

from semcast.core.events import Delivery
from semcast.core.ids import MemberId
from semcast.core.messages import Batch
from semcast.engine.contents import (
    CALL,
    MARK,
    PLAIN_BYTES,
    READ,
    UPDATE,
    Content,
    read,
    read_call,
    unpack_plain,
)
from semcast.engine.errors import ForgottenError, ReplicaError
from semcast.engine.levels import UPDATES
from semcast.engine.outcomes import Outcome
from semcast.engine.pacing import Apart, Pace
from semcast.engine.service import Context
from semcast.engine.store import Store, Todo
from semcast.engine.waiting import Waiters
from semcast.replication.actions import PLAIN, Asked, Run

assert PLAIN == UPDATE == 0, "what is neither of another kind nor of another content is a plain update"


class Applier:
    """Applies what is green at one server.

    Args:
        store: what it is applied to.
        waiters: who is told.
        mine: whether a creator is this process.
    """

    def __init__(self, store: Store, waiters: Waiters, mine: Callable[[MemberId], bool]) -> None:
        self.lock = asyncio.Lock()
        """Held while actions are done, and by who shows what is red: nothing turns green meanwhile."""
        self._store = store
        self._waiters = waiters
        self._mine = mine
        self._pace = Pace()
        self._apart = Apart()
        self._todos: list[Todo] = []
        self._taken = 0  # the last position that was handed over
        self._cut: dict[MemberId, int] = {}  # the last applied action of each creator

    async def apply(self, deliveries: Sequence[Delivery]) -> None:
        """All batches of a list, at once; others may run between slices of it."""
        async with self.lock:
            upto = self._store.position
            for each in deliveries:
                if type(each) is Batch:
                    upto = max(upto, await self._take(each))
            await self._do(upto)
        self._waiters.look()

    async def _take(self, batch: Batch) -> int:
        """The actions of a batch that are not done yet; returns the position of the last."""
        assert batch.order is not None, "green actions have positions"
        sender, position, store = batch.sender, batch.order - 1, self._store
        if position > max(store.position, self._taken):
            raise ReplicaError(
                f"the state of this server is that of position {store.position}, and its log begins at "
                f"{position + 1}: a file is gone, or was replaced by an older one. Put it back; or remove "
                "this server, and let it in anew with an empty folder"
            )
        self._taken = position + len(batch.payloads)
        mine, seed = self._mine(sender), _seeds(sender) + batch.first - batch.order
        done, stamp, todos = store.position, store.stamp, self._todos
        for action in batch.payloads:
            position += 1
            if position <= done:
                continue
            if len(action) >= PLAIN_BYTES:
                kind, what, level, made, token = unpack_plain(action)
                if not (kind or what):  # a plain update, as nearly all are: worth a way of its own
                    if made > stamp:
                        stamp = store.stamp = made
                    context = Context(position, stamp, seed + position, UPDATES[level & 3])
                    todos.append((action[PLAIN_BYTES:], context, token if mine else 0, None, None))
                    continue
            content = read(action)
            if content is None:
                continue
            if content.kind in (READ, MARK):
                if content.kind == MARK:
                    await self._mark(content, position, mine=mine)
                elif mine:
                    await self._answer(content, position)
                done, todos = store.position, self._todos
                continue
            stamp = store.stamp = max(stamp, content.stamp)
            todos.append(_todo(content, position, stamp, seed + position, content.token if mine else 0))
        self._cut[sender] = batch.first + len(batch.payloads) - 1
        return position

    async def _answer(self, content: Content, position: int) -> None:
        """A question at its place in the order."""
        waiter = self._waiters.by_token.pop(content.token, None)
        if waiter is not None:
            await self._do(position - 1)
            try:
                answer = self._store.query(content.body)
            except Exception as error:  # of the question, not of the state
                waiter.fail(error)
            else:
                waiter.done(content.token, Outcome(position, answer))

    async def _mark(self, content: Content, position: int, *, mine: bool) -> None:
        """All that is before it is done, and nothing behind it."""
        await self._do(position - 1)
        self._store.mark(position)
        waiter = self._waiters.by_token.pop(content.token, None) if mine else None
        if waiter is not None:
            waiter.done(content.token, Outcome(position))

    async def _do(self, upto: int) -> None:
        """Have the store do what was gathered, a slice at a time, and tell who waits."""
        if upto <= self._store.position:
            return
        todos, self._todos = self._todos, []
        at, end, pace = 0, len(todos), self._pace
        while end - at > pace.most:
            some = todos[at : at + pace.most]
            await self._slice(some, some[-1][1].position)
            at += len(some)
            await asyncio.sleep(0)
        await self._slice(todos[at:] if at else todos, upto)

    async def _slice(self, todos: list[Todo], upto: int) -> None:
        began = time.monotonic()
        done = await self._apart.run(self._store, todos, upto)
        self._pace.took(len(todos), time.monotonic() - began)
        by_token, request_done = self._waiters.by_token, self._waiters.request_done
        for token, asked, outcome in done:
            waiter = by_token.pop(token, None)
            if waiter is not None:
                waiter.done(token, outcome)
            if asked is not None:
                request_done(asked, outcome)

    async def close(self) -> None:
        """Nothing is applied any more."""
        await self._apart.close()

    def restored(self, overtaken: Sequence[Run]) -> None:
        """The store goes on from the state of another, with own runs in it: who waits for these is told."""
        waiters, outcomes = self._waiters, self._store.outcomes
        self._taken = self._store.position
        for run in overtaken:
            for action in run.actions:
                content = read(action)
                waiter = None if content is None else waiters.by_token.pop(content.token, None)
                if waiter is not None:
                    waiter.fail(ForgottenError("it was done, and what came of it is part of a snapshot"))
        for client, number in waiters.requests():
            outcome = outcomes.find(client, number)
            if outcome is not None:
                waiters.request_done(Asked(client, number, 0, b""), outcome)
        waiters.look()

    def reds(self, runs: Sequence[Run]) -> list[Todo]:
        """Of reds that were known a moment ago, what is not applied by now."""
        found: list[Todo] = []
        stamp, outcomes = self._store.stamp, self._store.outcomes
        for run in runs:
            member = run.creator.member
            seed, applied = _seeds(member), self._cut.get(member, 0)
            for index, action in enumerate(run.actions, run.first):
                content = read(action) if index > applied else None
                if content is None or content.kind in (READ, MARK):
                    continue
                asked = content.asked
                if asked is not None and (
                    outcomes.find(asked.client, asked.number) or asked.number < outcomes.floor(asked.client)
                ):
                    continue
                stamp = max(stamp, content.stamp)
                found.append(_todo(content, 0, stamp, seed + index, 0))
        return found


def _todo(content: Content, position: int, stamp: int, seed: int, token: int) -> Todo:
    asked = content.asked
    client, number = ("", 0) if asked is None else (asked.client, asked.number)
    context = Context(position, stamp, seed, content.level, client, number)
    if content.kind == CALL:
        call = read_call(content.body)
        return call.body, context, token, call, asked
    return content.body, context, token, None, asked


def _seeds(sender: MemberId) -> int:
    """Where the seeds of a creator begin: no two actions have the same."""
    return crc32(f"{sender.name}#{sender.incarnation}".encode()) << 64
