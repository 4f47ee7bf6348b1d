"""Who is where. Members of the view are kept apart from strangers, who may be many, and may not exist."""

from collections.abc import Iterable, Sequence

from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.net.addresses import Address

_FORGET: Nanos = 30 * SECOND
_MEET: Nanos = 3 * SECOND
"""Who was silent at the meeting point for so long may be deaf there, too; all speak once a second."""
_MOVE: Nanos = 3 * SECOND
"""A member is elsewhere only if nothing came for so long from where it was: all speak once a second."""
_STRANGERS = 256
_STRANGERS_AT_ONE_ADDRESS = 4


class AddressBook:
    """The addresses of those that were heard of. Bounded; who is silent for long is forgotten.

    Whoever was in a view of this member stays until it is silent for long. Strangers have few places, and
    each address few of these: who makes up names, without a key, pushes out others like it.
    """

    def __init__(self) -> None:
        self._known: dict[MemberId, Address] = {}
        self._heard: dict[MemberId, Nanos] = {}
        self._met: dict[MemberId, Nanos] = {}
        self._strangers: dict[Address, set[MemberId]] = {}  # by where they are
        self._strange: dict[MemberId, Address] = {}
        self._unseen: set[MemberId] = set()  # known by the word of others only
        self._kin: Sequence[MemberId] = ()
        self._targets: list[Address] | None = None
        self._kin_places: frozenset[Address] | None = None

    def heard(self, now: Nanos, member: MemberId, address: Address, *, met: bool = False) -> bool:
        """A valid datagram of `member` came from there, to the meeting point if they `met`.

        Returns whether that is where it is, as far as is known here.
        """
        known = self._known.get(member)
        if known != address:
            if known is not None and not self._may_move(now, member):
                return False
            self._place(member, address)
        self._heard[member] = now
        if met:
            self._met[member] = now
        return True

    def heard_again(self, now: Nanos, member: MemberId, address: Address) -> bool:
        """Whether this is somebody who is no stranger, from where it was: most datagrams are."""
        if self._known.get(member) != address or member in self._strange:
            return False
        self._heard[member] = now
        return True

    def introduced(self, now: Nanos, member: MemberId, address: Address) -> None:
        """Another member says that `member` is there: good until it is heard itself, or for a while."""
        if member not in self._known:
            self._place(member, address)
            self._unseen.add(member)
            self._heard[member] = now - _FORGET // 2

    def settle(self, members: Sequence[MemberId]) -> None:
        """These are in the view: strangers no longer."""
        if members is not self._kin:
            self._kin = members
            self._kin_places = None
            for member in members:
                self._meet(member)

    def is_stranger(self, member: MemberId) -> bool:
        """Whether it was in no view with this member lately."""
        return member in self._strange or member not in self._known

    def is_kin_at(self, address: Address) -> bool:
        """Whether somebody is there who is no stranger."""
        if self._kin_places is None:
            kin = (place for member, place in self._known.items() if member not in self._strange)
            self._kin_places = frozenset(kin)
        return address in self._kin_places

    def crowded(self, address: Address) -> bool:
        """Whether another stranger from there would push out the last: nobody has so many names."""
        return len(self._strangers.get(address, ())) >= _STRANGERS_AT_ONE_ADDRESS

    def all_meet(self, now: Nanos) -> bool:
        """Whether everybody who is known was heard at the meeting point lately."""
        return all(now - self._met.get(member, -_MEET) < _MEET for member in self._known)

    def contacts(self, most: int) -> list[tuple[MemberId, Address]]:
        """Those heard last, and where they are: members of the view before strangers."""
        recent = sorted(self._heard, key=lambda each: (each in self._strange, -self._heard[each]))[:most]
        return [(member, self._known[member]) for member in recent]

    def find(self, member: MemberId) -> Address | None:
        """Where a member is, if that is known."""
        return self._known.get(member)

    def targets(self) -> list[Address]:
        """Where everybody is."""
        if self._targets is None:
            self._targets = sorted(set(self._known.values()))
        return self._targets

    def places(self, members: Iterable[MemberId]) -> list[Address]:
        """Where these are, as far as is known."""
        return [self._known[member] for member in members if member in self._known]

    def forget(self, now: Nanos) -> None:
        """Drop those that have been silent for too long."""
        for member in [member for member, at in self._heard.items() if now - at > _FORGET]:
            self._drop(member)

    def _may_move(self, now: Nanos, member: MemberId) -> bool:
        return member in self._unseen or now - self._heard[member] > _MOVE

    def _place(self, member: MemberId, address: Address) -> None:
        stranger = self.is_stranger(member) and member not in self._kin
        if stranger:
            self._meet(member)
            self._make_room(address)
            self._strange[member] = address
            self._strangers.setdefault(address, set()).add(member)
        self._known[member] = address
        self._unseen.discard(member)
        self._targets = self._kin_places = None

    def _make_room(self, address: Address) -> None:
        """For one more stranger there."""
        if self.crowded(address):
            self._drop(self._oldest(self._strangers[address]))
        elif len(self._strange) >= _STRANGERS:
            self._drop(self._oldest(self._strange))

    def _oldest(self, members: Iterable[MemberId]) -> MemberId:
        return min(members, key=lambda member: (self._heard[member], member))

    def _meet(self, member: MemberId) -> None:
        """It is a stranger no more."""
        address = self._strange.pop(member, None)
        if address is not None:
            self._strangers[address].discard(member)
            if not self._strangers[address]:
                del self._strangers[address]

    def _drop(self, member: MemberId) -> None:
        self._heard.pop(member, None)
        self._met.pop(member, None)
        self._known.pop(member, None)
        self._meet(member)
        self._unseen.discard(member)
        self._targets = self._kin_places = None
