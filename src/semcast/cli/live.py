"""What the verbs that meet a live group share: its options, its errors, and how its things are shown."""

import argparse
import asyncio
import logging
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from secrets import token_hex
from typing import Any

from semcast.cli.errors import UsageError
from semcast.cli.families import FAMILIES as FLAGS
from semcast.core.annotations import Item
from semcast.core.ids import MemberId
from semcast.core.messages import Message
from semcast.core.views import View
from semcast.group import Group
from semcast.group.errors import ConfigurationError, GroupError
from semcast.group.families import FAMILIES
from semcast.group.settings import GroupSettings, resolve


def add_group(parser: argparse.ArgumentParser, *, optional: bool = False, several: bool = False) -> None:
    """Which group, and how to reach it. Where it is optional, a daemon has many."""
    if several:
        parser.add_argument("group", metavar="GROUP", nargs="*", help="names of the groups")
    elif optional:
        parser.add_argument("group", metavar="GROUP", nargs="?", default="", help="name of the group")
    else:
        parser.add_argument("group", metavar="GROUP", help="name of the group")
    parser.add_argument("--key-file", metavar="FILE", help="keyring of the group, made by `semcast keygen`")
    parser.add_argument(
        "--bind",
        metavar="ADDRESS",
        help="address to listen on, IPv6 in brackets (default: loopback, any port)",
    )
    parser.add_argument(
        "--peer",
        dest="peers",
        metavar="ADDRESS",
        action="append",
        help="address of another member; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_daemon(parser: argparse.ArgumentParser) -> None:
    """Whether the group is one of a daemon's."""
    parser.add_argument("--daemon", action="store_true", help="use a group of the daemon on this host")
    parser.add_argument(
        "--socket", default="", metavar="WHERE", help="the daemon's socket (default: the standard path)"
    )


def add_stack(parser: argparse.ArgumentParser) -> None:
    """What a member must have set as the others have."""
    parser.add_argument(
        "--stack", choices=FAMILIES.names(), help="protocol stack of the group (default: ring)"
    )
    for family in FLAGS:
        family.live.declare(parser)


def settings_of(args: argparse.Namespace, own: Mapping[str, Any] | None = None) -> GroupSettings:
    """The settings in force for this command.

    What `semcast.toml` and the environment say of a program is for that program: its port, its name, its
    recording and its metrics are not ours.
    """
    if not args.group:
        raise UsageError("a group needs a name")
    given: dict[str, Any] = {"key_file": args.key_file, "bind": args.bind, "peers": args.peers}
    flags = [name for family in FLAGS for name in family.live.names]
    given |= {name: getattr(args, name, None) for name in ("stack", *flags)}
    with errors_explained():
        found = resolve(given)
        if args.bind is None and found.bind:
            given["bind"] = found.bind.rpartition(":")[0] + ":0"
        visiting = FAMILIES.of(found.stack).visiting
        given.update(record="", metrics="", **visiting, **(own or {}))
        return resolve(given)


def member_name(args: argparse.Namespace) -> str | None:
    """A name for who is there for one command: given, or made up. A fixed list has all names."""
    if args.name is not None:
        return str(args.name)
    return None if FAMILIES.of(settings_of(args).stack).fixed else f"{args.verb}-{token_hex(3)}"


@contextmanager
def errors_explained() -> Iterator[None]:
    """Wrong settings are the user's business, and are told in one line."""
    try:
        yield
    except ConfigurationError as error:
        raise UsageError(str(error)) from error


@contextmanager
def showing_warnings() -> Iterator[None]:
    """What the library logs as a warning or worse goes to standard error: of programs that run for long."""
    handler, log = logging.StreamHandler(), logging.getLogger("semcast")
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_Plain())
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class _Plain(logging.Formatter):
    """One line, with nothing in it that a terminal obeys."""

    def format(self, record: logging.LogRecord) -> str:
        """The level, and what is said."""
        return plain(f"{record.levelname.lower()}: {record.getMessage()}")


