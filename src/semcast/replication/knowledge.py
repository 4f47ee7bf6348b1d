"""What servers know together after they have told each other all (Amir 1995, figure 6.12): pure functions.

Deviations from the print, each needed (docs/protocols/replication.md): a record of vulnerability is void only
if a primary *other than the attempted one* is known to have followed, or if somebody of the attempt is here
and has no such record (the print voids that of a newcomer, which gives two primaries); records are compared
by configuration; a server that is here has its bit set, so that all of a crashed attempt together go on.
"""

from collections.abc import Mapping

import msgspec

from semcast.replication.actions import RunId
from semcast.replication.ids import ConfId, Number, Server, Weighted, servers_of


class Prim(msgspec.Struct, frozen=True, array_like=True):
    """A primary component that was installed, as far as a server knows."""

    index: Number = 0
    attempt: Number = 0
    conf: ConfId | None = None
    servers: Weighted = ()
    whole: bool = False
    """The next one needs all of these: the operator made this one up (`forget`)."""
    lineage: Number = 0
    """Changes where an operator gave up a part of what was ordered."""
    past: tuple[tuple[Number, Number], ...] = ()
    """Lineages that ended, each with the position up to which it counts."""
    forgot: tuple[Server, ...] = ()
    """Servers that were given up with them."""

    @property
    def rank(self) -> tuple[int, int, int]:
        """Of two, the one with the higher rank came later; of two that operators made up, one counts."""
        return self.index, self.attempt, self.lineage

    def __str__(self) -> str:
        return f"primary {self.index} (attempt {self.attempt}, {self.conf})"


class Vulnerable(msgspec.Struct, frozen=True, array_like=True):
    """A server agreed to an attempt to install a primary, and does not know what came of it."""

    index: Number
    """The primary that the attempt would follow."""
    attempt: Number
    conf: ConfId
    servers: Weighted
    bits: tuple[Server, ...] = ()
    """Who is known to know no more of it than this one."""
    agreed: bool = False
    """All are known to have agreed: each had it on its disk then."""


class Account(msgspec.Struct, frozen=True):
    """Of what a server says of itself, what knowledge is made of."""

    prim: Prim
    attempt: int
    yellow: tuple[RunId, ...] | None
    vulnerable: Vulnerable | None


class Knowledge(msgspec.Struct, frozen=True):
    """What all who are together know after an exchange."""

    prim: Prim
    attempt: int
    yellow: tuple[RunId, ...] | None
    """What may have been ordered last in that primary, in its order; None where nobody knows."""
    vulnerable: dict[Server, Vulnerable | None]


Accounts = Mapping[Server, Account]


def newest(accounts: Accounts) -> Prim:
    """Step 1: the last primary that anybody here knows."""
    return max((each.prim for each in accounts.values()), key=lambda prim: prim.rank)


def highest_attempt(accounts: Accounts, prim: Prim) -> int:
    """Step 1: how often its successor was attempted."""
    return max(each.attempt for each in accounts.values() if each.prim == prim)


def common_yellow(accounts: Accounts, prim: Prim) -> tuple[RunId, ...] | None:
    """Step 2: yellow at all who were in the last primary to its end."""
    sets = [each.yellow for each in accounts.values() if each.prim == prim and each.yellow is not None]
    if not sets:
        return None
    return tuple(run for run in sets[0] if all(run in others for others in sets[1:]))


def followed(record: Vulnerable, prim: Prim) -> bool:
    """Step 3: whether another primary than the attempted one came after the one before the attempt."""
    after = record.index + 1
    return prim.index > after or (prim.index == after and prim.conf != record.conf)


def contradicted(record: Vulnerable, accounts: Accounts) -> bool:
    """Step 3: whether somebody of the attempt is here who knows that nothing came of it."""
    for server in servers_of(record.servers):
        account = accounts.get(server)
        if account is None:
            continue
        other = account.vulnerable
        if other is None or other.conf != record.conf:
            return True
    return False


def still_vulnerable(accounts: Accounts, prim: Prim) -> dict[Server, Vulnerable | None]:
    """Step 3: the records that are not void."""
    return {
        server: None
        if (record := each.vulnerable) is None or followed(record, prim) or contradicted(record, accounts)
        else record
        for server, each in accounts.items()
    }


def with_bits(records: Mapping[Server, Vulnerable | None]) -> dict[Server, Vulnerable | None]:
    """Step 4: who is here knows no more than its record; where that is everybody, nothing came of it."""
    found: dict[Server, Vulnerable | None] = {}
    for server, record in records.items():
        if record is None:
            found[server] = None
            continue
        bits = {server}
        for other, same in records.items():
            if same is not None and same.conf == record.conf:
                bits |= {other, *same.bits}
        done = bits.issuperset(servers_of(record.servers))
        found[server] = None if done else msgspec.structs.replace(record, bits=tuple(sorted(bits)))
    return found


def learn(accounts: Accounts) -> Knowledge:
    """All steps."""
    prim = newest(accounts)
    return Knowledge(
        prim,
        highest_attempt(accounts, prim),
        common_yellow(accounts, prim),
        with_bits(still_vulnerable(accounts, prim)),
    )
