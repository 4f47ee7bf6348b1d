"""What chaos must know of a stack: how its members join, so that they may be restarted and come late."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from semcast.core.registry import Registry


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A stack whose members come and go."""

    name: str
    settings: Callable[[int], Mapping[str, Any]]
    """What a member of a group of so many joins with, besides what is set alike for all stacks."""


FAMILIES: Registry[Family] = Registry("stack")


def _ring(_members: int) -> Mapping[str, Any]:
    return {}


def _vsync(members: int) -> Mapping[str, Any]:
    return {"minimum": members // 2 + 1}


FAMILIES.register(Family(name="ring", settings=_ring))
FAMILIES.register(Family(name="vsync", settings=_vsync))
