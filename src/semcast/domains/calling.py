"""Calls in a group of a domain: `LightGroup.call` and `LightGroup.on_call`.

What calls send goes to the group and to one more, in which nobody is: so it is known for what it is without a
look at any payload, and has its place among all other messages of the domain. In a causal domain answers
go to the caller alone (Birman et al. 1991, 7.2).
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from semcast.core.events import Rejoining, TransitionalView, ViewChange
from semcast.core.ids import MemberId
from semcast.core.views import View
from semcast.domains.events import batch_of
from semcast.domains.link import CastRequest, PrivateRequest
from semcast.group.calling import CallDesk
from semcast.group.errors import GroupError, SendTimeoutError
from semcast.group.machine import MACHINE
from semcast.patterns.calls import read
from semcast.protocols.clients.permissions import CALLS
from semcast.protocols.lightweight.events import Delivered

if TYPE_CHECKING:
    from semcast.domains.waiting import Waiting
    from semcast.group.call_journal import CallJournal


class GroupCalls:
    """The calls of one group, as one of its members sees them.

    Args:
        group: its name.
        member: who this is.
        view: that it is in.
        waiting: of the domain.
        numbers: of the calls of this program.
        journal: where they are recorded, if they are.
        outsiders: whether clients of the group call, too.
    """

    def __init__(
        self,
        group: str,
        member: MemberId,
        view: View | None,
        waiting: "Waiting",
        numbers: Iterator[int],
        journal: "CallJournal | None" = None,
        *,
        outsiders: bool = False,
    ) -> None:
        self._group = group
        self._waiting = waiting
        self.desk = CallDesk(
            group,
            member,
            waiting.desk.terms.run_bytes,
            send=self._send,
            has_room=self._has_room,
            room=self._room,
            clock=MACHINE.get().clock,
            send_to=self._send_to if waiting.desk.terms.closed else None,
            journal=journal,
            numbers=numbers,
            outsiders=outsiders,
        )
        if view is not None:
            self.desk.hear([ViewChange(view, joined=view.members)])

    def hear(self, run: Delivered) -> None:
        """Messages with the mark, in order."""
        order = batch_of(run).order
        self.desk.hear(
            [
                (run.sender, read(payload), None if order is None else order + place)
                for place, payload in enumerate(run.payloads)
            ]
        )

    def note(self, event: ViewChange | TransitionalView | Rejoining) -> None:
        """What is no message, in its place between them."""
        self.desk.hear([event])

    def end(self, error: GroupError) -> None:
        """This program is in the group no more."""
        self.desk.end(error)

    def _send(self, payloads: Sequence[bytes]) -> None:
        self._waiting.desk.submit(CastRequest((self._group, CALLS), payloads))

    def _send_to(self, member: MemberId, payload: bytes) -> None:
        self._waiting.desk.submit(PrivateRequest(member, payload, self._group))

    def _has_room(self, count: int) -> bool:
        return self._waiting.desk.room_for(count, 0)

    async def _room(self, timeout: float | None) -> None:
        try:
            await self._waiting.until(lambda: self._has_room(1), timeout)
        except TimeoutError:
            raise SendTimeoutError(f"{self._group}: no room to send for {timeout} s") from None
