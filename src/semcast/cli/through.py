"""What `send`, `tail` and `members` do with the groups of a daemon (`--daemon`): no ring changes."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence

from semcast.cli.live import plain, stopping_on_signals
from semcast.cli.tail import Printer
from semcast.core.events import Minority, Rejoining, TransitionalView, ViewChange
from semcast.core.messages import Message
from semcast.domains import LightGroup
from semcast.domains.connecting import connect
from semcast.domains.places import find_daemon
from semcast.group.errors import GroupError

Source = Callable[[], AsyncIterator[Sequence[bytes]]]
"""Messages as they come, in lists."""


def send(args: argparse.Namespace, source: Source, timeout: float) -> int:
    """Send messages from outside the group; 0 if all have their place, and every daemon has them."""
    try:
        sent = asyncio.run(_send(args, source, timeout))
    except (GroupError, TimeoutError) as error:
        print(f"semcast send: {plain(str(error) or f'not sent within {timeout:g} s')}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps({"group": args.group, "sent": sent}))
    return 0


async def _send(args: argparse.Namespace, source: Source, timeout: float) -> int:
    order, sent = "safe" if args.safe else "agreed", 0
    async with connect(args.socket, name=args.name or "") as host:
        async for payloads in source():
            async with asyncio.timeout(timeout):
                if args.item is not None:
                    await host.send_items(args.group, [(args.item, each) for each in payloads], order=order)
                else:
                    await host.send_many(args.group, payloads, order=order)
                await host.flush()
            sent += len(payloads)
    return sent


def tail(args: argparse.Namespace) -> int:
    """Join the group and print, until interrupted or there is enough."""
    try:
        printed = asyncio.run(_tail(args))
    except GroupError as error:
        print(f"semcast tail: {plain(str(error))}", file=sys.stderr)
        return 1
    return 0 if args.count is None or printed >= args.count else 1


async def _tail(args: argparse.Namespace) -> int:
    with stopping_on_signals() as stopped:
        async with connect(args.socket, name=args.name or "") as host:
            printer = Printer(args, host.member)
            group = await host.join(args.group)
            reading = asyncio.create_task(_print(group, printer))
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


async def _print(group: LightGroup, printer: Printer) -> None:
    async for event in group:
        if isinstance(event, Message):
            printer.message(event)
        elif isinstance(event, ViewChange | TransitionalView):
            printer.change(event)
        elif isinstance(event, Minority | Rejoining):
            printer.trouble(event)
        sys.stdout.flush()
        if printer.enough():
            return


def members(args: argparse.Namespace) -> int:
    """Who is in the group; 0 if somebody is."""
    from semcast.daemon.asking import ask  # noqa: PLC0415

    try:
        found = json.loads(ask(args.socket or find_daemon(), "groups", args.group))
    except GroupError as error:
        print(f"semcast members: {plain(str(error))}", file=sys.stderr)
        return 1
    there = found[0]["members"] if found else []
    if args.json:
        print(json.dumps({"group": args.group, "members": there}))
    else:
        for member in there:
            print(plain(member))
    return 0 if there else 1
