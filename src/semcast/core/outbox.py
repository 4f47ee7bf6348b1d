"""What a protocol wants from the world: frames out, timers, events up."""

import enum

import msgspec

from semcast.core.events import Event
from semcast.core.ids import MemberId, Nanos


class Frame(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of everything that travels between protocol objects. The types are in `semcast.wire`."""


class Timer(enum.Enum):
    """Base of each protocol's closed set of timers."""


class Reach(enum.Enum):
    """How far a frame goes that is not for one member."""

    ANYBODY = "anybody"
    """To every other member, and wherever strangers may hear it."""


Dest = MemberId | Reach | None
"""One member, anybody, or, with None, every other member."""


class Outbox:
    """Filled by a protocol during one input, drained by the driver after it.

    A driver makes one call into the protocol, then acts on `sends`, `timers` and `events` in order
    and clears them. Nothing re-enters.
    """

    __slots__ = ("events", "sends", "timers")

    def __init__(self) -> None:
        self.sends: list[tuple[Dest, Frame]] = []
        self.timers: list[tuple[Timer, Nanos | None]] = []
        self.events: list[Event] = []

    def send(self, dest: MemberId, frame: Frame) -> None:
        """Send to one member."""
        self.sends.append((dest, frame))

    def multicast(self, frame: Frame) -> None:
        """Send to every other member."""
        self.sends.append((None, frame))

    def announce(self, frame: Frame) -> None:
        """Send to every other member, and to those who are not known yet."""
        self.sends.append((Reach.ANYBODY, frame))

    def set_timer(self, timer: Timer, at: Nanos) -> None:
        """Ask for `on_timer(timer)` at `at`; replaces an earlier request for the same timer."""
        self.timers.append((timer, at))

    def cancel_timer(self, timer: Timer) -> None:
        """Withdraw the request, if there is one."""
        self.timers.append((timer, None))

    def deliver(self, event: Event) -> None:
        """Tell the application something that is not a message."""
        self.events.append(event)
