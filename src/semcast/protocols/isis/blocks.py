"""Stamps by the structure of groups (1991, 6.6): only where something may come back by another way.

A process says the times of its own groups, and of the groups that are in a block (a biconnected component of
at least three) with one of them. What was said in a group before somebody joined, those who are there need
not keep: so it is agreed on with each view, and who joins waits until its other groups are as far.
"""

from collections.abc import Iterable, Mapping, Sequence

from semcast.protocols.isis.frames import number_of
from semcast.protocols.isis.policies import AnyTicket, Full, group_of
from semcast.protocols.isis.seat import Seat
from semcast.protocols.isis.settings import IsisSettings
from semcast.protocols.isis.stamps import Audience, Foreign, Time
from semcast.protocols.isis.structure import Structure

_MANY = 16
"""Groups that were spoken of in one group before it is asked which of them are settled."""


class Blocks(Full):
    """Times of own groups, and of those in blocks with them.

    Args:
        seats: the groups of this process, by name.
        settings: with the structure that the program asserts.
    """

    carries_said = True

    def __init__(self, seats: Mapping[str, Seat], settings: IsisSettings) -> None:
        super().__init__(seats, settings)
        self.structure = Structure(settings.structure)
        self._handed: set[str] = set()  # groups that direct messages spoke of
        self._visited: set[str] = set()  # groups that this process was a client of

    def objection(self, group: str, visits: Sequence[str] = ()) -> str:
        """What speaks against joining a group."""
        return self.structure.objection([*self._seats, *visits], group)

    def _times(self, seat: Audience) -> list[tuple[str, Time]]:
        return [(name, time) for name, time in super()._times(seat) if self.says(name)]

    def says(self, name: str) -> bool:
        """Whether others may need to be told of a group by this process."""
        own = [*self._seats, *self._visited] if self._visited else self._seats
        return name in self._seats or name in self._handed or self.structure.keeps(own, name)

    def told(self, others: Sequence[Foreign], epoch: int, group: str) -> None:
        """The others in the group have not heard it, so this process has to say it there, whatever it is."""
        self._handed.update(other.group for other in others)
        super().told(others, epoch, group)

    def heard(self, others: Sequence[Foreign], epoch: int, group: str) -> None:  # noqa: ARG002
        """All servers have heard it, too: this process says it where it is near to one of its groups."""
        self._visited.add(group)
        self.learn(others)

    def learn(self, others: Iterable[Foreign]) -> None:
        """Only of groups that this process has to speak of."""
        super().learn(other for other in others if self.says(other.group))

    # Who joins waits for what was said before

    def lets_through(self, ticket: AnyTicket, line: Iterable[AnyTicket]) -> bool:  # noqa: ARG002
        """Whether the other groups have come as far as was said in this one before the process joined it."""
        own = self._seats.get(group_of(ticket))
        gate = {} if own is None else own.gate
        for name, time in list(gate.items()):
            seat = self._seats.get(name)
            if seat is not None and not seat.reaches(time.view, list(time.counts.items())):
                return False
            del gate[name]
        return True

    # What is settled is not said any more

    def heard_of(self) -> Mapping[str, Time]:
        """Those that are kept, and those that were spoken of where that has become many."""
        found = dict(self.known)
        for seat in self._seats.values():
            if len(seat.base) > _MANY:
                found.update({name: time for name, time in seat.base.items() if name not in self._seats})
                self._settle_own(seat)
        return found

    def _settle_own(self, seat: Seat) -> None:
        for name, time in list(seat.base.items()):
            own = self._seats.get(name)
            if own is not None and own.all_have(time.view, list(time.counts.items())):
                del seat.base[name]

    def settled(self, number: int, time: Time) -> None:
        """Nobody there needs to be told."""
        super().settled(number, time)
        self._handed.intersection_update(self.known)
        for seat in self._seats.values():
            for name, said in list(seat.base.items()):
                if number_of(name) == number and time.covers(said.view, said.counts):
                    del seat.base[name]
