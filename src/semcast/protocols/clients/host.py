"""The daemon's side of the client protocol: who is let in, what each asks for, and what each is told.

A program cannot harm the others: what it may send is bounded by its credit, what waits for it by the bounds
of its queue, and a frame that makes no sense ends its connection.
"""

from collections.abc import Callable, Sequence
from hmac import compare_digest
from typing import ClassVar

import msgspec

from semcast.core.ids import SECOND, Nanos
from semcast.protocols.clients.codec import Malformed, decode_request, encode
from semcast.protocols.clients.frames import (
    MAX_TEXT,
    VERSION,
    Answer,
    Ask,
    Bye,
    Cast,
    Credits,
    Done,
    Error,
    Hello,
    Join,
    Leave,
    Ping,
    Private,
    Ready,
    Reply,
    Request,
    Resume,
    Taken,
    Welcome,
)
from semcast.protocols.clients.guests import Guest, Link
from semcast.protocols.clients.outlet import Outlet
from semcast.protocols.clients.permissions import CALLS, Identity, Permissions, is_call
from semcast.protocols.clients.telling import Encoder
from semcast.protocols.lightweight import Machine, Refused, Session
from semcast.protocols.lightweight.events import Placed
from semcast.protocols.lightweight.messages import Client

_POLICIES = ("purge", "leave", "block")


class HostSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of the daemon's side of connections."""

    domain: str = ""
    window_bytes: int = 4 << 20
    """Bytes of messages that are on their way to a client and not taken."""
    backlog_bytes: int = 1 << 18
    """Bytes for a client that its socket did not take yet; what comes after them can still be purged."""
    hello_timeout: Nanos = 5 * SECOND
    """How long a connection may take until it says who it is."""
    grace: Nanos = 5 * SECOND
    """How long the session of a connection that broke is kept."""
    allow_block: bool = False
    """Whether clients may ask that everybody waits for them."""


