"""`join(..., domain=)`: the groups of one process that share a domain.

Whoever is the first opens the domain, and with the last it is closed. Programs with several event loops have
one in each.
"""

import asyncio
from collections.abc import Generator
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from semcast.domains.domain import Domain
from semcast.domains.light import Flavour, LightGroup
from semcast.domains.opening import domain
from semcast.group.errors import ConfigurationError, GroupError

Settings = dict[str, Any]


class Share:
    """A domain that is open, or about to be, and how many use it.

    Args:
        domain: that is shared.
        settings: that it was made with.
    """

    def __init__(self, domain: Domain, settings: Settings) -> None:
        self.domain = domain
        self.settings = settings
        self.users: set[str] = set()
        """The groups that are joined through it."""
        self._opening = asyncio.get_running_loop().create_task(domain.__aenter__())

    async def opened(self) -> Domain:
        """Once it is open. Who is cancelled here does not keep others from it."""
        return await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Nobody uses it any more."""
        self._opening.cancel()
        await asyncio.wait([self._opening])
        await self.domain.close()


_SHARES: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, list[Share]]]" = WeakKeyDictionary()


class DomainJoin:
    """A group of a shared domain, to be entered or awaited. Made by `semcast.join(..., domain=)`.

    Args:
        group: to be in.
        name: of the domain.
        flavour: of the group.
        settings: of the domain; with none, whatever it is open with.
    """

    def __init__(self, group: str, name: str, flavour: Flavour, settings: Settings) -> None:
        self._group, self._name, self._flavour, self._settings = group, name, flavour, settings
        self._joined: LightGroup | None = None

    def __await__(self) -> Generator[Any, None, LightGroup]:
        """`group = await join(..., domain=...)`; then `close` is up to the program."""
        return self._join().__await__()

    async def __aenter__(self) -> LightGroup:
        return await self._join()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._joined is not None
        await self._joined.leave()

    async def _join(self) -> LightGroup:
        if self._joined is not None:
            raise GroupError(f"{self._group} was joined before: `join` makes another")
        shares = _SHARES.setdefault(asyncio.get_running_loop(), {}).setdefault(self._name, [])
        share = self._find(shares)
        share.users.add(self._group)

        async def release() -> None:
            await _release(self._name, share, self._group)

        try:
            floor = await share.opened()
            self._joined = await floor.join(self._group, flavour=self._flavour)
        except BaseException:
            await release()
            raise
        self._joined.released = release
        return self._joined

    def _find(self, shares: list[Share]) -> Share:
        """One in which this group is not joined yet; a second member of a group needs a domain of its own."""
        for share in shares:
            if self._settings and self._settings != share.settings:
                raise ConfigurationError(
                    f"domain {self._name!r} is open here with other settings: give none, or the same"
                )
            if self._group not in share.users:
                return share
        share = Share(domain(self._name, **self._settings), self._settings)
        shares.append(share)
        return share


async def _release(name: str, share: Share, group: str) -> None:
    """A group needs its domain no more."""
    share.users.discard(group)
    shares = _SHARES.get(asyncio.get_running_loop(), {})
    if not share.users and share in shares.get(name, ()):
        shares[name].remove(share)
        if not shares[name]:
            del shares[name]
        await share.close()
