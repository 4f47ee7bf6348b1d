"""One logger process: a logger in each of its groups, until it is told to stop or a disk fails."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import msgspec

from semcast.group.errors import ConfigurationError, GroupClosedError, GroupError
from semcast.group.group import Group
from semcast.group.settings import resolve
from semcast.logger.home import Home
from semcast.logger.metrics import LogMetrics
from semcast.logger.status import LogStatus, ask, refusals
from semcast.net.addresses import AddressError, split_address
from semcast.protocols.gossip.forgetting import FORGOTTEN

_LOOK = 0.2
"""Seconds between looks at the groups."""
_ANSWER = 1.0
"""Seconds that a group may take to say something."""
_REFUSALS = 25
"""Looks between two at how many senders were refused."""

Say = Callable[[Mapping[str, Any]], None]


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What a logger is asked for."""

    groups: tuple[str, ...]
    settings: Mapping[str, Any]
    """Of its member in each group, as `join` takes them."""
    bind: str = ""
    """Where the first group listens; each further one at the next port. Port 0 for any."""
    metrics: str = ""
    """Where metrics of all groups are served."""


class LoggerNode:
    """A logger in several groups; `async with` runs it.

    Args:
        home: its folder.
        served: what it is asked for.
    """

    def __init__(self, home: Home, served: Served) -> None:
        self.home = home
        self._served = served
        self._groups: dict[str, Group] = {}
        self._refused: dict[str, int] = {}
        self._open = AsyncExitStack()
        self._metrics = LogMetrics(home.path, self._statuses) if served.metrics else None

    async def __aenter__(self) -> "LoggerNode":
        try:
            groups = self._served.groups
            settings = [resolve(self._settings(place)) for place in range(len(groups))]
            self.home.keep()
            for name, each in zip(groups, settings, strict=True):
                group = Group(name, each)
                try:
                    self._groups[name] = await self._open.enter_async_context(group)
                except GroupClosedError as error:
                    _tell_final(error)
                    raise
            if self._metrics is not None:
                await self._metrics.start(self._served.metrics)
        except BaseException:
            await self.close()
            raise
        return self

    def _settings(self, place: int) -> dict[str, Any]:
        return {
            **self._served.settings,
            "stack": "gossip",
            "logger": True,
            "receive": False,
            "name": self.home.name,
            "data": str(self.home.path),
            "bind": _bind(self._served.bind, place),
        }

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave all groups: what came is on disk by then."""
        if self._metrics is not None:
            await self._metrics.close()
        await self._open.aclose()

    @property
    def groups(self) -> Sequence[Group]:
        """The members of this logger."""
        return list(self._groups.values())

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Where metrics are served."""
        return None if self._metrics is None else self._metrics.address

    async def status(self, group: str) -> LogStatus:
        """Of its log in a group."""
        return await ask(self._groups[group])

    async def _statuses(self) -> dict[str, LogStatus]:
        return {name: await ask(group) for name, group in self._groups.items()}

    async def watch(self, stopped: asyncio.Event, say: Say) -> None:
        """Until `stopped` is set. Raises GroupError where a group has ended, as with a full disk."""
        looks = 0
        while not stopped.is_set():
            looks += 1
            for name, group in self._groups.items():
                try:
                    over = group.is_over()
                except GroupClosedError as error:
                    _tell_final(error)
                    raise
                if over:
                    raise GroupError(f"the logger of {name} has ended")
            if looks % _REFUSALS == 0:
                with suppress(TimeoutError):  # a group that ends meanwhile does not answer
                    async with asyncio.timeout(_ANSWER):
                        await self._tell_refusals(say)
            try:
                async with asyncio.timeout(_LOOK):
                    await stopped.wait()
            except TimeoutError:
                continue

    async def _tell_refusals(self, say: Say) -> None:
        """Senders of which nothing is logged, because a log has no room for more."""
        for name, group in self._groups.items():
            found = await refusals(group)
            if found > self._refused.get(name, 0):
                self._refused[name] = found
                say({"event": "full", "logger": self.home.name, "group": name, "refused": found})


def _tell_final(error: GroupClosedError) -> None:
    """Raise another error where to start again does not help; that may be heard before it has joined."""
    if FORGOTTEN in str(error):
        raise ConfigurationError(str(error)) from error


def _bind(text: str, place: int) -> str:
    """Where the group at this place listens."""
    if not text:
        return ""
    try:
        host, port = split_address(text, any_port=True)
    except AddressError as error:
        raise ConfigurationError(f"bind: {error}") from error
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{port + place if port else 0}"
