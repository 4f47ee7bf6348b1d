"""`semcast top --daemon`: a live table of a daemon's clients, what waits for them and what they ask for."""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from rich import box
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from semcast.cli.live import plain
from semcast.daemon.asking import ask
from semcast.domains.places import find_daemon
from semcast.group.errors import GroupError

_PAUSE = 1.0
RATES = ("requests", "purged")


class Sample:
    """What a daemon said at one moment."""

    def __init__(self, where: str, group: str) -> None:
        self.at = time.monotonic()
        self.status: Mapping[str, Any] = json.loads(ask(where, "status"))
        clients: Sequence[Mapping[str, Any]] = json.loads(ask(where, "clients"))
        if group:
            found = json.loads(ask(where, "groups", group))
            there = set(found[0]["members"]) if found else set()
            clients = [each for each in clients if each["client"] in there]
        self.clients = {str(each["client"]): each for each in clients}

    def rates(self, before: "Sample | None") -> dict[str, dict[str, float]]:
        """Of each client, a second since an earlier moment; nothing for one that was not there."""
        if before is None or self.at <= before.at:
            return {}
        passed = self.at - before.at
        return {
            name: {what: (each[what] - before.clients[name][what]) / passed for what in RATES}
            for name, each in self.clients.items()
            if name in before.clients
        }


def run(args: argparse.Namespace) -> int:
    """Watch; 0 unless no daemon answers."""
    where = args.socket or find_daemon()
    try:
        before = Sample(where, args.group)
        if args.once or args.json:
            time.sleep(_PAUSE)
            _show_once(args, Sample(where, args.group), before)
            return 0
        with suppress(KeyboardInterrupt):  # the way to end it
            _watch(where, args.group, before)
    except GroupError as error:
        print(f"semcast top: {plain(str(error))}", file=sys.stderr)
        return 1
    return 0


def _show_once(args: argparse.Namespace, sample: Sample, before: Sample) -> None:
    if args.json:
        rates = sample.rates(before)
        clients = [{**each, "per_second": rates.get(name, {})} for name, each in sample.clients.items()]
        print(json.dumps({"status": sample.status, "clients": clients}, indent=2))
    else:
        Console().print(table(sample, before))


def _watch(where: str, group: str, before: Sample) -> None:
    with Live(table(before, None), console=Console(), auto_refresh=False, screen=False) as live:
        while True:
            time.sleep(_PAUSE)
            sample = Sample(where, group)
            live.update(table(sample, before), refresh=True)
            before = sample


def table(sample: Sample, before: Sample | None) -> Table:
    """What people are shown."""
    status = sample.status
    daemons, groups = len(status["daemons"]), status["groups"]
    title = (
        f"{status['daemon']} of {status['domain']}: {status['local_clients']} clients here,"
        f" {status['clients']} in all, {groups} groups, {daemons} daemons"
    )
    caption = None if sample.clients else "nobody"
    found = Table(title=escape(plain(title)), caption=caption, box=box.SIMPLE_HEAD, padding=0)
    found.add_column("client", overflow="fold")
    found.add_column("who", overflow="fold")
    for column in ("groups", "asked\n/s", "purged\n/s", "purged", "queued", "bytes", "under\nway", "unsent"):
        found.add_column(column, justify="right")
    rates = sample.rates(before)
    for name, each in sample.clients.items():
        who = each["identity"] if each["connected"] else f"{each['identity']} (away)"
        found.add_row(
            escape(plain(name)),
            escape(plain(who)),
            f"{each['groups']:,}",
            *(f"{rates[name][what]:,.0f}" if name in rates else "" for what in RATES),
            *(f"{each[what]:,}" for what in ("purged", "queued", "queued_bytes", "under_way", "unsent")),
        )
    return found
