"""`semcast top`: a live table of a group's members, their rates, queues, purges and views."""

import argparse
import json
import sys
import time
from contextlib import suppress

from rich import box
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from semcast.cli.live import add_daemon, add_group, errors_explained, plain, settings_of
from semcast.cli.members import names_of, nobody, sighting_json, view_of
from semcast.group.observing import observe
from semcast.net.observer import Observer, Sighting

RATES = ("sent", "delivered", "purged", "retransmitted")
_PATIENCE = 3.5
"""Seconds in which every member has spoken twice."""
_FIRST = 1.2
"""Seconds in which every member has spoken once."""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "top",
        help="show a live table of the members of a group",
        description="Show a table of the members of a group, refreshed until interrupted, without joining it."
        " With --daemon: the clients of the daemon on this host, all or those in a group.",
    )
    add_group(parser, optional=True)
    add_daemon(parser)
    parser.add_argument("--once", action="store_true", help="print one table and exit; implied by --json")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Watch; 0 unless one table was wanted and nobody was there."""
    if args.daemon:
        from semcast.cli import daemon_top  # noqa: PLC0415

        return daemon_top.run(args)
    settings = settings_of(args)
    with errors_explained():
        observer = observe(args.group, settings)
    with observer:
        if args.once or args.json:
            return _show_once(args, observer)
        with suppress(KeyboardInterrupt):  # the way to end it
            _watch(args.group, observer)
    return 0


def _show_once(args: argparse.Namespace, observer: Observer) -> int:
    found = _sample(observer)
    if args.json:
        print(json.dumps({"group": args.group, "members": [_json(each) for each in found]}, indent=2))
    elif found:
        Console().print(_table(args.group, found))
    if not found:
        print(nobody(args.group, f"{_PATIENCE} s", observer), file=sys.stderr)
    return 0 if found else 1


def _sample(observer: Observer) -> list[Sighting]:
    """Listen until everybody has spoken twice, but not for ever: somebody may have just gone."""
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < _PATIENCE:
        found = observer.members()
        if elapsed > _FIRST and found and all(each.before is not None for each in found):
            break
        observer.wait(0.1)
    return observer.members()


def _watch(group: str, observer: Observer) -> None:
    with Live(_table(group, []), console=Console(), auto_refresh=False, screen=False) as live:
        while True:
            observer.listen(0.5)
            live.update(_table(group, observer.members()), refresh=True)


def _json(sighting: Sighting) -> dict[str, object]:
    rates = {name: sighting.rate(name) for name in RATES}
    return sighting_json(sighting) | {
        "per_second": {name: None if rate is None else round(rate, 1) for name, rate in rates.items()}
    }


def _table(group: str, found: list[Sighting]) -> Table:
    views = len({(each.status.view, each.status.representative) for each in found})
    caption = "nobody has announced itself yet" if not found else None
    if views > 1:
        caption = f"{views} views: the group is changing, or partitioned"
    size = "1 member" if len(found) == 1 else f"{len(found)} members"
    title = escape(f"{plain(group)}: {size}")
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=0)
    table.add_column("member", overflow="fold")
    table.add_column("state", no_wrap=True)
    table.add_column("view", overflow="fold")
    for column in ("sent\n/s", "got\n/s", "purged\n/s", "resent\n/s", "purged", "queued", "unsent"):
        table.add_column(column, justify="right")
    names = names_of(found)
    for each in found:
        status = each.status
        table.add_row(
            names[each.member],
            escape(plain(status.phase)),
            view_of(status, names),
            *(_rate(each.rate(name)) for name in RATES),
            f"{status.purged:,}",
            f"{status.buffered:,}",
            f"{status.unsent:,}",
        )
    return table


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.0f}"