@contextmanager
def stopping_on_signals() -> Iterator[asyncio.Event]:
    """An event that is set when this program is interrupted or ended, so that it can leave in good order."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stopped.set)
    try:
        yield stopped
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)


@asynccontextmanager
async def stopping_when_closed(stopped: asyncio.Event, *, watched: bool) -> AsyncIterator[None]:
    """Where it is watched, the end of standard input stops this program, too: who started it is gone."""
    closing = asyncio.create_task(_stop_when_closed(stopped)) if watched else None
    try:
        yield
    finally:
        if closing is not None:
            closing.cancel()


async def _stop_when_closed(stopped: asyncio.Event) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while await reader.read(1 << 10):
        pass
    stopped.set()


@asynccontextmanager
async def joined(group: Group, stopped: asyncio.Event, patience: float | None = None) -> AsyncIterator[bool]:
    """Be in a group; False if the program was stopped before it was let in.

    Where views are agreed on, a command founds no group: it waits for one.
    """
    entering = asyncio.create_task(group.__aenter__())
    stop = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait((entering, stop), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.cancel()
        if not entering.done():
            entering.cancel()
        await asyncio.gather(entering, stop, return_exceptions=True)
    if entering.cancelled():
        if not stopped.is_set():
            raise GroupError(f"there is no group {plain(group.name)!r} that lets it in")
        yield False
        return
    entering.result()
    try:
        yield True
    finally:
        await group.close()


def why(error: GroupError) -> str:
    """An error, with what is behind it."""
    behind = "" if error.__cause__ is None else str(error.__cause__)
    return str(error) if behind in str(error) else f"{error}: {behind}"


# How things are shown. Names, items and payloads come from others: nothing in them may move the cursor.


def plain(text: str) -> str:
    r"""Text on one line, safe for a terminal.

    >>> plain("a\tb\x1b[2J")
    'a\\tb\\x1b[2J'
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


def payload_text(payload: bytes) -> str:
    r"""A payload as text, where it is text, else in hexadecimal.

    >>> payload_text(b"101.5"), payload_text(b"\xff\x00")
    ('101.5', '0xff00')
    """
    try:
        return plain(payload.decode())
    except UnicodeDecodeError:
        return "0x" + payload.hex()


def short_names(members: Iterable[MemberId]) -> dict[MemberId, str]:
    """Names for a table: the incarnation is shown only where two members differ in nothing else.

    >>> list(short_names([MemberId("a", 7), MemberId("b", 8), MemberId("b", 9)]).values())
    ['a', 'b#8', 'b#9']
    """
    known = dict.fromkeys(members)
    often = Counter(member.name for member in known)
    return {member: plain(member.name if often[member.name] == 1 else str(member)) for member in known}


def view_name(view: int, representative: MemberId | None) -> str:
    """Which view: its number, and who formed it, since two sides of a partition may count alike."""
    return str(view) if representative is None else f"{view}@{plain(str(representative))}"


def item_of(message: Message) -> str | None:
    """The item a message is about, if it says so."""
    return message.annotation.item if isinstance(message.annotation, Item) else None


def member_json(member: MemberId | None) -> dict[str, object] | None:
    """A member."""
    return None if member is None else {"name": member.name, "incarnation": member.incarnation}


def view_json(view: View) -> dict[str, object]:
    """A view."""
    return {
        "id": view.id,
        "representative": member_json(view.representative),
        "members": [member_json(member) for member in view.members],
    }


def message_json(message: Message) -> dict[str, object]:
    """A message; the payload is `text` where it is text, else `hex`."""
    described: dict[str, object] = {
        "sender": member_json(message.sender),
        "seq": message.id.seq,
        "item": item_of(message),
    }
    try:
        described["text"] = message.payload.decode()
    except UnicodeDecodeError:
        described["hex"] = message.payload.hex()
    return described
