"""What the members of one group have said of epochs, as one process knows it (1991, 6.7).

A mark is a word of a member: "nothing below this epoch comes from me in this group after my first so many
messages of this view". Its messages say the same, as their epochs never fall.
"""

from typing import NamedTuple

from semcast.core.ids import MemberId
from semcast.protocols.vsync.stream import ViewStream

_MOST_EARLY = 256
"""Marks of views that are not here yet, at most: they are asked for again."""


class _Mark(NamedTuple):
    member: MemberId
    view: int
    behind: int
    epoch: int


class Marks:
    """Of one group, at one process."""

    def __init__(self) -> None:
        self.said = 0
        """The epoch that this process said there last, in the current view."""
        self.asked = 0
        """The epoch for which the others were asked last."""
        self._epochs: dict[MemberId, int] = {}
        self._open: list[_Mark] = []  # not all that they count has come

    def begins(self, members: tuple[MemberId, ...], floor: int) -> None:
        """A view begins, in which nothing below the floor is sent. What earlier marks count is here."""
        known = self._epochs
        for mark in self._open:
            known[mark.member] = max(known.get(mark.member, 0), mark.epoch)
        self._epochs = {member: max(known.get(member, 0), floor) for member in members}
        self._open = []

    def hear(self, stream: ViewStream, member: MemberId, view: int, count: int, epoch: int) -> None:
        """A member said so."""
        if view > stream.view().id:
            return  # it is asked for again, if need be
        if view == stream.view().id and count > stream.queued[stream.buffers.ranks[member]]:
            if len(self._open) < _MOST_EARLY:
                self._open.append(_Mark(member, view, count, epoch))
            return
        self.queued(member, epoch)

    def queued(self, member: MemberId, epoch: int) -> None:
        """A message of this epoch has come from a member."""
        if epoch > self._epochs.get(member, 0):
            self._epochs[member] = epoch

    def behind(self, stream: ViewStream, me: MemberId, epoch: int) -> list[MemberId]:
        """Of whom something below this epoch may yet come."""
        if self._open:
            self._look(stream)
        return [member for member in stream.members if member != me and self._epochs.get(member, 0) < epoch]

    def _look(self, stream: ViewStream) -> None:
        ranks, queued = stream.buffers.ranks, stream.queued
        waiting = []
        for mark in self._open:
            if mark.behind > queued[ranks[mark.member]]:
                waiting.append(mark)
            else:
                self.queued(mark.member, mark.epoch)
        self._open = waiting
