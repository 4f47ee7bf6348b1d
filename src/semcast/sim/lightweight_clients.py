"""Simulated daemons of lightweight groups, with clients that have a will of their own.

A client is a name on one host. Whenever it is to do something and is not connected, it connects, as another
session. Most read at once; some take their time, and some never answer at the end of a view.
"""

from collections.abc import Sequence
from random import Random

from semcast.core.annotations import Annotation
from semcast.core.events import Unblocked
from semcast.core.ids import MICROSECOND, MILLISECOND, MemberId, Nanos
from semcast.core.outbox import Outbox, Timer
from semcast.core.stack import Stack
from semcast.protocols.clients.host import Host
from semcast.protocols.lightweight import LightweightSettings, Machine, Refused, Session
from semcast.protocols.lightweight.events import Block, ClientEvent, GroupView, LeftGroup
from semcast.protocols.lightweight.ids import ViewId
from semcast.protocols.lightweight.stack import Below
from semcast.sim.faults import Deed
from semcast.sim.hosted_calls import CallBook
from semcast.sim.hosted_clients import Hosting, Hosts

BLOCKING = "v"
"""Groups whose names begin with this one have sending view delivery."""
SHARED = "e0"
"""The group of the workloads of hosts."""
_PACE: Nanos = 7 * MILLISECOND
"""How often slow clients look whether there is something for them."""


class ClientTimer(Timer):
    """When slow clients read, and when programs have worked out an answer, or have waited long enough."""

    READ = "read"
    CALLS = "calls"


class Client:
    """One program. What it does follows from what it has read, not from what its daemon knows."""

    def __init__(self, session: Session, former: MemberId | None, *, slow: bool, mute: bool) -> None:
        self.session = session
        self.former = former
        """The session before this one."""
        self.slow = slow
        self.mute = mute
        self.views: dict[str, ViewId] = {}
        self.blocked: set[str] = set()
        self.leaving: set[str] = set()

    def hear(self, event: ClientEvent) -> tuple[str, ViewId] | None:
        """Take note of an event; returns what to say `ready` about."""
        if isinstance(event, GroupView):
            if event.vs:
                self.views[event.group] = event.id
            self.blocked.discard(event.group)
        elif isinstance(event, LeftGroup):
            self.views.pop(event.group, None)
            self.blocked.discard(event.group)
            self.leaving.discard(event.group)
        elif isinstance(event, Block) and not self.mute:
            self.blocked.add(event.group)
            return event.group, event.view
        return None


