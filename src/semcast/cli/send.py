"""`semcast send`: join a live group, multicast some messages, leave."""

import argparse
import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Sequence

import msgspec

from semcast.cli.arguments import duration
from semcast.cli.errors import UsageError
from semcast.cli.live import (
    add_group,
    add_stack,
    errors_explained,
    joined,
    member_json,
    member_name,
    plain,
    settings_of,
    stopping_on_signals,
    why,
)
from semcast.core.ids import SECOND
from semcast.core.messages import Batch
from semcast.group import Group, GroupError, GroupSettings, Order
from semcast.group.families import FAMILIES

_CHUNK = 1 << 16
_LONGEST = 1 << 24


class NotSentError(Exception):
    """What kept the messages from being sent; shown as one line, and the program exits with 1."""


class Progress(msgspec.Struct):
    """How far this member has come, as it hears of itself."""

    delivered: int = 0
    """The last message of its own that it was given. Those before it came, too, or were replaced."""
    members: int = 0
    """How many are in the view."""
    arrived: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set when one of these changes."""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "send",
        help="send messages to a live group",
        description=(
            "Join, send each TEXT (or each line of the input) as a message, wait until all were delivered"
            " in their place in the group's order, and leave. Exits with 1 if that did not come about."
        ),
    )
    add_group(parser)
    add_stack(parser)
    parser.add_argument("text", metavar="TEXT", nargs="*", help="a message; none: each line of the input")
    parser.add_argument("--item", help="each message replaces those before it about this item")
    parser.add_argument("--safe", action="store_true", help="delivered only once every member has it")
    parser.add_argument("--name", help="name of this member (default: made up)")
    parser.add_argument(
        "--wait-members",
        metavar="N",
        type=int,
        default=2,
        help="send when so many are there, this one included (default: 2, so that somebody hears it)",
    )
    parser.add_argument(
        "--timeout", default="10s", help="how long to wait for members, and for the end (default: 10s)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Send; 0 only if everything was delivered."""
    if args.wait_members < 1:
        raise UsageError(f"--wait-members {args.wait_members}: a group has at least one")
    if args.item is not None and not 0 < len(args.item) <= 256:
        raise UsageError("--item: between 1 and 256 characters")
    patience = duration(args.timeout) / SECOND
    settings = settings_of(args, {"name": member_name(args)})
    try:
        return asyncio.run(_join_and_send(args, settings, patience))
    except (NotSentError, GroupError) as error:
        text = why(error) if isinstance(error, GroupError) else str(error)
        print(f"semcast send: {text}", file=sys.stderr)
        return 1


async def _join_and_send(args: argparse.Namespace, settings: GroupSettings, patience: float) -> int:
    with errors_explained():
        group = Group(args.group, settings)
    progress = Progress()
    with stopping_on_signals() as stopped:
        waits = patience if FAMILIES.of(settings.stack).admits else None  # others begin alone
        async with joined(group, stopped, waits) as there:
            if not there:
                print("interrupted", file=sys.stderr)
                return 130
            reader = asyncio.create_task(_read(group, progress))
            work = asyncio.create_task(_send(args, group, progress, patience))
            stop = asyncio.create_task(stopped.wait())
            tasks = (work, reader, stop)
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if reader.done():
                    await reader  # it ends only when it fails
                sent = work.result() if work.done() else None
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    if sent is None:
        print("interrupted", file=sys.stderr)
        return 130
    _report(args, group, sent, progress.members)
    return 0


async def _send(args: argparse.Namespace, group: Group, progress: Progress, patience: float) -> int:
    """Send everything and see it delivered; returns how many messages that were."""
    await _members(args, progress, patience)
    order: Order = "safe" if args.safe else "agreed"
    texts = [[os.fsencode(text) for text in args.text]]
    source = _given(texts) if args.text else _lines(sys.stdin.fileno())
    sent = 0
    async for payloads in source:
        await _hand_over(group, payloads, args.item, order)
        sent += len(payloads)
    try:
        async with asyncio.timeout(patience):
            while progress.delivered < sent:
                progress.arrived.clear()
                await progress.arrived.wait()
    except TimeoutError:
        raise NotSentError(
            f"{progress.delivered} of {sent} messages were delivered in {args.timeout}"
        ) from None
    return sent


async def _hand_over(group: Group, payloads: Sequence[bytes], item: str | None, order: Order) -> None:
    try:
        if item is None:
            await group.send_many(payloads, order=order)
            return
        for payload in payloads:
            await group.send(payload, item=item, order=order)
    except ValueError as error:  # too large
        raise NotSentError(str(error)) from error


async def _members(args: argparse.Namespace, progress: Progress, patience: float) -> None:
    """Wait for the others."""
    try:
        async with asyncio.timeout(patience):
            while progress.members < args.wait_members:
                progress.arrived.clear()
                await progress.arrived.wait()
    except TimeoutError:
        others = progress.members - 1
        there = "nobody else is" if others < 1 else f"only {others} others are"
        raise NotSentError(
            f"{there} in {plain(args.group)!r} after {args.timeout} (--wait-members)"
        ) from None


async def _read(group: Group, progress: Progress) -> None:
    """Take what is delivered, so that nobody has to wait for this member."""
    counted = FAMILIES.of(group.settings.stack).renumbers
    async for deliveries in group.batches():
        for each in deliveries:
            if isinstance(each, Batch) and each.sender == group.member:
                # Where other things have numbers, too, messages are counted.
                progress.delivered = progress.delivered + len(each.payloads) if counted else each.last
        if counted:
            progress.delivered += sum(receipt.id.sender == group.member for receipt in group.receipts())
        if group.view is not None:
            progress.members = len(group.view.members)
        progress.arrived.set()


async def _given(texts: list[list[bytes]]) -> AsyncIterator[Sequence[bytes]]:
    for each in texts:
        yield each


async def _lines(fileno: int) -> AsyncIterator[Sequence[bytes]]:
    """The lines of the input as they come, in lists.

    Read in a thread that may be left behind when the program ends: it holds no lock of Python's streams.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(4)

    def read() -> None:
        data = b"-"
        while data:
            room.acquire()
            try:
                data = os.read(fileno, _CHUNK)
            except OSError:
                data = b""
            try:
                loop.call_soon_threadsafe(queue.put_nowait, data)
            except RuntimeError:
                return  # the program has ended

    threading.Thread(target=read, name="semcast input", daemon=True).start()
    rest: list[bytes] = []  # of a line that goes on
    while data := await queue.get():
        room.release()
        first, *lines = data.split(b"\n")
        rest.append(first)
        if lines:
            yield [b"".join(rest), *lines[:-1]]
            rest = lines[-1:]
        elif sum(map(len, rest)) > _LONGEST:
            raise NotSentError(f"a line of more than {_LONGEST} bytes")
    if any(rest):
        yield [b"".join(rest)]


def _report(args: argparse.Namespace, group: Group, sent: int, members: int) -> None:
    if args.json:
        document = {
            "group": args.group,
            "member": member_json(group.member),
            "sent": sent,
            "order": "safe" if args.safe else "agreed",
            "members": members,
        }
        print(json.dumps(document, indent=2))
    else:
        messages = "1 message" if sent == 1 else f"{sent} messages"
        others = "1 other" if members == 2 else f"{members - 1} others"
        print(f"sent {messages} to {plain(args.group)} ({others})")
