"""What a benchmark must know of a stack."""

import atexit
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec

import semcast
from semcast.bench.case import Case
from semcast.core.registry import Registry


def plain(case: Case) -> None:
    """Refuse what only virtual synchrony has."""
    if case.engine or case.uniform:
        raise ValueError(f"engine and uniform are for vsync, and this is {case.stack}")


def light(case: Case) -> None:
    """Refuse what a domain does not have."""
    plain(case)
    if case.items or case.reading == "blocking":
        raise ValueError("items and blocking are for groups without a domain")


Joined = semcast.Group | semcast.LightGroup


@asynccontextmanager
async def member(group: str, settings: Mapping[str, Any]) -> AsyncIterator[Joined]:
    """A member of a group."""
    async with semcast.join(group, **settings) as joined:
        yield joined


@asynccontextmanager
async def lodger(group: str, settings: Mapping[str, Any]) -> AsyncIterator[Joined]:
    """A member of one group of a domain."""
    given = {name: value for name, value in settings.items() if name != "stack"}
    async with semcast.domain(group, **given) as domain:
        yield await domain.join("bench")


@asynccontextmanager
async def causal_lodger(group: str, settings: Mapping[str, Any]) -> AsyncIterator[Joined]:
    """A member of one group of a causal domain."""
    given = {name: value for name, value in settings.items() if name not in ("stack", "policy")}
    async with semcast.domain(group, engine="causal", **given) as domain:
        yield await domain.join("bench")


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A stack, for benchmarks."""

    name: str
    orders: tuple[str, ...]
    """The orders it can be asked for; the first is the default."""
    settings: Callable[[Case], Mapping[str, Any]]
    """How a member joins, besides what is set alike for all stacks."""
    fixed: bool = False
    """Whether members are known beforehand: then each has an address in the case."""
    enter: Callable[[str, Mapping[str, Any]], AbstractAsyncContextManager[Joined]] = member
    """Become a member of a group, with settings."""
    check: Callable[[Case], None] = plain
    """Raises ValueError where the case makes no sense."""


FAMILIES: Registry[Family] = Registry("stack")


def listed(case: Case) -> list[str]:
    """The setting `members`, where they are known beforehand."""
    return [f"m{rank}={address}" for rank, address in enumerate(case.addresses)]


def _ring(_case: Case) -> Mapping[str, Any]:
    return {"bind": "127.0.0.1:0"}


def _s_rm(case: Case) -> Mapping[str, Any]:
    return {"members": listed(case)}


def _vsync(case: Case) -> Mapping[str, Any]:
    return {
        "bind": "127.0.0.1:0",
        "order": case.order,
        "engine": case.engine,
        "uniform": case.uniform,
        "minimum": case.members,
        "token_loss": "2s",  # busy members are not dead
    }


def _check_vsync(case: Case) -> None:
    if case.engine and case.order != "total":
        raise ValueError(f"engine {case.engine} decides on a total order, and this is {case.order}")


def _gossip(_case: Case) -> Mapping[str, Any]:
    return {"bind": "127.0.0.1:0"}


def _replication(case: Case) -> Mapping[str, Any]:
    folder = tempfile.mkdtemp(prefix="semcast-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    founders = [f"m{rank}" for rank in range(case.members)]
    return {"bind": "127.0.0.1:0", "founders": founders, "data": folder, "durability": case.order}


def _isis(case: Case) -> Mapping[str, Any]:
    return {"bind": "127.0.0.1:0", "minimum": case.members, "token_loss": "2s"}


FAMILIES.register(Family(name="ring", orders=("agreed", "safe"), settings=_ring))
FAMILIES.register(
    Family(name="vsync", orders=("fifo", "causal", "total"), settings=_vsync, check=_check_vsync)
)
FAMILIES.register(Family(name="s-rm", orders=("fifo",), settings=_s_rm, fixed=True))
FAMILIES.register(Family(name="replication", orders=("disk", "memory"), settings=_replication))
FAMILIES.register(Family(name="gossip", orders=("fifo",), settings=_gossip))
FAMILIES.register(
    Family(name="lightweight", orders=("agreed", "safe"), settings=_ring, enter=lodger, check=light)
)
FAMILIES.register(Family(name="isis", orders=("causal",), settings=_isis, enter=causal_lodger, check=light))