class Daemon(Hosts):
    """A daemon and its clients, which act whenever their host has a turn."""

    def __init__(
        self,
        me: MemberId,
        settings: LightweightSettings,
        below: Below,
        rng: Random,
        out: Outbox,
        *,
        machine: type[Machine] = Machine,
        works: bool = False,
        host: type[Host] = Host,
        book: CallBook | None = None,
    ) -> None:
        self._works = works  # hosts have workloads: somebody sends, and all are given it
        self.clients: dict[str, Client] = {}
        self._reads = False  # a timer is set
        self._refused_to: Session | None = None  # who waits for credit to send the workload of the host
        self._host_kind = host
        self.book = book
        """Where all programs of the run write down their calls, if they call."""
        super().__init__(me, settings, below, rng, out, machine=machine)
        self.hosting = Hosting(self.machine, out, host, book)
        self._calls_at: Nanos | None = None  # when programs have something to do about calls

    def start(self, now: Nanos) -> None:
        """Begin; with a client for the workload of the host, if there are any."""
        super().start(now)
        if self._works:
            self._app(now)
            self.settle(now)

    def settle(self, now: Nanos) -> None:
        """Clients read what they are told, and answer, until nothing more comes of it."""
        super().settle(now)
        self.hosting.host.tend(now)
        calls_at = self.hosting.tend_calls()
        while self._let_read(slow=False) or self.hosting.pump():
            super().settle(now)
            calls_at = self.hosting.tend_calls()
        if calls_at is not None and calls_at != self._calls_at:
            self._calls_at = calls_at
            self.out.set_timer(ClientTimer.CALLS, calls_at)
        if self._refused_to is not None and self._refused_to.credit > 0:
            self._refused_to = None
            self.out.deliver(Unblocked())
        waits = any(client.slow and len(client.session) for client in self.clients.values())
        waits = waits or self.hosting.waits
        if waits and not self._reads:
            self._reads = True
            self.out.set_timer(ClientTimer.READ, now + _PACE)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Slow clients read one thing each."""
        if timer is ClientTimer.READ:
            self._reads = False
            self._let_read(slow=True)
            self.hosting.read_slowly()
            self.settle(now)
        elif timer is ClientTimer.CALLS:
            self._calls_at = None
            self.settle(now)
        else:
            super().on_timer(now, timer)

    def _let_read(self, *, slow: bool) -> bool:
        read = False
        for client in self.clients.values():
            if client.slow != slow or not len(client.session):
                continue
            read = True
            for event in client.session.take(1 if slow else None):
                answer = client.hear(event)
                if answer is not None:
                    self.machine.requests.ready(client.session, *answer)
        return read

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,  # noqa: ARG002 (nothing is purged here)
        *,
        safe: bool = False,
    ) -> int:
        """The workload of the host is that of one more client, in one group with those of the others."""
        session, requests = self._app(now), self.machine.requests
        count = min(len(payloads), session.credit)
        if count:
            requests.cast(session, (SHARED,), payloads[:count], safe=safe)
        self._refused_to = session if count < len(payloads) else None
        self.settle(now)
        return count

    def _app(self, now: Nanos) -> Session:
        session = self.client(now, "app", slow=False, mute=False).session
        if not session.asked:
            self.machine.requests.join(session, SHARED)
        return session

    def client(self, now: Nanos, name: str, *, slow: bool, mute: bool) -> Client:
        """The client of this name, which connects if it has to."""
        found = self.clients.get(name)
        if found is None or found.session.closed:
            former = None if found is None else found.session.client
            number = max(now // MICROSECOND + 1, (former.incarnation if former else 0) + 1)
            session = self.machine.requests.connect(name, number)
            found = self.clients[name] = Client(session, former, slow=slow, mute=mute)
        return found


def daemon_of(stacks: Sequence[Stack], member: int) -> Daemon:
    """The daemon on a host."""
    stack = stacks[member]
    assert isinstance(stack, Daemon)
    return stack


class Act(Deed, frozen=True, tag="act", kw_only=True):
    """A client does something: join, leave, cast, private or vanish."""

    client: str
    what: str
    groups: tuple[str, ...] = ()
    run: int = 1
    safe: bool = False
    to: tuple[int, str] | None = None
    """Whom a private message is for: a host, and a client there."""
    old: bool = False
    """Whether it is for the session before the present one, if there was one."""
    slow: bool = False
    mute: bool = False

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:
        """If its daemon is there, and lets it."""
        daemon = daemon_of(stacks, self.member)
        if daemon.inner.phase() == "left":
            return
        try:
            self._do(daemon, daemon.client(now, self.client, slow=self.slow, mute=self.mute), stacks)
        except Refused:
            return  # it has no credit, or asked for what it has
        finally:
            daemon.settle(now)

    def _do(self, daemon: Daemon, client: Client, stacks: Sequence[Stack]) -> None:
        requests, session = daemon.machine.requests, client.session
        if self.what == "vanish":
            requests.disconnect(session, "it vanished")
        elif self.what == "join":
            requests.join(session, self.groups[0], vs=self.groups[0].startswith(BLOCKING))
        elif self.what == "leave":
            requests.leave(session, self.groups[0])
            client.leaving.add(self.groups[0])
        elif self.what == "cast":
            view = client.views.get(self.groups[0]) if len(self.groups) == 1 else None
            if not client.blocked.union(client.leaving).intersection(self.groups):
                requests.cast(session, self.groups, [b"m"] * self.run, view=view, safe=self.safe)
        else:
            to = self._addressee(stacks)
            if to is not None:
                requests.private(session, to, b"p")

    def _addressee(self, stacks: Sequence[Stack]) -> MemberId | None:
        assert self.to is not None
        client = daemon_of(stacks, self.to[0]).clients.get(self.to[1])
        if client is None:
            return None
        return client.former if self.old and client.former is not None else client.session.client
