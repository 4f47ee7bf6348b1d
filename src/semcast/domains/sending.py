"""How a program sends in its domain: to one group or several, to one program, from inside and outside."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from semcast.core.ids import MemberId, MessageId
from semcast.domains.checks import check_groups, check_items, check_order, portions
from semcast.domains.desk import Desk
from semcast.domains.light import LightGroup, Settled
from semcast.domains.link import CastRequest, FlushRequest, PrivateRequest
from semcast.domains.waiting import Waiting
from semcast.group.errors import ConfigurationError, GroupClosedError, GroupError, SendTimeoutError


class SendingSide(ABC):
    """The part of a `Domain` that sends."""

    name: str
    _desk: Desk
    _waiting: Waiting

    @property
    @abstractmethod
    def member(self) -> MemberId:
        """Who this program is, in all groups; another one after each `Rejoining`."""

    @abstractmethod
    def _check_open(self) -> None:
        """Raise where the domain is not open."""

    async def send(
        self,
        group: str,
        payload: bytes,
        *,
        item: str | None = None,
        order: str = "agreed",
        timeout: float | None = None,
        confirm: Settled | None = None,
        to: MemberId | None = None,
    ) -> MessageId:
        """Multicast one message to a group, whether this program is in it or not.

        Args:
            group: its name. If nobody is in it, the message is for nobody.
            payload: what to send.
            item: what it is about: for who is slow it replaces earlier messages of this program to the same
                groups, in the same views, about the same item.
            order: `agreed`, or `safe`: delivered only once every daemon has it. In a causal domain `agreed`
                is causal order, and `domain` gives all such messages one order, whatever their groups.
            timeout: seconds to wait for room, at most; then `SendTimeoutError`.
            confirm: wait until it has its place and every daemon that is there has it. UnconfirmedError if
                this program was put out, or closed the domain, before that was known.
            to: a client of the group, of which this program is a server: it gets the message, too.
        """
        return await self._cast(
            (group,), [payload], None if item is None else [item], order, timeout, confirm, to
        )

    async def send_many(
        self,
        group: str,
        payloads: Sequence[bytes],
        *,
        order: str = "agreed",
        timeout: float | None = None,
        confirm: Settled | None = None,
    ) -> MessageId:
        """Multicast several messages to a group; returns the id of the last.

        They are handed over in portions, so those of other tasks may come between. If waiting for room fails
        in the middle, `accepted` of the error says how many were handed over: these are sent.
        """
        return await self._cast((group,), payloads, None, order, timeout, confirm)

    async def send_items(
        self,
        group: str,
        updates: Sequence[tuple[str, bytes]],
        *,
        order: str = "agreed",
        timeout: float | None = None,
    ) -> MessageId:
        """Multicast several updates to a group, each of an item, in order; returns the id of the last."""
        items, payloads = [item for item, _ in updates], [payload for _, payload in updates]
        return await self._cast((group,), payloads, items, order, timeout, None)

    async def cast(
        self,
        groups: Sequence[str],
        payload: bytes,
        *,
        item: str | None = None,
        order: str = "agreed",
        timeout: float | None = None,
        confirm: Settled | None = None,
    ) -> MessageId:
        """Multicast one message to several groups, at one place in the order of all.

        Who is in several of them is given it once.
        """
        return await self._cast(groups, [payload], None if item is None else [item], order, timeout, confirm)

    async def send_to(self, member: MemberId, payload: bytes, *, timeout: float | None = None) -> MessageId:
        """A message to one program of the domain, at a place in the same order.

        It is for that session, not for its name. If there is none at that place, `Undeliverable` comes back.
        In a causal domain it is for a member of a group that this program is in, too, and comes after all
        that this program has sent and was given; what is sent next leaves when it has arrived.
        `Undeliverable` says there that it shares no group with this program, or failed and may not have it.
        """
        [(_, size)] = portions([payload], 1, self._terms_bytes())
        await self._room(1, size, None, timeout)
        return MessageId(self.member, self._desk.submit(PrivateRequest(member, payload)))

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until everything that this program sent has its place, and every daemon has it.

        In a causal domain: until all members have been given what this program sent or was given.
        """
        self._check_open()
        if self._desk.terms.closed:
            await self._room(1, 0, None, timeout)
            self._desk.submit(FlushRequest())
        placed = self._desk.books.placing()
        try:
            await self._waiting.until(placed.done, timeout)
        except GroupClosedError:
            if not placed.done():
                raise
        finally:
            if not placed.cancel() and not placed.cancelled():
                placed.exception()  # it is known, also if nobody waits for it any more
        placed.result()

    async def _cast(
        self,
        groups: Sequence[str],
        payloads: Sequence[bytes],
        items: Sequence[str] | None,
        order: str,
        timeout: float | None,
        confirm: Settled | None,
        to: MemberId | None = None,
    ) -> MessageId:
        names, most = check_groups(groups), self._terms_bytes()
        check_order(order, causal=self._desk.terms.closed)
        check_items(items)
        if confirm not in (None, "delivered", "safe"):
            raise ConfigurationError(f"confirm {confirm!r}: choose delivered or safe")
        if order == "domain" and items is not None:
            raise ConfigurationError("order 'domain': such a message replaces nothing, so it has no item")
        self._check_members_only(names)
        runs = list(portions(payloads, self._desk.terms.run_messages, most))
        accepted = last = 0
        seat = self._desk.groups.get(names[0]) if len(names) == 1 else None
        if seat is not None:
            seat.check_cast(items=items is not None, order=order, to=to)
        elif to is not None:
            raise ConfigurationError(f"to={to}: only servers of a client-server group send to one client")
        for run, size in runs:
            try:
                await self._room(len(run), size, seat, timeout)
            except GroupError as error:
                error.accepted = accepted
                raise
            view = None if seat is None else seat.sending_view
            about = None if items is None else items[accepted : accepted + len(run)]
            request = CastRequest(names, run, view, order == "safe", about, order == "domain", size, to)
            last = self._desk.submit(request) + len(run) - 1
            accepted += len(run)
        sent = MessageId(self.member, last)
        if confirm is not None:
            await self.flush()
        return sent

    def _check_members_only(self, names: Sequence[str]) -> None:
        """In a causal domain a message is for one group, from one of its members."""
        if not self._desk.terms.closed:
            return
        if len(names) > 1:
            raise GroupError(f"{self.name}: in a causal domain a message is for one group, not {len(names)}")
        if names[0] not in self._desk.groups:
            raise GroupError(f"{self.name}: only members send to {names[0]!r}, and this program is not in it")

    def _terms_bytes(self) -> int:
        self._check_open()
        return self._desk.terms.run_bytes

    async def _room(self, count: int, size: int, seat: LightGroup | None, timeout: float | None) -> None:
        """Wait until so much may be sent: as a member of a group, if it is one."""
        await self._waiting.let_others_run(count)
        self._check_open()

        def open_for_it() -> bool:
            if seat is not None and not seat.may_send and not seat.over:
                return False
            return self._desk.room_for(count, size)

        def after_reading() -> bool:
            """Whether it can only be so once this program has read more: otherwise its daemon gives room."""
            desk = self._desk
            return desk.link.over or desk.terms.holds or (seat is not None and not seat.may_send)

        if not open_for_it():
            try:
                await self._waiting.until(open_for_it, timeout, after_reading=after_reading)
            except TimeoutError:
                raise SendTimeoutError(f"{self.name}: no room to send for {timeout} s") from None
