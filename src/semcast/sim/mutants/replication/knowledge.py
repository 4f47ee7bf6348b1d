"""Replication servers that know too much, or count too little: knowledge and quorum."""

from collections.abc import Collection

import msgspec

from semcast.replication.ids import Server, servers_of
from semcast.replication.knowledge import (
    Accounts,
    Knowledge,
    Prim,
    Vulnerable,
    contradicted,
    newest,
    still_vulnerable,
    with_bits,
)
from semcast.replication.knowledge import learn as learn_all
from semcast.replication.machine import Machine
from semcast.replication.records import Learnt
from semcast.replication.states import State as Where


class Step3AsPrinted(Machine):
    """Figure 6.12 to the letter: who was not in the last primary forgets its vulnerability."""

    def learn(self, accounts: Accounts) -> Knowledge:
        known = learn_all(accounts)
        prim = newest(accounts)
        records = {
            server: None
            if each.vulnerable is None
            or server not in servers_of(prim.servers)
            or contradicted(each.vulnerable, accounts)
            else each.vulnerable
            for server, each in accounts.items()
        }
        return msgspec.structs.replace(known, vulnerable=with_bits(records))


class BitsAsPrinted(Machine):
    """No bit is ever set: an attempt of which all crashed blocks for ever."""

    def learn(self, accounts: Accounts) -> Knowledge:
        known = learn_all(accounts)
        return msgspec.structs.replace(known, vulnerable=still_vulnerable(accounts, known.prim))


class UnvulnerableInUn(Machine):
    """A server that does not know whether others installed forgets that it agreed."""

    def _end_of_conf(self) -> None:
        super()._end_of_conf()
        if self.state is Where.UN:
            self.write(Learnt(self.books.prim, self.books.attempt, None, self.books.yellow))


class QuorumIgnoresVulnerable(Machine):
    """A primary is installed though somebody may know of another."""

    def learn(self, accounts: Accounts) -> Knowledge:
        known = learn_all(accounts)
        return msgspec.structs.replace(known, vulnerable=dict.fromkeys(known.vulnerable))


class HalfIsEnough(Machine):
    """Half of the last primary is a quorum, whichever half."""

    def is_quorum(self, prim: Prim, here: Collection[Server]) -> bool:
        total = sum(weight for _, weight in prim.servers)
        return 2 * sum(weight for server, weight in prim.servers if server in here) >= total


class MajorityOfSAndLast(Machine):
    """A quorum must be one of all servers, too: a shrinking group stops."""

    def is_quorum(self, prim: Prim, here: Collection[Server]) -> bool:
        everybody = Prim(1, servers=self.books.members.weighted())
        return super().is_quorum(prim, here) and super().is_quorum(everybody, here)


class YellowForgotten(Machine):
    """What may be green elsewhere is ordered anew."""

    def learn(self, accounts: Accounts) -> Knowledge:
        known = learn_all(accounts)
        return msgspec.structs.replace(known, yellow=None if known.yellow is None else ())


class VulnerableByName(Machine):
    """Who is meant by a record is told by name: a wiped disk speaks for the one before it."""

    def learn(self, accounts: Accounts) -> Knowledge:
        known = learn_all(accounts)
        names = {server.name: server for server in accounts}

        def void(record: Vulnerable | None) -> bool:
            here = [] if record is None else [names.get(each.name) for each in servers_of(record.servers)]
            others = [accounts[server].vulnerable for server in here if server is not None]
            return any(other is None or (record and other.conf != record.conf) for other in others)

        freed = {server: None if void(each) else each for server, each in known.vulnerable.items()}
        return msgspec.structs.replace(known, vulnerable=freed)


class WipedMajorityFounds(Machine):
    """A majority of those who were named founds a group, whatever their disks had."""

    def may_found(self, names: Collection[str], here: Collection[Server]) -> bool:
        return 2 * len({server.name for server in here}.intersection(names)) > len(names)
