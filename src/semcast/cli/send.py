"""`semcast send`: join a live group, multicast some messages, leave."""

import argparse
import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence

from semcast.cli import through
from semcast.cli.arguments import duration
from semcast.cli.errors import UsageError
from semcast.cli.listing import LOOK, Listing, listing, names
from semcast.cli.live import (
    add_daemon,
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
from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.core.views import View
from semcast.group import Confirm, Confirmation, Group, GroupError, GroupSettings, Order
from semcast.group.families import FAMILIES

_CHUNK = 1 << 16
_LONGEST = 1 << 24


class NotSentError(Exception):
    """What kept the messages from being sent; shown as one line, and the program exits with 1."""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "send",
        help="send messages to a live group",
        description=(
            "Join a group, send each TEXT (or each line of standard input) as a message, wait until all"
            " members have it (with --stack gossip: until it is in the log), and leave. Exits with 1, and"
            " says why, if that fails."
        ),
    )
    add_group(parser)
    add_stack(parser)
    add_daemon(parser)
    parser.add_argument(
        "text", metavar="TEXT", nargs="*", help="a message (default: each line of standard input)"
    )
    parser.add_argument(
        "--item", help="item of each message; a newer message replaces older ones of the same item"
    )
    parser.add_argument(
        "--safe", action="store_true", help="order safe: deliver a message only once every member has it"
    )
    parser.add_argument("--name", help="name of this member (default: generated)")
    parser.add_argument(
        "--wait-members",
        metavar="N",
        type=int,
        default=2,
        help="wait for this many members, this one included (default: 2)",
    )
    parser.add_argument(
        "--timeout", default="10s", help="time limit for finding members, and for confirmation (default: 10s)"
    )
    parser.set_defaults(run=run, late="text")


def run(args: argparse.Namespace) -> int:
    """Send; 0 only if everybody has everything."""
    if args.wait_members < 1:
        raise UsageError(f"--wait-members {args.wait_members}: a group has at least one")
    if args.item is not None and not 0 < len(args.item) <= 256:
        raise UsageError("--item: between 1 and 256 characters")
    patience = duration(args.timeout) / SECOND
    if args.daemon:
        return through.send(args, lambda: _source(args), patience)
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
    with stopping_on_signals() as stopped, listing(args.group, settings) as listed:
        waits = patience if FAMILIES.of(settings.stack).admits else None  # others begin alone
        async with joined(group, stopped, waits) as there:
            if not there:
                print("interrupted", file=sys.stderr)
                return 130
            reader = asyncio.create_task(_read(group))
            work = asyncio.create_task(_send(args, group, listed, patience))
            stop = asyncio.create_task(stopped.wait())
            tasks = (work, reader, stop)
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if reader.done():
                    await reader  # it ends only when it fails
                done = work.result() if work.done() else None
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    if done is None:
        print("interrupted", file=sys.stderr)
        return 130
    _report(args, group, *done)
    return 0


async def _send(args: argparse.Namespace, group: Group, listed: Listing, patience: float) -> tuple[int, int]:
    """Send everything, so that everybody has it; returns how many messages, and members, that were."""
    order: Order = "safe" if args.safe else "agreed"
    source = _source(args)
    await _wait_for_some(args, group, listed, patience)
    sent = members = 0
    async for payloads in source:
        goal = _goal(group)
        expected = await _wait_for_all(args, group, listed, patience) if goal == "safe" else {}
        try:
            async with asyncio.timeout(patience):
                confirmed = await _hand_over(group, payloads, args.item, order)
        except TimeoutError:
            if goal == "logged":
                never = f"no logger has said after {args.timeout} that it has the messages"
                raise NotSentError(never) from None
            what = f"{sent} messages arrived; of the next {len(payloads)}" if sent else "of the messages"
            raise NotSentError(
                f"{what} it is not known after {args.timeout} whether everybody has them"
            ) from None
        if goal == "safe":
            await _check_all_have_it(listed, expected, confirmed.view, sent)
        members = len(confirmed.view.members)
        sent += len(payloads)
    return sent, members


async def _wait_for_some(args: argparse.Namespace, group: Group, listed: Listing, patience: float) -> None:
    """Wait for as many members as was asked for; meanwhile everybody who is there is heard."""
    try:
        await asyncio.gather(listed.complete(), group.wait_for(args.wait_members, patience))
    except TimeoutError:
        others = len(group.members()) - 1
        there = "nobody else is" if others < 1 else f"only {others} others are"
        raise NotSentError(
            f"{there} in {plain(args.group)!r} after {args.timeout} (--wait-members); nothing was sent"
        ) from None


async def _wait_for_all(
    args: argparse.Namespace, group: Group, listed: Listing, patience: float
) -> dict[MemberId, Nanos]:
    """Wait until everybody who is listed is in the view; returns who that is."""
    until = time.monotonic() + patience
    while True:
        expected, there = listed.members(), {*group.members()}
        absent = [member for member in expected if member not in there]
        if not absent:
            return expected
        if time.monotonic() > until:
            where = f"in {plain(args.group)!r}, but not in one view with this member after {args.timeout}"
            raise NotSentError(f"{names(absent)}: {where}; what is left was not sent")
        await asyncio.sleep(LOOK)


async def _check_all_have_it(
    listed: Listing, expected: Mapping[MemberId, Nanos], view: View, before: int
) -> None:
    """Whoever was listed is in the view, or has left."""
    absent = {member: at for member, at in expected.items() if member not in view.members}
    remaining = await listed.remaining(absent) if absent else []
    if remaining:
        already = f"{before} messages arrived; the next were" if before else "it was"
        raise NotSentError(f"{already} delivered in view {plain(view.name)}, without {names(remaining)}")


def _goal(group: Group) -> Confirm:
    """What the stack of the group can promise of a message: that all have it, or that it is in the log."""
    return "safe" if "safe" in FAMILIES.of(group.settings.stack).confirms else "logged"


async def _hand_over(group: Group, payloads: Sequence[bytes], item: str | None, order: Order) -> Confirmation:
    goal = _goal(group)
    try:
        if item is None:
            return await group.send_many(payloads, order=order, confirm=goal)
        for payload in payloads[:-1]:
            await group.send(payload, item=item, order=order)
        return await group.send(payloads[-1], item=item, order=order, confirm=goal)
    except ValueError as error:  # too large
        raise NotSentError(str(error)) from error


async def _read(group: Group) -> None:
    """Take what is delivered, so that nobody has to wait for this member."""
    async for _ in group.batches():
        pass


def _source(args: argparse.Namespace) -> AsyncIterator[Sequence[bytes]]:
    """What to send: what is given, or what is read."""
    texts = [[os.fsencode(text) for text in args.text]]
    return _given(texts) if args.text else _lines(sys.stdin.fileno())


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
            "confirmed": _goal(group),
            "members": members,
        }
        print(json.dumps(document, indent=2))
    else:
        messages = "1 message" if sent == 1 else f"{sent} messages"
        others = "1 other" if members == 2 else f"{members - 1} others"
        print(f"sent {messages} to {plain(args.group)} ({others if _goal(group) == 'safe' else 'logged'})")
