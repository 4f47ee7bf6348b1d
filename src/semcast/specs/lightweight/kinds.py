"""The rows that daemons of lightweight groups write about themselves and their clients.

A client is a name and a session, which stands in the place of the incarnation. A text in `annotation` is an
object of JSON; there a configuration is its number, 1 for a rest of it (0 otherwise) and who it is named
after, and a view of a group is the same and a number. Rows of one daemon are in the order of what it did, so
what a client is told is told in this order.

- lw-conf: the daemon is in configuration `view` that `sender` formed, or, with "rest" in `level`, in what
  is left of it with these `members`;
- lw-session: a client (`sender`) connects ("came" in `level`), is gone ("gone"), or is put out ("out");
- lw-ask: it asks for something (`level`: join, leave, cast, private), `count` requests from `seq` on. The
  text names `groups`, and for a cast the `view` that it is in, where that matters; `members` whom a private
  message is for;
- lw-ordered: the daemon does what a client asked for, or takes note that it came or is gone, at position
  `order` of the configuration (`epoch`);
- lw-view: a client (`sender`) is told of a view of a group: `group`, `id`, whether it is a `vs` group, and
  who came `along`; why in `level`;
- lw-transitional: it is told that only these `members` of a view are sure to go on together;
- lw-deliver: a client (`members`) is given messages, at position `order` (`epoch`), in these `views` of
  groups; `sent` is the view that the sender was in, where that matters;
- lw-private: it is given a private message ("delivered" in `level`), or told that its own is "undeliverable";
- lw-left: it is told that it is out of a `group`;
- lw-heard: a program (`sender`) at the other end of a connection has heard of messages `by` somebody
  ("deliver" or "private" in `level`), of a "view" or "transitional", that it "left" a group, that
  messages from `seq` on, `count` numbers, were "purged" because it was slow, or that it is "out"; its session
  was "opened" before. Simulated daemons write these rows for their programs; live ones do so themselves, and
  have no others;
- lw-placed: it is told that its requests up to `seq` have a place; these `members` have them.
"""

from semcast.history.events import Event
from semcast.history.schema import add_kind


def _of_client(event: Event) -> str | None:
    return None if event.sender is not None else f"{event.kind.value} without a client"


def _of_requests(event: Event) -> str | None:
    if event.sender is None or event.seq < 1 or event.count < 1:
        return f"{event.kind.value} of no requests"
    return None


def _to_one(event: Event) -> str | None:
    if event.members is None or len(event.members) != 1 or event.order is None:
        return f"{event.kind.value} to nobody, or without a position"
    return _of_requests(event)


def _conf(event: Event) -> str | None:
    if event.view is None or event.members is None or event.sender is None:
        return "a configuration without a number, a name or members"
    return None


CONF = add_kind("lw-conf", ("sender", "view", "level", "members"), _conf)
SESSION = add_kind("lw-session", ("sender", "level"), _of_client)
ASK = add_kind("lw-ask", ("sender", "seq", "count", "level", "members", "annotation"), _of_requests)
ORDERED = add_kind("lw-ordered", ("sender", "seq", "count", "level", "order", "annotation"), _of_client)
VIEW = add_kind("lw-view", ("sender", "level", "members", "annotation"), _of_client)
TRANSITIONAL = add_kind("lw-transitional", ("sender", "members", "annotation"), _of_client)
DELIVER = add_kind("lw-deliver", ("sender", "seq", "count", "order", "members", "annotation"), _to_one)
PRIVATE = add_kind(
    "lw-private", ("sender", "seq", "count", "level", "order", "members", "annotation"), _to_one
)
LEFT = add_kind("lw-left", ("sender", "annotation"), _of_client)
HEARD = add_kind("lw-heard", ("sender", "seq", "count", "level", "annotation"), _of_client)
PLACED = add_kind("lw-placed", ("sender", "seq", "count", "members"), _of_requests)
