"""Who sends what in an exchange, so that each action leaves once (Amir 1995, 6.1.3).

Everybody computes it from the states alone; the figures say "turn" and "most updated" without saying how.

Who is far behind counts as absent: it is brought up to date outside of the group, and nobody waits for it.
The same for who is ahead: its many reds are handed in before it comes back.
"""

from collections.abc import Mapping

import msgspec

from semcast.replication.ids import Creator, Server, Weighted
from semcast.replication.knowledge import Prim
from semcast.replication.lineage import estranged
from semcast.replication.messages import State

States = Mapping[Server, State]
Span = tuple[Creator, int, int]
"""Actions of a creator: after one, up to another."""


class Share(msgspec.Struct, frozen=True):
    """What one server sends, when its turn comes."""

    server: Server
    after: int = 0
    """Its green actions behind this position, where it is the most updated one; else none."""
    greens: bool = False
    reds: tuple[Span, ...] = ()


class Plan(msgspec.Struct, frozen=True):
    """How an exchange goes."""

    members: tuple[Server, ...]
    """Those who count, in order."""
    founders: Weighted
    """As the one says who knows the newest primary; none where no primary was ever installed."""
    shares: tuple[Share, ...]
    prim: Prim
    """The last primary that anybody here knows."""


class Planner:
    """Makes plans. Its steps are methods, so that each can be judged alone."""

    def plan(self, states: States) -> Plan:
        """From the states of all in the configuration."""
        top = states[max(states, key=lambda server: (states[server].prim.rank, states[server].green, server))]
        founded = top.prim.index > 0
        counted = self.kin(self.known(states, top), top) if founded else dict(states)
        counted = self.not_ahead(self.not_behind(counted))
        founders = top.founders if founded else ()
        return Plan(tuple(sorted(counted)), founders, self.shares(counted), top.prim)

    def known(self, states: States, top: State) -> dict[Server, State]:
        """A store that knows no primary, where there is one, counts once it was let in."""
        servers = dict(top.weights)
        return {server: state for server, state in states.items() if state.prim.index or server in servers}

    def kin(self, states: States, top: State) -> dict[Server, State]:
        """Without those who follow an order that an operator gave up."""
        return {
            server: state for server, state in states.items() if not estranged(server, state.prim, top.prim)
        }

    def not_behind(self, states: States) -> dict[Server, State]:
        """Without those to whom too much would have to be sent, or what nobody has any more."""
        best = states[most_updated(states)]
        return {
            server: state
            for server, state in states.items()
            if state.green >= max(best.green - best.limit, best.start)
        }

    def not_ahead(self, states: States) -> dict[Server, State]:
        """Without those who have too many reds that the most updated one lacks."""
        best = states[most_updated(states)]
        has = dict(best.cut)
        return {
            server: state
            for server, state in states.items()
            if sum(max(0, last - has.get(creator, 0)) for creator, last in state.cut) <= best.limit
        }

    def shares(self, states: States) -> tuple[Share, ...]:
        """The most updated one first, with its greens and reds; then, by name, who has more reds."""
        best = most_updated(states)
        cuts = {server: dict(state.cut) for server, state in states.items()}
        creators = sorted({creator for cut in cuts.values() for creator in cut})
        least = min(state.green for state in states.values())
        reds: list[Span] = []
        more: dict[Server, list[Span]] = {}
        for creator in creators:
            lasts = {server: cut.get(creator, 0) for server, cut in cuts.items()}
            low, has, high = min(lasts.values()), lasts[best], max(lasts.values())
            if has > low:
                reds.append((creator, low, has))
            if high > has:
                holders = [server for server, last in lasts.items() if last == high]
                holder = creator.server if creator.server in holders else min(holders)
                more.setdefault(holder, []).append((creator, has, high))
        greens = states[best].green > least
        first = [Share(best, least, greens, tuple(reds))] if greens or reds else []
        return (*first, *(Share(server, reds=tuple(more[server])) for server in sorted(more)))


def most_updated(states: States) -> Server:
    """The highest green line, then the longest log, then the first by name."""
    return min(states, key=lambda server: (-states[server].green, states[server].start, server))
