"""One client of a daemon: its session, and what it and the daemon owe each other."""

from collections import Counter, deque

from semcast.core.ids import Nanos
from semcast.protocols.clients.codec import Format
from semcast.protocols.clients.outlet import Outlet
from semcast.protocols.clients.permissions import Identity
from semcast.protocols.lightweight.events import ClientEvent, GroupView, LeftGroup, Placed
from semcast.protocols.lightweight.ids import ViewId
from semcast.protocols.lightweight.sessions import Session
from semcast.protocols.lightweight.settings import LightweightSettings

OVERHEAD = 256
"""What a request costs besides the bytes of its frame."""
_SHARE = 4
"""Credit is given back once this part of it is due."""


class Link:
    """A connection. Whoever has the socket takes what is in `out`, and says how much waits there.

    Args:
        since: when it was made.
        form: how frames are written.
        identity: who it is, where the connection tells.
    """

    def __init__(
        self, since: Nanos, form: Format = Format.MSGPACK, identity: Identity | None = None, place: str = ""
    ) -> None:
        self.since = since
        self.form = form
        self.identity = identity
        self.place = place
        """Where it comes from, for people."""
        self.out: list[bytes] = []
        """Bodies of frames to send."""
        self.backlog = 0
        """Bytes that the socket did not take yet."""
        self.over = ""
        """Why it ends once `out` is sent, if it does."""
        self.guest: Guest | None = None


class Guest:
    """A client with a session."""

    def __init__(
        self,
        session: Session,
        identity: Identity,
        outlet: Outlet,
        token: str,
        settings: LightweightSettings,
    ) -> None:
        self.session = session
        self.identity = identity
        self.outlet = outlet
        self.token = token
        """With it the session is taken up again."""
        self.link: Link | None = None
        self.until: Nanos = 0
        """Where the connection broke: how long the session waits."""
        self.views: dict[str, ViewId] = {}
        """The views of `vs` groups that it was told of and has not said `ready` about."""
        self.blocked: set[str] = set()
        """`vs` groups where it said so, and was told of no view since."""
        self._leaving: Counter[str] = Counter()  # how often it asked to leave and was not told so yet
        self._messages, self._bytes = settings.send_messages, settings.send_bytes
        self._all = settings.send_messages, settings.send_bytes
        self._placed = 0  # what it was told of its requests
        self._refused: deque[tuple[int, int]] = deque()  # first and last of what comes behind

    # Credit

    def spend(self, count: int, size: int) -> bool:
        """A request of so many messages and bytes; returns whether it had the credit."""
        if count > self._messages or self._bytes <= 0:
            return False
        self._messages -= count
        self._bytes -= size + OVERHEAD
        return True

    @property
    def spent(self) -> bool:
        """Whether credit is still to be given back."""
        return (self._messages, self._bytes) != self._all

    def give_back(self) -> tuple[int, int] | None:
        """Credit for what the ring has taken, if it is worth a frame."""
        all_messages, all_bytes = self._all
        waiting, waiting_bytes = self.session.unsent
        messages = all_messages - waiting - self._messages
        size = max(0, all_bytes - waiting_bytes - self._bytes)
        if not messages and not size:
            return None
        if waiting and messages < all_messages // _SHARE and size < all_bytes // _SHARE:
            return None
        self._messages += messages
        self._bytes += size
        return messages, size

    def restart_credit(self) -> None:
        """On another connection it begins with all of it, except for what waits for the ring."""
        waiting, waiting_bytes = self.session.unsent
        self._messages, self._bytes = self._all[0] - waiting, self._all[1] - waiting_bytes

    @property
    def credit(self) -> tuple[int, int]:
        """Messages and bytes that it may send."""
        return self._messages, self._bytes

    # Places

    def refuse(self, first: int, last: int) -> None:
        """Nothing comes of these requests: they need no place."""
        self._refused.append((first, last))
        if self._placed >= first - 1:
            self.session.put(Placed(last))

    def placed(self, event: Placed) -> Placed:
        """What it is told of its requests, with those that were refused."""
        upto = max(event.upto, self._placed)
        while self._refused and self._refused[0][0] <= upto + 1:
            upto = max(upto, self._refused.popleft()[1])
        self._placed = upto
        return event if upto == event.upto else Placed(upto)

    # Views of `vs` groups

    def told(self, event: ClientEvent) -> None:
        """An event leaves for it."""
        if type(event) is GroupView:
            if event.vs and event.group not in self._leaving:
                self.views[event.group] = event.id
                self.blocked.discard(event.group)
        elif type(event) is LeftGroup and event.group in self._leaving:
            self._leaving -= Counter((event.group,))

    def leaves(self, group: str) -> None:
        """It has asked to leave: what it sends from now on is ordered behind that, and comes from outside.

        The views that it is told of until it hears that it has left are over for it, also if it has asked to
        join again meanwhile.
        """
        self.views.pop(group, None)
        self.blocked.discard(group)
        self._leaving[group] += 1

    def ready(self, group: str, view: ViewId) -> None:
        """It sends nothing more in a view."""
        if self.views.get(group) == view:
            del self.views[group]
            self.blocked.add(group)
