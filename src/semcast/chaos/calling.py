"""Calls of the programs of chaos: all kinds of them, and all kinds of answers."""

import asyncio
import random
from typing import Protocol

import semcast
from semcast.chaos.insisting import Insisting
from semcast.chaos.orders import say
from semcast.group.calls import To
from semcast.patterns.calls import CallAnswer, Wanted


class Answering(Protocol):
    """A group, of whatever kind."""

    async def call(
        self, payload: bytes, *, replies: Wanted = "all", to: To = "all", timeout: float | None = 10.0
    ) -> CallAnswer:
        """Ask its members."""


class Calling:
    """How one program calls and answers.

    Args:
        rng: what it does.
        insisting: counts what was refused, or is not known.
    """

    def __init__(self, rng: random.Random, insisting: Insisting) -> None:
        self._rng = rng
        self._insisting = insisting

    async def answer(self, request: semcast.CallRequest) -> bytes:
        """At once, after a while, with an error, or not at all: then the caller waits in vain."""
        habit = self._rng.random()
        if habit < 0.3:
            await asyncio.sleep(self._rng.uniform(0.0, 0.3))
        elif habit < 0.4:
            raise ValueError("not today")
        elif habit < 0.45:
            await asyncio.sleep(3600)
        return request.payload

    async def call(self, group: Answering) -> None:
        """Ask one member, or all. Nothing is tried again: what came of a call may be unknown."""
        rng = self._rng
        one = rng.random() < 0.3
        replies: Wanted = "first" if one else rng.choice(("first", "majority", "all"))
        try:
            await group.call(b"?", replies=replies, to="one" if one else "all", timeout=rng.uniform(0.1, 2.0))
        except semcast.GroupClosedError:
            raise
        except semcast.CallError:  # this program was put out meanwhile
            self._insisting.unconfirmed += 1
        except semcast.GroupError as error:
            self._insisting.refused += 1
            say("refused", text=str(error))
