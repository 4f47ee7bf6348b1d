"""Whether the servers of a database have the same tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

MISSING = "missing"
"""The digest of a table that a server does not have."""


class Verified(msgspec.Struct, frozen=True):
    """The tables of servers, at one place in the order."""

    position: int
    tables: dict[str, dict[str, str]]
    """By server: the digest of each table."""
    silent: dict[str, str]
    """Servers that were not compared, by name or address, and why."""

    def differences(self) -> dict[str, dict[str, list[str]]]:
        """Tables that are not the same everywhere: which digest is at which servers."""
        names = sorted({name for tables in self.tables.values() for name in tables})
        found: dict[str, dict[str, list[str]]] = {}
        for name in names:
            which: dict[str, list[str]] = {}
            for server, tables in sorted(self.tables.items()):
                which.setdefault(tables.get(name, MISSING), []).append(server)
            if len(which) > 1:
                found[name] = which
        return found


def verified(
    position: int, said: Mapping[str, Mapping[str, Any] | Exception], members: Sequence[str]
) -> Verified:
    """What servers said, by their addresses; of those that are not among them nothing is known."""
    tables: dict[str, dict[str, str]] = {}
    silent: dict[str, str] = {}
    for url, each in said.items():
        if isinstance(each, Exception):
            silent[url] = str(each) or type(each).__name__
        else:
            tables[each["server"]] = dict(each["tables"])
    unknown = [name for name in members if name not in tables]
    if len(unknown) > len(silent):
        for name in unknown:
            silent.setdefault(name, "no server that answered has this name: say where it is (--server)")
    return Verified(position, tables, silent)
