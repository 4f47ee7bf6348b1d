"""`semcast log tail`: subscribe to what a group logs, and print it."""

import argparse
import asyncio
import json
import sys
from datetime import datetime

from semcast.cli.errors import JobError, UsageError
from semcast.cli.live import message_json, payload_text, plain, stopping_on_signals, why
from semcast.core.messages import Message
from semcast.group.errors import ConfigurationError, GroupError
from semcast.group.subscribing import Start, Subscription, subscribe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it can be told."""
    parser.add_argument("group", metavar="GROUP", help="name of the group; it needs a logger")
    parser.add_argument(
        "--start",
        default="new",
        metavar="WHERE",
        help="new (default), all, compacted, acknowledged, a position, or a time: 2026-11-17T09:30",
    )
    parser.add_argument(
        "--durable", default="", metavar="NAME", help="name of a durable session, which is kept for later"
    )
    parser.add_argument("--filter", metavar="PREFIX", help="print only messages whose item starts with this")
    parser.add_argument("--count", type=int, metavar="N", help="exit after this many messages")
    parser.add_argument("--key-file", metavar="FILE", help="keyring of the group, made by `semcast keygen`")
    parser.add_argument("--bind", metavar="HOST:PORT", help="address to listen on")
    parser.add_argument(
        "--peer",
        dest="peers",
        action="append",
        metavar="HOST:PORT",
        help="address of another member; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print until interrupted."""
    if args.count is not None and args.count < 1:
        raise UsageError(f"--count {args.count}: at least 1")
    try:
        return asyncio.run(_tail(args))
    except ConfigurationError as error:
        raise UsageError(str(error)) from error
    except GroupError as error:
        raise JobError(why(error)) from error


def start_of(text: str) -> Start:
    """Where to begin, from the command line.

    >>> start_of("17"), start_of("all"), start_of("2026-11-17T09:30+00:00").isoformat()
    (17, 'all', '2026-11-17T09:30:00+00:00')
    """
    if text.isdecimal():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text  # type: ignore[return-value]  # refused where it is none of the words


async def _tail(args: argparse.Namespace) -> int:
    settings = {"key_file": args.key_file, "bind": args.bind, "peers": args.peers}
    subscription = subscribe(
        args.group, durable=args.durable, start=start_of(args.start), filter=args.filter, **settings
    )
    with stopping_on_signals() as stopped:
        printing = asyncio.create_task(_print(args, subscription))
        stop = asyncio.create_task(stopped.wait())
        await asyncio.wait((printing, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not printing.done():
            printing.cancel()
            await asyncio.gather(printing, return_exceptions=True)
            return 0
        return printing.result()


async def _print(args: argparse.Namespace, subscription: Subscription) -> int:
    left = args.count
    async with subscription:
        async for batch in subscription:
            for lost in batch.lost:
                text = f"lost: {lost.sender} {lost.first}..{lost.last} ({lost.cause})"
                print(plain(text), file=sys.stderr, flush=True)
            for message in batch.messages[:left]:
                print(_line(args, message), flush=True)
            left = None if left is None else left - len(batch)
            if left is not None and left <= 0:
                break
    return 0


def _line(args: argparse.Namespace, message: Message) -> str:
    if args.json:
        return json.dumps(message_json(message))
    return f"{plain(str(message.sender))} {message.id.seq} {payload_text(message.payload)}"
