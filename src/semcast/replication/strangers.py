"""Two groups of one name on one network: each goes on as if the other were not there.

Servers of both are in one configuration then, since the group communication knows only the name. What tells
them apart is who founded their group: servers with stores, of which there are never two alike.
"""

from collections.abc import Mapping
from hashlib import blake2b

from semcast.replication.ids import Server, Weighted
from semcast.replication.messages import State

States = Mapping[Server, State]


def founded_by(server: Server, founders: Weighted, states: States) -> Weighted:
    """Who founded the group of a server; of one that knows nothing yet, the group that let it in."""
    if founders:
        return founders
    welcoming = (state.founders for state in states.values() if server in dict(state.weights))
    return next((found for found in welcoming if found), ())


def foreign(server: Server, founders: Weighted, states: States) -> list[Server]:
    """Servers of other groups, as far as can be told."""
    own = founded_by(server, founders, states)
    return [other for other, state in states.items() if own and state.founders and state.founders != own]


def refusal(server: Server, founders: Weighted, states: States) -> str:
    """What is wrong here, for who runs the servers; nothing where it is not."""
    own = founded_by(server, founders, states)
    others = {state.founders for state in states.values() if state.founders and state.founders != own}
    mine = states[server].names
    if not own and mine:
        others = {found for found in others if sorted(_names(found)) != sorted(mine)}
    if not others or not (own or mine):
        return ""
    told = "; ".join(", ".join(_names(each)) for each in sorted(others))
    return f"another group of this name is on the network, founded by {told}: give one another name, or a key"


def _names(founders: Weighted) -> list[str]:
    return [each.name for each, _ in founders]


def foundation(founders: Weighted) -> int:
    """A number for a group that no other has; 0 where it is not founded."""
    if not founders:
        return 0
    return 1 + int.from_bytes(blake2b(str(founders).encode(), digest_size=7).digest(), "little")
