"""What a member does while its ring works, whatever configuration it is in (Amir 1995, 5.2.1)."""

from collections.abc import Sequence
from typing import ClassVar

from semcast.core.annotations import Annotation
from semcast.core.events import Delivery, TransitionalView, ViewChange
from semcast.core.heldback import HeldBack
from semcast.core.ids import MemberId, Nanos
from semcast.core.views import View
from semcast.protocols.ring.frames import ConfId, Packet
from semcast.protocols.ring.leaving import Leaving
from semcast.protocols.ring.member import Member
from semcast.protocols.ring.ordering import RingOrder
from semcast.protocols.ring.outlet import Outlet
from semcast.protocols.ring.passing import TokenPassing
from semcast.protocols.ring.rotation import Rotation
from semcast.protocols.ring.sending import Sending


class Operation:
    """It orders, sends, delivers and leaves; it knows nothing of how configurations come about.

    Whoever forms them reads `order` (the configuration, and who has which packet of it), `alive`, `overfull`
    (the application has too much to take for yet another configuration) and `stops`, and calls

    - `give_up`: the token of this configuration will not come again;
    - `took_leave`: a member said that it leaves, so the token will not come again either;
    - `drop_token`: nothing was heard for too long, the token is lost wherever it was;
    - `resume`: nobody came to form a larger ring, and this one goes on;
    - `freeze`: a new ring is being formed; nothing is delivered as long as that lasts (`Standing.frozen`);
    - `conf_id`, `order_of`: a name for a configuration to come, and its order;
    - `install`: the new configuration, with what was recovered of the old one; its first token then goes to
      the new `rotation`.

    In the other direction it says one thing: that this member is gone (`State.LEFT`).
    """

    order_kind: ClassVar[type[RingOrder]] = RingOrder
    rotation_kind: ClassVar[type[Rotation]] = Rotation
    outlet_kind: ClassVar[type[Outlet]] = Outlet
    sending_kind: ClassVar[type[Sending]] = Sending
    leaving_kind: ClassVar[type[Leaving]] = Leaving

    def __init__(self, member: Member, passing: TokenPassing) -> None:
        self._member = member
        self._passing = passing
        self.left: set[MemberId] = set()
        """Members of this configuration that said that they leave."""
        self.leaving = self.leaving_kind(member)
        self.sending = self.sending_kind(member)
        self.outlet = self.outlet_kind(member, self.leaving)
        self.rotation = self._rotation_of(self.order_of(self.conf_id(1), (member.me,)))

    # What it is made of

    def conf_id(self, number: int) -> ConfId:
        """A name for a configuration that nobody ever gave to another one."""
        return ConfId(number, self._member.me)

    def order_of(self, conf: ConfId, members: tuple[MemberId, ...]) -> RingOrder:
        """The order of a configuration that begins."""
        return self.order_kind(conf, members, self._member.me, self._member.settings.window_of(len(members)))

    def _rotation_of(self, order: RingOrder) -> Rotation:
        return self.rotation_kind(self._member, order, self._passing, self.sending, self.outlet, self.leaving)

    # Where it stands

    @property
    def order(self) -> RingOrder:
        """The current configuration: its members, and who has which packet."""
        return self.rotation.order

    @property
    def alive(self) -> bool:
        """Whether the token of this configuration still goes round, as far as this member knows."""
        return self.rotation.alive

    @property
    def overfull(self) -> bool:
        """Whether the application has yet to take what the last change of configuration left it."""
        return self.outlet.backlog.overfull

    @property
    def overfull_for_long(self) -> bool:
        """Whether that is so, and there is no telling when it ends: the program has stopped reading."""
        members = self.order.members
        return len(members) > 1 and self._member.reader.stopped and self.overfull

    def stops(self, now: Nanos) -> bool:
        """Whether nobody should send anything new before the application has taken something."""
        return self.outlet.stops(now)

    def behind(self) -> bool:
        """Whether nothing can be sent before the application was given the current configuration."""
        outlet = self.outlet
        return not outlet.seen and outlet.deliverable() and not self.leaving.gone

    def held_back(self) -> HeldBack | None:
        """Who or what keeps this member from sending what it has."""
        if self.leaving.gone or not self.sending.queue:
            return None
        if not self.rotation.works():
            return HeldBack(None, "the configuration is changing")
        return self.rotation.held_back()

    def view(self) -> View:
        """The current configuration. The application may not have taken all that comes before it."""
        conf, members = self.order.conf, self.order.members
        return View(conf.number, members, representative=conf.representative)

    def buffered(self) -> int:
        """Messages in the queues, and packets kept for others."""
        return len(self.outlet) + self.sending.queue.messages + len(self.order.store)

    # Inputs of the application

    def start(self) -> None:
        """The first configuration is one of this member alone."""
        self.outlet.queue.change(ViewChange(self.view(), joined=(self._member.me,)))

    def multicast(
        self, now: Nanos, payloads: Sequence[bytes], annotations: Sequence[Annotation] | None, *, safe: bool
    ) -> int:
        """Queue for the next visit of the token what there is room for."""
        if self.leaving.gone or self.leaving.cause is not None:
            raise ValueError(f"{self._member.me} has left the group")
        accepted = self.sending.add(payloads, annotations, safe=safe)
        if accepted:
            self.rotation.want_token(now)
        return accepted

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        """Hand over messages and configuration changes, in order."""
        rotation = self.rotation
        taken = self.outlet.deliver(now, most, rotation.order)
        if self.sending.queue or rotation.may_lift_stop():
            rotation.want_token(now)
        return taken

    def on_reader(self, now: Nanos) -> None:
        """The program waits, or waits no more: that may make room, or give the right to send."""
        if self.leaving.gone:
            return
        rotation = self.rotation
        self.outlet.on_reader(now, rotation.order)
        if self.sending.queue:
            rotation.want_token(now)

    def leave(self, now: Nanos, cause: str) -> None:
        """Leave once everybody has what was sent here, or soon after."""
        if self.leaving.gone or self.leaving.cause is not None:
            return
        self.leaving.ask(now, cause)
        self.rotation.want_token(now)
        self.rotation.leave_if_done()

    # From whoever forms configurations

    def give_up(self) -> None:
        """The token of this configuration will not come again."""
        self.rotation.alive = False

    def took_leave(self, member: MemberId) -> None:
        """A member of this configuration said that it leaves."""
        self.left.add(member)
        self.give_up()

    def drop_token(self) -> None:
        """The token is lost, wherever it was."""
        self._passing.forget()
        self.rotation.held = None

    def resume(self, now: Nanos) -> None:
        """Nobody came: go on."""
        self.rotation.want_token(now)

    def freeze(self) -> None:
        """A new ring is being formed: what is left of this configuration is decided together."""
        self.give_up()
        self.rotation.held = None

    def install(
        self,
        now: Nanos,
        order: RingOrder,
        together: set[MemberId],
        regular: Sequence[Packet],
        transitional: Sequence[Packet],
    ) -> None:
        """The five steps of 5.2.3, as one atomic action: with those who come `together` from the old ring."""
        old, ending, outlet = self.order, self.view(), self.outlet
        outlet.force(old.members, regular)
        outlet.queue.change(TransitionalView(_transitional(old, together)))
        outlet.force(old.members, transitional)
        self._member.enough = self._member.enough or len(order.members) >= self._member.settings.minimum
        self.rotation = self._rotation_of(order)
        outlet.begin(self._view_change(old.members))
        whole = together.union(self.left).issuperset(old.members)
        last = [*regular, *transitional] if whole else regular
        self.sending.answers.end(old, last, ending, self.view(), together=whole)
        self.left.clear()
        self.sending.begin()
        outlet.pump(now, order)

    def _view_change(self, before: tuple[MemberId, ...]) -> ViewChange:
        members = self.order.members
        gone = [member for member in before if member not in members]
        return ViewChange(
            self.view(),
            joined=tuple(member for member in members if member not in before),
            left=tuple(member for member in gone if member in self.left),
            failed=tuple(member for member in gone if member not in self.left),
        )


def _transitional(order: RingOrder, together: set[MemberId]) -> View:
    members = tuple(member for member in order.members if member in together)
    return View(order.conf.number, members, representative=order.conf.representative)
