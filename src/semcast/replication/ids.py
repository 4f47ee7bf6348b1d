"""Who is who among servers: a server is a name and a store, a restart of it is another creator of actions."""

from typing import Annotated

import msgspec

from semcast.core.ids import MAX_NAME, MAX_NUMBER, MemberId
from semcast.core.views import View

Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
"""Epochs, indices, positions, clocks: all count upwards from 0 or 1."""


class Server(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A server for as long as its disk lives. A wiped disk is another store, hence another server."""

    name: Name
    store: Number

    def __str__(self) -> str:
        return f"{self.name}/{self.store:x}"


class Creator(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A server from one start to the next. It numbers its actions from 1."""

    server: Server
    epoch: Number

    @property
    def member(self) -> MemberId:
        """How histories call it."""
        return MemberId(self.server.name, self.epoch)

    def __str__(self) -> str:
        return f"{self.server}#{self.epoch}"


class ConfId(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A configuration of the group communication below: nobody gives this name to another one."""

    number: Number
    representative: MemberId

    def __str__(self) -> str:
        return f"{self.number}@{self.representative}"


def conf_of(view: View) -> ConfId:
    """The name of a view."""
    assert view.representative is not None, "the views of extended virtual synchrony say who formed them"
    return ConfId(view.id, view.representative)


Weighted = tuple[tuple[Server, int], ...]
"""Servers and their weights, in order."""


def servers_of(weighted: Weighted) -> list[Server]:
    """The servers alone."""
    return [server for server, _ in weighted]
