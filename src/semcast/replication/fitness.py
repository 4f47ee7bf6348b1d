"""Whether a server may make actions: its clock and its versions have to fit those of the others.

Actions carry the time at which they were asked for, and all servers do them: a clock of 2099 would stop the
time of all, and another release of what does them might come to another result. Who does not fit is told why;
it goes on to answer reads, and does what others ask for.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from statistics import median_low

from semcast.replication.ids import Server
from semcast.replication.messages import State

MOST_SKEW = 10_000
"""Milliseconds between the clock of a server and that of the others."""


def _unknown() -> int:
    return 0


class Vitals:
    """What a server tells of itself besides what it knows."""

    def __init__(self) -> None:
        self.wall: Callable[[], int] = _unknown
        """Milliseconds since 1970; 0 where there is no such clock."""
        self.versions: tuple[str, ...] = ()
        """Of whatever does actions."""
        self.allow_mixed = False
        """Whether other versions are as good, as whoever runs the servers says."""


def unfit(server: Server, states: Mapping[Server, State], *, allow_mixed: bool) -> str:
    """Why a server should make no actions, by what all said at the same time; nothing if it may."""
    return _skewed(server, states) or ("" if allow_mixed else _mixed(server, states))


def _skewed(server: Server, states: Mapping[Server, State]) -> str:
    """Who is late is right where there are two: what is in the future can be waited for."""
    clocks = [state.wall for state in states.values() if state.wall]
    own = states[server].wall
    if not own:
        return ""
    skew = own - median_low(clocks)
    if abs(skew) <= MOST_SKEW:
        return ""
    where = "ahead of" if skew > 0 else "behind"
    return (
        f"the clock of this server is {abs(skew) / 1000:.0f} s {where} that of the others: it takes no "
        "writes until it is set right and the server is started again"
    )


def _mixed(server: Server, states: Mapping[Server, State]) -> str:
    own = states[server].versions
    counts = Counter(state.versions for state in states.values() if state.versions)
    if not own or len(counts) < 2:
        return ""
    usual = min(counts, key=lambda versions: (-counts[versions], versions))
    if own == usual:
        return ""
    return (
        f"{', '.join(own)} here, and {', '.join(usual)} at most servers: this one takes no writes, since "
        "results might differ. Make them alike, or set allow_mixed"
    )
