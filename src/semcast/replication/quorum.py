"""Who may go on from a primary: dynamic linear voting with weights (Amir 1995, 1.2 and figure 6.13).

The print of figure 6.13 has the majority only; the text has linear voting, which breaks a tie.
"""

from collections.abc import Collection

from semcast.replication.ids import Server
from semcast.replication.knowledge import Prim


def is_quorum(prim: Prim, here: Collection[Server]) -> bool:
    """Whether these may install the primary after this one.

    They are more than half of its weight, or half with its first server.

    >>> a, b, c = (Server(name, 1) for name in "abc")
    >>> prim = Prim(1, servers=((a, 1), (b, 1), (c, 2)))
    >>> is_quorum(prim, [c, b]), is_quorum(prim, [c]), is_quorum(prim, [a, b])
    (True, False, True)
    """
    if prim.whole:
        return all(server in here for server, _ in prim.servers)
    total = sum(weight for _, weight in prim.servers)
    present = sum(weight for server, weight in prim.servers if server in here)
    if 2 * present == total:
        return bool(prim.servers) and min(server for server, _ in prim.servers) in here
    return 2 * present > total


def may_found(names: Collection[str], here: Collection[Server]) -> bool:
    """Whether these may install the very first primary: all who were named, each with one store.

    A majority would not do: one with wiped disks would found a second time.
    """
    found = [server.name for server in here]
    return bool(names) and set(found).issuperset(names) and len(set(found)) == len(found)
