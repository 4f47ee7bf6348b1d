"""Hierarchical groups, live: a root group that says which leaf group serves a key."""

from typing import Literal

from semcast.domains.domain import Domain
from semcast.domains.light import LightGroup
from semcast.group.errors import ConfigurationError, GroupError
from semcast.patterns.calls import CallRequest
from semcast.patterns.hierarchy import Branching, ask_for, ask_for_places


class Hierarchy:
    """As one program is in it. Made by `hierarchy`.

    Args:
        domain: of the program.
        root: the root group.
        timeout: seconds that joining a group, or asking the root, may take.
    """

    def __init__(self, domain: Domain, root: LightGroup, timeout: float) -> None:
        self.domain = domain
        self.root = root
        self.leaf: LightGroup | None = None
        """Of a server: the leaf group that it serves."""
        self._timeout = timeout
        self._visited: dict[str, LightGroup] = {}

    async def leaf_of(self, key: bytes) -> LightGroup:
        """The leaf group that serves a key. A client joins it, if it is not there yet."""
        question = ask_for(key)
        answer = await self.root.call(question, replies="first", timeout=self._timeout)
        if not answer.replies:
            raise GroupError(f"{self.root.name}: nobody says which leaf {key!r:.40} belongs to")
        name = next(iter(answer.replies.values())).decode()
        if self.leaf is not None:
            if name != self.leaf.name:
                raise GroupError(f"{key!r:.40} belongs to {name}, and this program serves {self.leaf.name}")
            return self.leaf
        found = self._visited.get(name)
        if found is None or found.over:
            found = self._visited[name] = await self.domain.join(
                name, kind="client-server", role="client", timeout=self._timeout
            )
        return found

    async def serve(self, branching: Branching) -> None:
        """Take a place where one more server is needed most."""
        self._answer_with(branching)
        told = await self.root.call(ask_for_places(), timeout=self._timeout)
        others = [place.decode() for member, place in told.replies.items() if member != self.domain.member]
        rank = self.root.members().index(self.domain.member)
        leaf = branching.emptiest(others, rank)
        self.leaf = await self.domain.join(leaf, kind="client-server", role="server", timeout=self._timeout)

    def _answer_with(self, branching: Branching) -> None:
        @self.root.on_call
        async def answer(request: CallRequest) -> bytes:
            return branching.answer(request.payload, "" if self.leaf is None else self.leaf.name)


async def hierarchy(
    domain: Domain,
    name: str,
    *,
    role: Literal["server", "client"],
    leaves: int = 0,
    timeout: float = 30.0,
) -> Hierarchy:
    """Be in a hierarchical group of a causal domain: a root group, and leaf groups that share its keys.

    A server is in the root group and serves the leaf that has the fewest servers (`Hierarchy.leaf`): it sends
    and answers calls there as in any group. A client asks the root which leaf has a key, and is a client of
    that leaf from then on (`Hierarchy.leaf_of`); servers of other leaves hear nothing of it.

    Args:
        domain: of this program.
        name: of the root group. Its leaves are `name/0`, `name/1`, ...
        role: `server` or `client`.
        leaves: of servers: how many leaves there are, the same at all, and no more than there are servers.
        timeout: seconds that joining a group, or asking the root, may take.
    """
    if role not in ("server", "client"):
        raise ConfigurationError(f"role {role!r} in a hierarchical group: say server or client")
    if (role == "server") != (leaves > 0):
        raise ConfigurationError(f"leaves={leaves}: servers say how many leaves there are, clients do not")
    root = await domain.join(name, kind="client-server", role=role, timeout=timeout)
    found = Hierarchy(domain, root, timeout)
    if role == "server":
        await found.serve(Branching(name, leaves))
    return found
