"""The servers of a group: who is let in, who is put out, and how much each counts."""

from typing import TYPE_CHECKING

from semcast.engine.errors import RequestError
from semcast.replication.actions import Join, Leave, Reweigh
from semcast.replication.ids import Server
from semcast.replication.stack import Replication

if TYPE_CHECKING:
    from semcast.engine.replica import Replica


async def add(replica: "Replica", name: str, weight: int, timeout: float | None) -> int:
    """Let a server in that asks for it."""
    _check_weight(weight)

    def find(stack: Replication) -> tuple[Server | None, list[str]]:
        return stack.strangers.get(name), sorted(stack.strangers)

    found, waiting = await replica.in_turn(find)
    if found is None:
        told = ", ".join(waiting) or "nobody"
        raise RequestError(f"server {name!r}: it does not ask to be let in; {told} does")
    return await replica.change(Join(found, weight), timeout)


async def remove(replica: "Replica", name: str, timeout: float | None) -> int:
    """Put a server out."""
    return await replica.change(Leave(await _member(replica, name)), timeout)


async def weigh(replica: "Replica", name: str, weight: int, timeout: float | None) -> int:
    """Let a server count for so much."""
    _check_weight(weight)
    return await replica.change(Reweigh(await _member(replica, name), weight), timeout)


async def _member(replica: "Replica", name: str) -> Server:
    def find(stack: Replication) -> list[Server]:
        return sorted(stack.books.members.weights)

    servers = await replica.in_turn(find)
    for server in servers:
        if server.name == name:
            return server
    known = ", ".join(server.name for server in servers)
    raise RequestError(f"server {name!r}: the servers of {replica.name} are {known}")


def _check_weight(weight: int) -> None:
    if type(weight) is not int or not 0 <= weight <= 1000:
        raise RequestError(f"weight {weight!r}: a whole number from 0 to 1000")
