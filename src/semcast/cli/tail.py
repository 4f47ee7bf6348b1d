"""`semcast tail`: join a live group and print what happens there."""

import argparse
import asyncio
import json
import sys

from semcast.cli.errors import UsageError
from semcast.cli.live import (
    add_daemon,
    add_group,
    add_stack,
    errors_explained,
    item_of,
    joined,
    member_json,
    member_name,
    message_json,
    payload_text,
    plain,
    settings_of,
    stopping_on_signals,
    view_json,
    view_name,
    why,
)
from semcast.core.events import Minority, TransitionalView, ViewChange
from semcast.core.ids import MemberId
from semcast.core.messages import Batch, Message
from semcast.group import Group, GroupError, GroupSettings, Rejoining
from semcast.group.families import FAMILIES


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "tail",
        help="print the messages of a live group",
        description=(
            "Join a group and print its messages until interrupted: sender, number, item, payload. If the"
            " output is too slow, obsolete messages are skipped; if that is not enough, tail leaves."
        ),
    )
    add_group(parser)
    add_stack(parser)
    add_daemon(parser)
    parser.add_argument("--count", metavar="N", type=int, help="exit after this many messages")
    parser.add_argument("--views", action="store_true", help="also print view changes")
    parser.add_argument("--name", help="name of this member (default: generated)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print; 0 unless the group ended it, or fewer messages came than were asked for."""
    if args.count is not None and args.count < 1:
        raise UsageError(f"--count {args.count}: at least 1")
    if args.daemon:
        from semcast.cli import through  # noqa: PLC0415 (it prints as this does)

        return through.tail(args)
    policy = FAMILIES.of(settings_of(args).stack).tailing
    settings = settings_of(args, {"name": member_name(args), "policy": policy})
    try:
        printed = asyncio.run(_follow(args, settings))
    except GroupError as error:
        print(f"semcast tail: {why(error)}", file=sys.stderr)
        return 1
    if args.count is not None and printed < args.count:
        print(f"semcast tail: {printed} of {args.count} messages came", file=sys.stderr)
        return 1
    return 0


async def _follow(args: argparse.Namespace, settings: GroupSettings) -> int:
    """Print until told to stop; returns how many messages were printed."""
    with errors_explained():
        group = Group(args.group, settings)
    with stopping_on_signals() as stopped:
        printer = Printer(args, group.member)
        async with joined(group, stopped) as there:
            if not there:
                return 0
            reading = asyncio.create_task(_print_all(group, printer))
            stop = asyncio.create_task(stopped.wait())
            try:
                await asyncio.wait((reading, stop), return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    reading.result()
            finally:
                for task in (reading, stop):
                    task.cancel()
                await asyncio.gather(reading, stop, return_exceptions=True)
    return printer.messages


async def _print_all(group: Group, printer: "Printer") -> None:
    async for deliveries in group.batches():
        for each in deliveries:
            if isinstance(each, Batch):
                for message in each.messages():
                    printer.message(message)
            elif isinstance(each, ViewChange | TransitionalView):
                printer.change(each)
            elif isinstance(each, Minority | Rejoining):
                printer.trouble(each)
            if printer.enough():
                break
        sys.stdout.flush()
        if printer.enough():
            return


class Printer:
    """Puts events on the output, as text or as lines of JSON."""

    def __init__(self, args: argparse.Namespace, me: MemberId) -> None:
        self.messages = 0
        self._args = args
        self._me = me

    def enough(self) -> bool:
        """Whether all messages that were wanted are printed."""
        return self._args.count is not None and self.messages >= self._args.count

    def message(self, message: Message) -> None:
        """Print a message, unless there are enough."""
        if self.enough():
            return
        self.messages += 1
        if self._args.json:
            print(json.dumps({"event": "message"} | message_json(message)))
            return
        item = item_of(message)
        about = "" if item is None else f" [{plain(item)}]"
        print(f"{plain(str(message.sender))} {message.id.seq}{about}: {payload_text(message.payload)}")

    def change(self, change: ViewChange | TransitionalView) -> None:
        """Print a change of view, where that is wanted."""
        if not self._args.views:
            return
        if self._args.json:
            print(json.dumps(_change_json(change)))
        else:
            print(_change_text(change, self._me))

    def trouble(self, event: Minority | Rejoining) -> None:
        """Print why nothing happens, or was missed, where changes of view are wanted."""
        if isinstance(event, Rejoining):
            self._me = event.member
        if self._args.views:
            print(json.dumps(_trouble_json(event)) if self._args.json else _trouble_text(event))


def _trouble_json(event: Minority | Rejoining) -> dict[str, object]:
    if isinstance(event, Minority):
        return {"event": "minority", "reachable": event.reachable, "needed": event.needed}
    return {
        "event": "rejoining",
        "former": member_json(event.former),
        "member": member_json(event.member),
        "cause": event.cause,
    }


def _trouble_text(event: Minority | Rejoining) -> str:
    if isinstance(event, Minority):
        return f"-- cut off: {event.reachable} of the {event.needed} members that a view needs are in reach"
    return f"-- {plain(event.cause)}; comes back as {plain(str(event.member))}"


def _change_json(change: ViewChange | TransitionalView) -> dict[str, object]:
    if isinstance(change, TransitionalView):
        return {"event": "transitional", "view": view_json(change.view)}
    described: dict[str, object] = {"event": "view", "view": view_json(change.view)}
    for name in ("joined", "left", "failed"):
        described[name] = [member_json(member) for member in getattr(change, name)]
    return described


def _change_text(change: ViewChange | TransitionalView, me: MemberId) -> str:
    view = change.view
    name = view_name(view.id, view.representative)
    if isinstance(change, TransitionalView):
        return f"-- view {name} ends, and these go on together: {_names(view.members, me)}"
    parts = [f"{kind} {_names(getattr(change, kind), me)}" for kind in ("joined", "left", "failed")]
    changes = "; ".join(part for part in parts if not part.endswith(" "))
    return f"-- view {name}: {_names(view.members, me)} ({changes})"


def _names(members: tuple[MemberId, ...], me: MemberId) -> str:
    return ", ".join(plain(str(member)) + (" (this)" if member == me else "") for member in members)
