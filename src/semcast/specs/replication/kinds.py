"""The rows that servers write besides those of every stack.

A server is a name and a store: in `members` the store stands in the place of the incarnation. Actions are
named by who made them (`sender`: the server from one start to the next), their index (`seq`) and how many
they are (`count`).

- store: the server starts, with this store (`members`) and this epoch (`seq`); `order` is the green line that
  its disk had, `view` the number of the last primary, `count` that of the red runs, which follow as rows;
- phase: it is in another state, `level`;
- request: it made these actions; `level` says when they are answered. With `members`, it is one action that a
  client asked for under a number, which stands in the place of the incarnation; the text names the last
  action of each creator that the client had seen without a place;
- colour: these actions are red, yellow or green (`level`) here from now on; green at a position, `order`; the
  others have a Lamport clock, `view`;
- done: a request of a client (`members`, as above) is done at `order`: no earlier action asked for the same;
- again: it sends these actions in an exchange, those with a position as green; the text names the
  configuration;
- install: it installs primary `view`, in the configuration with the number `seq` that `sender` formed. Those
  who took part are in `members`, their weights in `level`, "-" for a guest; `order` is its green line before.
  The text names the configuration of the primary before it, or is "whole" if an operator made that up;
- group: from position `order` on these `members` are the servers of the group;
- durable: its disk has the green actions up to `order`, primary `view`, and the first `count` runs that were
  red or yellow since it started; the text is the chain hash of the green ones;
- reply: it answers; `level` strict or queued: about an action, which is done at `order`; weak, dirty or
  session: a read of a client (`members`), which shows the actions up to `order`, and the reds of the text;
- white: all servers (`members`) have the actions up to `order` green on their disks;
- snapshot: it goes on from the snapshot of another server, which has the green actions up to `order`; the
  text is their chain hash;
- alarm: it found another server with other actions; the text says which;
- put-back: its disk is put back to an old copy, and with that it ends. Whoever does such a thing says so: by
  what follows alone it could not be told from records that were lost.
"""

from semcast.history.events import Event
from semcast.history.schema import add_kind

_ACTIONS = ("sender", "seq", "count")
COLOURS = RED, YELLOW, GREEN = ("red", "yellow", "green")
GUEST = "-"
WHOLE = "whole"


def _of_actions(event: Event) -> str | None:
    if event.sender is None or event.seq < 1 or event.count < 1:
        return f"{event.kind.value} of no actions"
    return None


def _colour(event: Event) -> str | None:
    if event.level not in COLOURS:
        return f"the colour {event.level}: there are {', '.join(COLOURS)}"
    if (event.order is not None) != (event.level == "green"):
        return "green actions have a position, and no others"
    if (event.view is not None) == (event.level == "green"):
        return "red and yellow actions have a clock, and no others"
    return _of_actions(event)


def _store(event: Event) -> str | None:
    return None if event.members is not None and len(event.members) == 1 else "a start without a store"


def _install(event: Event) -> str | None:
    weights = (event.level or "").split()
    sound = all(weight == GUEST or weight.isdigit() for weight in weights)
    if event.members is None or len(weights) != len(event.members) or not sound:
        return "an installation without weights for all members"
    return None if event.view else "an installation of no primary"


def _ordered(event: Event) -> str | None:
    return None if event.order is not None else f"{event.kind.value} without a position"


STORE = add_kind("store", ("seq", "count", "order", "view", "members"), _store)
PHASE = add_kind("phase", ("level",))
REQUEST = add_kind("request", (*_ACTIONS, "level", "members", "annotation"), _of_actions)
COLOUR = add_kind("colour", (*_ACTIONS, "view", "level", "order"), _colour)
DONE = add_kind("done", ("order", "members"), _ordered)
AGAIN = add_kind("again", (*_ACTIONS, "order", "annotation"), _of_actions)
INSTALL = add_kind("install", ("sender", "seq", "view", "level", "order", "members", "annotation"), _install)
GROUP = add_kind("group", ("order", "members"), _ordered)
SNAPSHOT = add_kind("snapshot", ("order", "annotation"), _ordered)
DURABLE = add_kind("durable", ("count", "order", "view", "annotation"), _ordered)
REPLY = add_kind("reply", (*_ACTIONS, "level", "order", "members", "annotation"), _ordered)
WHITE = add_kind("white", ("order", "members"), _ordered)
ALARM = add_kind("alarm", ("annotation",))
PUT_BACK = add_kind("put-back", ())
