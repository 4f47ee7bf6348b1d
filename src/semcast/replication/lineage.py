"""Orders that an operator gave up (`--forget`), and who still follows them: pure functions.

A group has one lineage until an operator vouches that servers are gone for good, and lets the rest go on.
What only those had ordered is given up; from there on the order is another one. A server that comes back with
a part of the old order behind that point cannot be given the new one: it stops, and says what it has.
"""

from collections.abc import Collection
from hashlib import blake2b

from semcast.replication.ids import Server, servers_of
from semcast.replication.knowledge import Prim
from semcast.replication.membership import Membership
from semcast.replication.records import Forgot


class ForgetError(ValueError):
    """Servers cannot be forgotten like that; says why, and what to do instead."""


def forgetting(
    server: Server, prim: Prim, members: Membership, names: Collection[str], *, loss: bool
) -> Forgot:
    """What a server has to write down to go on without others.

    Args:
        server: that is told to.
        prim: the last primary it knows.
        members: of the group, as far as it knows.
        names: who is gone for good.
        loss: whether the operator accepts that actions are lost which none of the rest has.

    Raises:
        ForgetError: it makes no sense, or is too dangerous.
    """
    if not prim.index:
        raise ForgetError(f"{server.name} knows no primary: there is no database yet that could be forgotten")
    if server not in members:
        raise ForgetError(f"{server.name} is no server of this database (any more): forget elsewhere")
    known = {each.name: each for each in members.weights}
    for name in names:
        if name not in known:
            raise ForgetError(f"there is no server {name!r}: the servers are {', '.join(sorted(known))}")
    if server.name in names:
        raise ForgetError(f"{server.name} cannot forget itself: do it at one of the servers that are left")
    dead = tuple(sorted(known[name] for name in set(names)))
    last = servers_of(prim.servers)
    rest = [each.name for each in last if each not in dead]
    if server not in last and rest:
        raise ForgetError(
            f"{server.name} was not in the last primary that it knows ({_named(last)}), which may have "
            f"ordered what is not here: forget at {' or '.join(rest)}"
        )
    if server not in last and not loss:
        raise ForgetError(
            f"{server.name} was not in the last primary that it knows ({_named(last)}), and all of that is "
            "to be forgotten: what only these had is lost. If that is meant, say --accept-loss, too"
        )
    made = blake2b(repr((prim.lineage, prim.index, prim.attempt, dead)).encode(), digest_size=7)
    return Forgot(dead, 1 + int.from_bytes(made.digest(), "little"))


def made_up(prim: Prim, forgot: Forgot, members: Membership) -> Prim:
    """The primary that an operator made up, in the place of one that cannot come back."""
    rest = tuple(pair for pair in prim.servers if pair[0] not in forgot.servers)
    if not rest:
        rest = tuple(pair for pair in members.weighted() if pair[0] not in forgot.servers)
    return Prim(
        prim.index + 1,
        servers=rest,
        whole=True,
        lineage=forgot.lineage,
        past=(*prim.past, (prim.lineage, 0)),
        forgot=tuple(sorted({*prim.forgot, *forgot.servers})),
    )


def past_of(before: Prim, line: int) -> tuple[tuple[int, int], ...]:
    """The lineages that ended, each with the position up to which it counts, for the primary after this."""
    return (*before.past[:-1], (before.past[-1][0], line)) if before.whole and before.past else before.past


def goes_on_from(known: Prim, other: Prim) -> bool:
    """Whether an operator made up the one where the other is the last: what is green there still counts.

    The first primary after it needs all who were not given up, so they have to come together, though one of
    them may lack much, or have much that the others lack.
    """
    return known.whole and bool(known.past) and known.past[-1][0] == other.lineage and known.rank > other.rank


def estranged(server: Server, prim: Prim, top: Prim) -> bool:
    """Whether a server that knows one primary must not take part where another is the last one."""
    if server in top.forgot:
        return True
    if not prim.index or prim.lineage == top.lineage:
        return False
    return not (top.whole and server in servers_of(top.servers))


def given_up(server: Server, prim: Prim, line: int, top: Prim) -> str:
    """Why a server cannot follow the last primary, whatever it is given; empty if it can."""
    ends = dict(top.past)
    followed = prim.past[-1][0] if prim.whole and prim.past else prim.lineage
    end = line if followed == top.lineage or top.whole else ends.get(followed, 0)
    ahead = ""
    if line > end:
        ahead = f"; positions {end + 1} to {line} were ordered here, and are not part of the database"
    if server in top.forgot:
        return f"this server was forgotten by an operator, and the others went on without it{ahead}"
    return f"an operator made the database go on without this server{ahead}" if ahead else ""


def _named(servers: list[Server]) -> str:
    return ", ".join(server.name for server in servers) or "nobody"
