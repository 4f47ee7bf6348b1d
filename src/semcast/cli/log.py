"""`semcast log`: look at the logs of a logger, replay them, check them, trim them, follow them."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semcast.cli.errors import JobError, UsageError
from semcast.cli.live import member_json, message_json, payload_text, plain
from semcast.cli.log_forget import add_arguments as add_forget
from semcast.cli.log_tail import add_arguments
from semcast.storage.errors import StorageError

if TYPE_CHECKING:
    from semcast.logger.offline import LogFolder


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "log",
        help="inspect the logs of a logger",
        description="Inspect the folder of a logger, running or stopped; tail joins a group instead.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, about, act in (
        ("ls", "summarise each log", _ls),
        ("sessions", "list the sessions and how far each has read", _sessions),
        ("check", "check every block and record for damage", _check),
        ("replay", "print the messages of a log", _replay),
        ("trim", "delete the oldest messages of a stopped logger", _trim),
    ):
        action = actions.add_parser(name, help=about)
        action.add_argument("folder", metavar="DIR", type=Path, help="folder of a logger")
        action.add_argument("--group", help="only this group")
        action.add_argument("--json", action="store_true", help="print JSON")
        action.set_defaults(run=run, act=act)
        if name == "replay":
            action.add_argument("--sender", default="", metavar="NAME", help="only messages of this sender")
            action.add_argument(
                "--from",
                dest="first",
                type=int,
                default=0,
                metavar="SEQ",
                help="first sequence number to print, for each sender",
            )
        if name == "trim":
            action.add_argument(
                "--keep", type=int, required=True, metavar="N", help="messages to keep of each sender"
            )

    add_forget(
        actions.add_parser("forget", help="remove a lost logger, so that the others no longer wait for it")
    )
    add_arguments(
        actions.add_parser("tail", help="join a group and print its logged messages from any start")
    )


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from semcast.logger.offline import log_folders  # noqa: PLC0415

    try:
        found = log_folders(args.folder)
    except StorageError as error:
        raise UsageError(str(error)) from error
    if args.group is not None:
        found = [log for log in found if log.group == args.group]
        if not found:
            raise UsageError(f"--group {args.group}: {args.folder} has no log of it")
    act: Callable[[argparse.Namespace, list[LogFolder]], int] = args.act
    try:
        return act(args, found)
    except StorageError as error:
        raise JobError(str(error)) from error


def _ls(args: argparse.Namespace, logs: "list[LogFolder]") -> int:
    for log in logs:
        status = log.status()
        if args.json:
            _print(
                group=log.group,
                logger=log.logger,
                log=status.log,
                messages=status.messages,
                bytes=log.bytes,
                sessions=len(status.sessions),
                streams=[
                    {
                        "sender": member_json(each.sender),
                        "messages": each.messages,
                        "replaced": each.replaced,
                        "first": each.first,
                        "logged": each.logged,
                        "over": each.over,
                    }
                    for each in status.streams
                ],
            )
            continue
        print(
            f"{plain(log.group)}: log {status.log} of {plain(log.logger)}, {status.messages} messages,"
            f" {log.bytes} bytes, {len(status.sessions)} sessions"
        )
        for each in status.streams:
            over = ", over" if each.over else ""
            print(
                f"  {plain(str(each.sender))}: {each.messages} messages"
                f" ({each.first}..{each.logged}), {each.replaced} replaced{over}"
            )
    return 0


def _sessions(args: argparse.Namespace, logs: "list[LogFolder]") -> int:
    for log in logs:
        for each in log.status().sessions:
            if args.json:
                session = member_json(each.member)
                _print(group=log.group, session=session, lag=each.lag, through=each.through)
                continue
            print(f"{plain(log.group)}: {plain(str(each.member))} lacks {each.lag} messages")
            for stream, seq in each.through.items():
                print(f"  {plain(stream)} up to {seq}")
    return 0


def _check(args: argparse.Namespace, logs: "list[LogFolder]") -> int:
    sound = True
    for log in logs:
        try:
            status = log.status()
        except StorageError as error:
            sound = False
            if args.json:
                _print(group=log.group, folder=str(log.path), sound=False, error=str(error))
            else:
                print(f"{plain(log.group)}: {error}")
            continue
        if args.json:
            _print(
                group=log.group,
                folder=str(log.path),
                sound=True,
                records=log.records,
                messages=status.messages,
                bytes=log.bytes,
                torn=log.torn,
            )
            continue
        torn = f"; {log.torn} bytes at the end are no whole block, and will be cut" if log.torn else ""
        print(f"{plain(log.group)}: {log.records} records, {status.messages} messages: sound{torn}")
    return 0 if sound else 1


def _replay(args: argparse.Namespace, logs: "list[LogFolder]") -> int:
    for log in logs:
        for message in log.messages(args.sender, args.first):
            if args.json:
                _print(group=log.group, **message_json(message))
            else:
                sender = plain(str(message.sender))
                print(f"{sender} {message.id.seq} {payload_text(message.payload)}")
    return 0


def _trim(args: argparse.Namespace, logs: "list[LogFolder]") -> int:
    from semcast.logger.amending import trim  # noqa: PLC0415

    if args.keep < 0:
        raise UsageError(f"--keep {args.keep}: at least 0")
    for log in logs:
        dropped = trim(args.folder, log, args.keep)
        if args.json:
            _print(group=log.group, dropped=dropped)
        else:
            print(f"{plain(log.group)}: dropped {dropped} messages")
    return 0


def _print(**what: Any) -> None:
    print(json.dumps(what))
