"""Servers whose disk has less than they vouched for: the folder was put back from an old copy.

The failure model has stable storage that stays intact. A server that forgot what it agreed to would agree to
something else: two primaries. What it told others, each of them remembers, on its disk, too; so it is found
out in the exchange, by all from the states alone. It counts for nothing, and stops. Where all who know have
forgotten with it, nobody can tell.
"""

from collections.abc import Mapping

from semcast.replication.ids import Server, servers_of
from semcast.replication.messages import State

States = Mapping[Server, State]


def rolled_back(states: States) -> dict[Server, str]:
    """Servers that have forgotten something, each with what others know of it."""
    found: dict[Server, str] = {}
    for server, state in states.items():
        others = [other for each, other in states.items() if each != server]
        why = (
            _fewer_actions(server, state, others)
            or _no_primary(server, state, others)
            or _no_attempt(server, state, others)
        )
        if why:
            found[server] = why
    return found


def _fewer_actions(server: Server, state: State, others: list[State]) -> str:
    """It told a green line, which was on its disk."""
    told = max((line for other in others for each, line in other.heard if each == server), default=0)
    if told <= state.green:
        return ""
    return f"its log ended at position {told}, and ends at {state.green} now"


def _no_primary(server: Server, state: State, others: list[State]) -> str:
    """It agreed to a primary, and has neither that nor the attempt on its disk.

    Nobody installs one without the word of all its servers, who have the attempt on their disks by then, and
    keep it until they know what became of it (Claim 2 of 6.3).
    """
    for other in others:
        prim = other.prim
        agreed = prim.conf is not None and server in servers_of(prim.servers)
        if agreed and state.prim.index < prim.index and not _attempts(state, other):
            return f"it agreed to primary {prim.index}, and knows of {state.prim.index} now"
    return ""


def _no_attempt(server: Server, state: State, others: list[State]) -> str:
    """Somebody heard that all agreed to an attempt, and not what came of it: another may have installed it.

    Who agreed had the number of the attempt on its disk, and numbers only grow, unless an operator gave up
    one of two orders.
    """
    for other in others:
        record = other.vulnerable
        if record is None or not record.agreed or server not in servers_of(record.servers):
            continue
        if state.prim.lineage != other.prim.lineage:
            continue
        if (state.prim.index, state.attempt) < (record.index, record.attempt):
            after = record.index + 1
            return f"it agreed to attempt {record.attempt} at primary {after}, and does not know of it now"
    return ""


def _attempts(state: State, other: State) -> bool:
    return state.vulnerable is not None and state.vulnerable.conf == other.prim.conf


def advice(why: str) -> str:
    """What such a server says when it stops."""
    return (
        f"the folder of this server is older than what it told the others ({why}): a copy of it was put "
        "back. Remove this server, and let it in anew with an empty folder"
    )