class Host:
    """All connections of one daemon.

    Args:
        machine: of the daemon; it is looked up anew each time, and its requests are made here.
        settings: of connections.
        permissions: who may do what.
        authenticate: who has this token, if anybody does.
        secret: makes a new one.
        wall: the time of day in milliseconds, for numbers of sessions.
        about: answers what administrators ask, as JSON.
    """

    outlet_kind: ClassVar[type[Outlet]] = Outlet
    guest_kind: ClassVar[type[Guest]] = Guest

    def __init__(
        self,
        machine: Machine,
        settings: HostSettings,
        *,
        permissions: Permissions,
        authenticate: Callable[[str], Identity | None],
        secret: Callable[[], str],
        wall: Callable[[], int],
        about: Callable[[str, str], str],
    ) -> None:
        self.machine = machine
        self.settings = settings
        self.permissions = permissions
        self.guests: dict[Client, Guest] = {}
        self.refused = 0
        """Requests that were refused."""
        self._authenticate = authenticate
        self._secret = secret
        self._wall = wall
        self._about = about
        self._waiting: dict[Link, None] = {}  # for their hello
        self._news: dict[Client, Session] = {}  # who is told something
        self._spent: dict[Client, Guest] = {}  # who is given credit back
        self._away: dict[Client, Guest] = {}  # whose connection broke
        self._made_up = 0
        self._encoder = Encoder()

    # Connections

    def opened(self, link: Link) -> None:
        """Somebody connected."""
        self._waiting[link] = None

    def heard(self, link: Link, body: bytes) -> None:
        """A frame came."""
        if link.over:
            return
        try:
            request = decode_request(body, link.form)
        except Malformed as error:
            self.fail(link, "malformed", str(error))
            return
        guest = link.guest
        if guest is None:
            if isinstance(request, Hello):
                self._on_hello(link, request)
            elif isinstance(request, Ask) and link.identity is not None:
                self._answer(link, link.identity, request)
            else:
                self.fail(link, "hello", "the first frame is a hello")
        elif guest.session.closed:
            return  # it will hear that
        elif isinstance(request, Hello):
            self.fail(link, "hello", "there was a hello before")
        else:
            _HANDLERS[type(request)](self, guest, request, len(body))

    def broken(self, now: Nanos, link: Link, cause: str) -> None:
        """The connection is no more."""
        self._waiting.pop(link, None)
        guest, link.guest = link.guest, None
        if guest is None or guest.link is not link:
            return
        guest.link = None
        if guest.session.closed:
            self._forget(guest)
        elif guest.identity.resumes and not link.over:
            guest.until = now + self.settings.grace
            self._away[guest.session.client] = guest
        else:
            self._end(guest, link.over or cause)

    def tend(self, now: Nanos) -> Nanos | None:
        """End what has taken too long; returns when to look again."""
        dues: list[Nanos] = []
        for link in list(self._waiting):
            due = link.since + self.settings.hello_timeout
            if due <= now:
                self.fail(link, "hello", "no hello came in time")
                del self._waiting[link]
            else:
                dues.append(due)
                break  # they came in this order
        for guest in list(self._away.values()):
            if guest.until <= now:
                self._end(guest, "its connection broke")
            else:
                dues.append(guest.until)
        return min(dues, default=None)

    def drop(self, client: Client, cause: str) -> bool:
        """Put a client out; returns whether it was there."""
        guest = self.guests.get(client)
        if guest is None or guest.session.closed:
            return False
        self.machine.requests.put_out(guest.session, cause)
        return True

    def _end(self, guest: Guest, cause: str) -> None:
        self.machine.requests.disconnect(guest.session, cause)
        self._forget(guest)

    def _forget(self, guest: Guest) -> None:
        client = guest.session.client
        for table in (self.guests, self._news, self._spent, self._away):
            table.pop(client, None)

    def fail(self, link: Link, code: str, text: str) -> None:
        """A connection that does not keep to the protocol is told so, and ends."""
        self._say(link, Error(None, code, text[:MAX_TEXT]))
        link.over = text[:MAX_TEXT]

    def _say(self, link: Link, frame: Reply) -> None:
        link.out.append(encode(frame, link.form))

    # Hello

    def _on_hello(self, link: Link, hello: Hello) -> None:
        self._waiting.pop(link, None)
        if hello.version != VERSION:
            self.fail(link, "version", f"version {hello.version}: there is {VERSION}")
            return
        identity = link.identity or self._authenticate(hello.token)
        if identity is None:
            self.fail(link, "denied", "no such token")
            return
        if hello.resume is not None:
            self._resume(link, identity, hello.resume)
        elif hello.policy not in _POLICIES or (hello.policy == "block" and not self.settings.allow_block):
            self.fail(link, "policy", f"policy {hello.policy!r}: this daemon allows {self._policies()}")
        else:
            self._welcome(link, identity, hello)

    def _policies(self) -> str:
        return ", ".join(each for each in _POLICIES if each != "block" or self.settings.allow_block)

    def _welcome(self, link: Link, identity: Identity, hello: Hello) -> None:
        requests = self.machine.requests
        try:
            name = hello.name or self._make_up()
            session = requests.connect(name, requests.free_number(name, self._wall()))
        except Refused as error:
            self.fail(link, "name", str(error))
            return
        session.news = self._news
        session.patient = hello.policy != "leave"
        session.holds = hello.policy == "block"
        token = self._secret() if identity.resumes else ""
        outlet = self.outlet_kind(session, hello.window, self.settings.window_bytes, keeps=identity.resumes)
        guest = self.guest_kind(session, identity, outlet, token, self.machine.settings)
        self.guests[session.client] = guest
        self._attach(guest, link)

    def _make_up(self) -> str:
        self._made_up += 1
        return f"client-{self._made_up}-{self._wall() % 1_000_000}"

    def _attach(self, guest: Guest, link: Link) -> None:
        guest.link, link.guest = link, guest
        machine, session = self.machine, guest.session
        self._say(
            link,
            Welcome(
                VERSION,
                session.client,
                machine.me,
                self.settings.domain,
                tuple(sorted(machine.members)),
                *guest.credit,
                machine.settings.run_bytes,
                guest.token,
                session.last,
                self.settings.grace / SECOND if guest.token else 0.0,
            ),
        )

    def _resume(self, link: Link, identity: Identity, resume: Resume) -> None:
        guest = self._of_token(identity, resume.token)
        events = None if guest is None else guest.outlet.again(resume.told)
        if guest is None or events is None:
            self.fail(link, "session", "there is no such session: it is over, or was never there")
            return
        self._away.pop(guest.session.client, None)
        if guest.link is not None:  # the old connection is as good as broken
            guest.link.over, guest.link.guest = "the session went on elsewhere", None
        guest.restart_credit()
        self._attach(guest, link)
        for event in events:
            link.out.append(self._encoder.body(event, link.form))
        self._news[guest.session.client] = guest.session

    def _of_token(self, identity: Identity, token: str) -> Guest | None:
        """Whoever has the secret and is who it was: a session is never taken over by a stranger."""
        found = [guest for guest in self.guests.values() if token and same_secret(guest.token, token)]
        return found[0] if found and found[0].identity == identity else None

    # Requests

    def _refuse(self, guest: Guest, seq: int, count: int, code: str, text: str) -> None:
        """It has a number, and nothing comes of it."""
        self.refused += 1
        guest.session.last = max(guest.session.last, seq + count - 1)
        if guest.link is not None:
            self._say(guest.link, Error(seq, code, text[:MAX_TEXT]))
        guest.refuse(seq, seq + count - 1)

    def _numbered(self, guest: Guest, seq: int, count: int, size: int) -> bool:
        """Whether a request is new, has the next number, and its client has credit for it."""
        session = guest.session
        assert guest.link is not None
        if seq + count - 1 <= session.last:
            return False  # it came before the connection broke
        if seq != session.last + 1:
            self.fail(guest.link, "number", f"request {seq}: the next is {session.last + 1}")
            return False
        if not guest.spend(count, size):
            self.fail(guest.link, "credit", f"{count} messages, and there is no credit for them")
            return False
        self._spent[session.client] = guest
        return True

    def _may(self, guest: Guest, action: str, groups: Sequence[str]) -> str:
        """What it may not do, if there is something."""
        for group in groups:
            if not self.permissions.allow(guest.identity, action, group):
                what = "send private messages" if action == "private" else f"{action} {group!r}"
                return f"{guest.identity} may not {what}"
        return ""

    def _on_join(self, guest: Guest, join: Join, size: int) -> None:
        if not self._numbered(guest, join.seq, 1, size):
            return
        if denied := self._may(guest, "join", (join.group,)):
            self._refuse(guest, join.seq, 1, "denied", denied)
        elif join.group == CALLS:  # the calls of all groups, also of those it may not be in
            self._refuse(guest, join.seq, 1, "denied", "nobody is in the group of calls")
        elif join.flavour not in ("evs", "vs"):
            self._refuse(guest, join.seq, 1, "flavour", f"flavour {join.flavour!r}: there are evs and vs")
        else:
            requests, vs = self.machine.requests, join.flavour == "vs"
            self._do(guest, join.seq, 1, lambda: requests.join(guest.session, join.group, vs=vs))

    def _on_leave(self, guest: Guest, leave: Leave, size: int) -> None:
        if self._numbered(guest, leave.seq, 1, size):
            requests = self.machine.requests
            if self._do(guest, leave.seq, 1, lambda: requests.leave(guest.session, leave.group)):
                guest.leaves(leave.group)

    def _on_cast(self, guest: Guest, cast: Cast, size: int) -> None:
        count, groups = len(cast.payloads), cast.groups
        if not self._numbered(guest, cast.seq, count, size):
            return
        # Whoever may send to a group may call it, and answer.
        if denied := self._may(guest, "send", groups[:1] if is_call(groups) else groups):
            self._refuse(guest, cast.seq, count, "denied", denied)
        elif cast.level not in ("agreed", "safe"):
            self._refuse(guest, cast.seq, count, "level", f"level {cast.level!r}: there are agreed and safe")
        elif guest.blocked and not guest.blocked.isdisjoint(groups):
            self._refuse(guest, cast.seq, count, "blocked", "wait for the next view: this one has ended")
        else:
            view = guest.views.get(groups[0]) if len(groups) == 1 else None
            requests, safe = self.machine.requests, cast.level == "safe"
            self._do(
                guest,
                cast.seq,
                count,
                lambda: requests.cast(
                    guest.session, groups, cast.payloads, view=view, safe=safe, items=cast.items, at_most=size
                ),
            )

    def _on_private(self, guest: Guest, private: Private, size: int) -> None:
        if not self._numbered(guest, private.seq, 1, size):
            return
        if denied := self._may(guest, "private", ("",)):
            self._refuse(guest, private.seq, 1, "denied", denied)
            return
        requests = self.machine.requests
        self._do(guest, private.seq, 1, lambda: requests.private(guest.session, private.to, private.payload))

    def _do(self, guest: Guest, seq: int, count: int, request: Callable[[], int]) -> bool:
        """Make a request; returns whether it was taken."""
        try:
            request()
        except Refused as error:
            self._refuse(guest, seq, count, "refused", str(error))
            return False
        return True

    def _on_taken(self, guest: Guest, taken: Taken, _size: int) -> None:
        assert guest.link is not None
        if not guest.outlet.took(taken.told):
            self.fail(guest.link, "taken", f"{taken.told} taken, {guest.outlet.told} were told")
            return
        self._news[guest.session.client] = guest.session

    def _on_ready(self, guest: Guest, ready: Ready, _size: int) -> None:
        guest.ready(ready.group, ready.view)
        self.machine.requests.ready(guest.session, ready.group, ready.view)

    def _on_ping(self, guest: Guest, ping: Ping, _size: int) -> None:
        assert guest.link is not None
        self._say(guest.link, Done(ping.request))

    def _on_bye(self, guest: Guest, _bye: Bye, _size: int) -> None:
        assert guest.link is not None
        guest.link.over = "it said bye"
        guest.link.guest = None
        self._end(guest, "it said bye")

    def _on_ask(self, guest: Guest, ask: Ask, _size: int) -> None:
        assert guest.link is not None
        self._answer(guest.link, guest.identity, ask)

    def _answer(self, link: Link, identity: Identity, ask: Ask) -> None:
        """About the daemon; one need not be a client for that."""
        if not identity.admin:
            self._say(link, Error(ask.request, "denied", f"{identity} is no administrator"))
            return
        try:
            self._say(link, Answer(ask.request, self._about(ask.what, ask.about)))
        except ValueError as error:
            self._say(link, Error(ask.request, "refused", str(error)[:MAX_TEXT]))

    # To clients

    def writable(self, link: Link) -> None:
        """Its socket has taken what waited."""
        if link.guest is not None:
            self._news[link.guest.session.client] = link.guest.session

    def flush(self) -> list[Link]:
        """Tell everybody what there is to tell; returns the connections with something to send."""
        stirred: dict[Link, None] = {}
        news, spent = self._news, self._spent
        for client in list(spent):
            self._give_back(spent[client], stirred)
        for client in list(news):
            guest = self.guests.get(client)
            del news[client]
            if guest is not None and guest.link is not None:
                self._tell(guest, guest.link)
                stirred[guest.link] = None
            elif guest is not None and guest.session.closed:
                self._forget(guest)
        self._encoder.forget()
        return list(stirred)

    def _give_back(self, guest: Guest, stirred: dict[Link, None]) -> None:
        back = guest.give_back()
        if back is not None and guest.link is not None:
            self._say(guest.link, Credits(*back))
            stirred[guest.link] = None
        if not guest.spent:
            del self._spent[guest.session.client]

    def _tell(self, guest: Guest, link: Link) -> None:
        out, body, form = link.out, self._encoder.body, link.form
        room = self.settings.backlog_bytes - link.backlog
        while room > 0:
            events = guest.outlet.next()
            if not events:
                break
            for each in events:
                guest.told(each)
                event = guest.placed(each) if type(each) is Placed else each
                written = body(event, form)
                room -= len(written)
                out.append(written)
        if guest.session.closed and not len(guest.session):
            link.over = link.over or guest.session.closed
            link.guest = None
            self._forget(guest)


def same_secret(one: str, other: str) -> bool:
    """Whether they are equal, without telling by the time it takes how much of it is."""
    return compare_digest(one.encode(), other.encode())


_HANDLERS: "dict[type[Request], Callable[..., None]]" = {
    Join: Host._on_join,
    Leave: Host._on_leave,
    Cast: Host._on_cast,
    Private: Host._on_private,
    Taken: Host._on_taken,
    Ready: Host._on_ready,
    Ping: Host._on_ping,
    Bye: Host._on_bye,
    Ask: Host._on_ask,
}
