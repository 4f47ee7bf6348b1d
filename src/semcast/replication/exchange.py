"""One exchange: the states of all, the plan that follows from them, and whose turn it is (section 6.1.3).

Greens are taken as they come. Reds are kept aside and taken at the end, all or none: where an exchange breaks
off in the middle, somebody would have an answer without the question.
"""

from collections.abc import Collection, Iterator

from semcast.core.ids import MemberId
from semcast.replication.actions import Run
from semcast.replication.colours import Colours
from semcast.replication.ids import ConfId, Server
from semcast.replication.messages import Again, State
from semcast.replication.plan import Plan, Share


class Exchange:
    """In one configuration.

    Args:
        conf: its name.
        members: who is in it.
    """

    def __init__(self, conf: ConfId, members: frozenset[MemberId]) -> None:
        self.conf = conf
        self.members = members
        self.states: dict[Server, State] = {}
        self.plan: Plan | None = None
        self.staged: list[Run] = []
        """Reds that are taken at the end."""
        self.turn = 0
        """The share that is being sent."""
        self.ended = False
        self.foreign: set[MemberId] = set()
        """Servers of another group that has the same name, or that have forgotten what they did: what they
        say is for nobody here."""
        self._told: dict[MemberId, Server] = {}
        self._sent: set[int] = set()

    def add(self, member: MemberId, state: State) -> bool:
        """The state of a member; returns whether all are there."""
        if member in self.members:
            self._told[member] = state.server
            self.states[state.server] = state
        return len(self._told) == len(self.members)

    def set_aside(self, servers: Collection[Server]) -> None:
        """These do not count, and what they say is not heard."""
        self.foreign |= {member for member, server in self._told.items() if server in servers}
        for server in servers:
            del self.states[server]

    def server_of(self, member: MemberId) -> Server | None:
        """Who a member is."""
        return self._told.get(member)

    def share_of(self, server: Server) -> Share | None:
        """What this server has to send now, if it is its turn and it has not yet."""
        assert self.plan is not None
        if self.turn >= len(self.plan.shares) or self.turn in self._sent:
            return None
        share = self.plan.shares[self.turn]
        if share.server != server:
            return None
        self._sent.add(self.turn)
        return share

    def over(self) -> bool:
        """Whether all shares were sent."""
        assert self.plan is not None
        return self.turn >= len(self.plan.shares)


def greens_of(conf: ConfId, share: Share, colours: Colours, most: int) -> Iterator[Again]:
    """The green part of a share, in messages."""
    if share.greens:
        runs: list[Run] = []
        first = size = 0
        for position, run in colours.after(share.after):
            bytes_ = sum(map(len, run.actions))
            if runs and size + bytes_ > most:
                yield Again(conf, first, runs)
                runs, size = [], 0
            first = position if not runs else first
            runs.append(run)
            size += bytes_
        if runs:
            yield Again(conf, first, runs)


def reds_of(conf: ConfId, runs: list[Run], most: int) -> Iterator[Again]:
    """Reds, in messages."""
    some: list[Run] = []
    size = 0
    for run in runs:
        bytes_ = sum(map(len, run.actions))
        if some and size + bytes_ > most:
            yield Again(conf, 0, some)
            some, size = [], 0
        some.append(run)
        size += bytes_
    if some:
        yield Again(conf, 0, some)


def reds_in(share: Share, colours: Colours) -> list[Run]:
    """The reds of a share, in red order, so that those of a creator are in its order."""
    spans = {creator: (after, upto) for creator, after, upto in share.reds}
    return [
        run
        for run in colours.in_red_order()
        if run.creator in spans and spans[run.creator][0] < run.first <= spans[run.creator][1]
    ]
