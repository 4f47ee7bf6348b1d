"""`blocking.join(..., domain=)`: the threads of one process that share a domain."""

import threading
from types import TracebackType
from typing import Any

from semcast.domains.blocking import BlockingDomain, BlockingLightGroup
from semcast.domains.light import Flavour
from semcast.group.errors import ConfigurationError, GroupError


class _Share:
    """A domain, and the groups that are joined through it."""

    def __init__(self, domain: BlockingDomain, settings: dict[str, Any]) -> None:
        self.domain = domain
        self.settings = settings
        self.users: set[str] = set()
        self.lock = threading.Lock()
        """Held while it is opened, and while it is closed."""
        self.opened = False


_SHARES: dict[str, list[_Share]] = {}
_LOCK = threading.Lock()


class BlockingDomainJoin:
    """A group of a shared domain, to be entered. Made by `semcast.blocking.join(..., domain=)`."""

    def __init__(self, group: str, name: str, flavour: Flavour, settings: dict[str, Any]) -> None:
        self._group, self._name, self._flavour, self._settings = group, name, flavour, settings
        self._share: _Share | None = None
        self._joined: BlockingLightGroup | None = None

    def __enter__(self) -> BlockingLightGroup:
        if self._share is not None:
            raise GroupError(f"{self._group} was joined before: `join` makes another")
        with _LOCK:
            share = self._share = self._find(_SHARES.setdefault(self._name, []))
            share.users.add(self._group)
        try:
            with share.lock:
                if not share.opened:
                    share.domain.__enter__()
                    share.opened = True
            self._joined = share.domain.join(self._group, flavour=self._flavour)
        except BaseException:
            self._release(share)
            raise
        return self._joined

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._joined is not None
        assert self._share is not None
        try:
            self._joined.leave()
        finally:
            self._release(self._share)

    def _find(self, shares: list[_Share]) -> _Share:
        for share in shares:
            if self._settings and self._settings != share.settings:
                raise ConfigurationError(
                    f"domain {self._name!r} is open here with other settings: give none, or the same"
                )
            if self._group not in share.users:
                return share
        share = _Share(BlockingDomain(self._name, self._settings), self._settings)
        shares.append(share)
        return share

    def _release(self, share: _Share) -> None:
        with _LOCK:
            share.users.discard(self._group)
            if share.users:
                return
            _SHARES[self._name].remove(share)
            if not _SHARES[self._name]:
                del _SHARES[self._name]
        with share.lock:
            share.domain.close()
