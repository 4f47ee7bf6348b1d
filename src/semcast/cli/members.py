"""`semcast members`: who is in a live group, without joining it."""

import argparse
import json
import sys
from collections.abc import Mapping

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from semcast.cli import through
from semcast.cli.arguments import duration
from semcast.cli.live import (
    add_daemon,
    add_group,
    errors_explained,
    member_json,
    plain,
    settings_of,
    short_names,
)
from semcast.core.ids import SECOND, MemberId
from semcast.group.observing import observe
from semcast.net.addresses import written
from semcast.net.observer import Observer, Sighting
from semcast.wire import Malformed
from semcast.wire.status import Status


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "members",
        help="list the members of a live group",
        description="List the members of a group without joining it. Exits with 1 if there are none.",
    )
    add_group(parser)
    add_daemon(parser)
    parser.add_argument("--wait", default="1.5s", help="how long to listen; members report once a second")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Listen, show; 0 if somebody is there."""
    wait = duration(args.wait)
    if args.daemon:
        return through.members(args)
    settings = settings_of(args)
    with errors_explained():
        observer = observe(args.group, settings)
    with observer:
        observer.listen(wait / SECOND)
        found = observer.members()
    if args.json:
        print(json.dumps({"group": args.group, "members": [sighting_json(each) for each in found]}, indent=2))
    elif found:
        Console().print(_table(found))
    if not found:
        print(nobody(args.group, args.wait, observer), file=sys.stderr)
    return 0 if found else 1


def nobody(group: str, wait: str, observer: Observer) -> str:
    """What to say when no member was heard, and why that may be."""
    said = f"nobody in {plain(group)!r} announced itself within {wait}"
    unreadable = {why: n for why, n in observer.malformed.items() if why is not Malformed.GROUP}
    if not unreadable:
        return said
    reasons = ", ".join(f"{count} {why.value}" for why, count in sorted(unreadable.items(), key=str))
    return f"{said}; datagrams that could not be read: {reasons}"


def sighting_json(sighting: Sighting) -> dict[str, object]:
    """A member and what it said last."""
    status = sighting.status
    return {
        "member": member_json(sighting.member),
        "address": written(sighting.address),
        "phase": status.phase,
        "view": {
            "id": status.view,
            "representative": member_json(status.representative),
            "members": status.members,
        },
        "sent": status.sent,
        "delivered": status.delivered,
        "purged": status.purged,
        "retransmitted": status.retransmitted,
        "buffered": status.buffered,
        "unsent": status.unsent,
        "uptime_s": round(status.uptime / SECOND, 3),
    }


def names_of(found: list[Sighting]) -> dict[MemberId | None, str]:
    """How to call those who were seen, and those who formed their views."""
    formed = [each.status.representative for each in found]
    named = short_names([*(each.member for each in found), *(who for who in formed if who is not None)])
    return {None: "", **{member: escape(name) for member, name in named.items()}}


def view_of(status: Status, names: Mapping[MemberId | None, str]) -> str:
    """Which view: its number, and who formed it."""
    who = names[status.representative]
    return f"{status.view}@{who}" if who else str(status.view)


def _table(found: list[Sighting]) -> Table:
    names = names_of(found)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("member", overflow="fold")
    table.add_column("address", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("view", overflow="fold")
    for column in ("of members", "up for"):
        table.add_column(column, justify="right")
    for each in found:
        status = each.status
        table.add_row(
            names[each.member],
            escape(written(each.address)),
            escape(plain(status.phase)),
            view_of(status, names),
            str(status.members),
            f"{status.uptime / SECOND:.0f} s",
        )
    return table
