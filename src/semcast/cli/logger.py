"""`semcast logger`: keeps what a group sends, for members that are slow, away or new."""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from semcast.cli.errors import JobError, UsageError
from semcast.cli.live import plain, stopping_on_signals, stopping_when_closed, why
from semcast.group.errors import ConfigurationError, GroupError
from semcast.storage.errors import FullError, StorageError


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "logger",
        help="run a logger: store the messages of groups on disk",
        description="Run a logger of groups with stack gossip until SIGTERM or Ctrl-C. Loggers and members on"
        " one host find each other; on a network set --bind and --peer. See docs/logs.md.",
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="data folder of this logger; not shared")
    parser.add_argument(
        "--group",
        dest="groups",
        metavar="GROUP",
        action="append",
        default=[],
        help="group to log; may be repeated (default: all groups with a log in DIR)",
    )
    parser.add_argument(
        "--name", default="", help="name of the logger (default: generated once and kept in DIR)"
    )
    parser.add_argument(
        "--with", dest="loggers", metavar="A,B", help="names of all loggers, if there are several"
    )
    parser.add_argument("--region", help="location of the logger; members of the same region prefer it")
    parser.add_argument(
        "--acks",
        type=int,
        metavar="N",
        help="number of loggers that must store a message before it counts as logged",
    )
    parser.add_argument(
        "--retention",
        choices=("live", "stable", "limits"),
        help="what to keep: messages without a replacement (live, default), messages some session has not"
        " read (stable), or the latest (limits)",
    )
    parser.add_argument(
        "--messages", type=int, metavar="N", help="with retention limits: messages to keep per sender"
    )
    parser.add_argument("--bytes", metavar="SIZE", help="bytes to keep at most, such as 10GB")
    parser.add_argument("--age", metavar="TIME", help="how long to keep messages at most, such as 60m")
    parser.add_argument(
        "--bind",
        default="",
        metavar="HOST:PORT",
        help="address to listen on for the first group; each further group takes the next port",
    )
    parser.add_argument(
        "--peer",
        dest="peers",
        action="append",
        metavar="HOST:PORT",
        help="address of another member; may be repeated",
    )
    parser.add_argument("--key-file", metavar="FILE", help="the groups' keyring, made by `semcast keygen`")
    parser.add_argument(
        "--insecure", action="store_true", default=None, help="allow listening beyond this host without a key"
    )
    parser.add_argument("--metrics", default="", metavar="HOST:PORT", help="serve metrics for Prometheus")
    parser.add_argument("--record", metavar="DIR", help="record all events, for semcast check")
    parser.add_argument(
        "--record-run", metavar="RUN", help="name of the recorded run, the same at all members"
    )
    parser.add_argument(
        "--print-unit", action="store_true", help="print a systemd unit for this command and exit"
    )
    parser.add_argument("--json", action="store_true", help="print events as JSON")
    parser.add_argument("--until-closed", action="store_true", help=argparse.SUPPRESS)  # of our own processes
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Log until told to stop."""
    try:
        if args.print_unit:
            return _print_unit(args)
        return asyncio.run(_log(args))
    except FullError as error:
        raise JobError(str(error)) from error
    except (ConfigurationError, StorageError) as error:
        raise UsageError(str(error)) from error
    except GroupError as error:
        raise JobError(why(error)) from error


def _print_unit(args: argparse.Namespace) -> int:
    from semcast.logger.unit import unit  # noqa: PLC0415

    if not args.groups:
        raise UsageError("--print-unit: name the groups with --group")
    folder = str(args.folder.absolute())
    words = [sys.executable, "-m", "semcast", "logger", folder]
    for group in args.groups:
        words += ["--group", group]
    if args.loggers:
        words += ["--with", args.loggers]
    for flag in ("name", "region", "acks", "retention", "messages", "bytes", "age", "bind", "metrics"):
        if value := getattr(args, flag):
            words += [f"--{flag}", str(value)]
    for peer in args.peers or ():
        words += ["--peer", peer]
    if args.key_file:
        words += ["--key-file", str(Path(args.key_file).absolute())]
    words += ["--insecure"] if args.insecure else []
    print(unit(args.name or "logger", folder, words), end="")
    return 0


async def _log(args: argparse.Namespace) -> int:
    from semcast.logger import LoggerNode, Served, open_home  # noqa: PLC0415

    say = _say_json if args.json else _say
    named = () if args.loggers is None else tuple(args.loggers.split(","))
    home = open_home(args.folder, args.name, named, args.acks)
    try:
        groups = tuple(dict.fromkeys(args.groups)) or tuple(home.groups())
        if not groups:
            raise UsageError(f"--group: name a group; {args.folder} has no log yet")
        settings = {
            "retention": args.retention,
            "loggers": list(home.loggers) or None,
            "region": args.region,
            "log_acks": home.log_acks,
            "log_messages": args.messages,
            "log_bytes": args.bytes,
            "log_age": args.age,
            "peers": args.peers,
            "key_file": args.key_file,
            "insecure": args.insecure,
            "record": args.record,
            "record_run": args.record_run,
        }
        served = Served(groups=groups, settings=settings, bind=args.bind, metrics=args.metrics)
        with stopping_on_signals() as stopped:
            async with stopping_when_closed(stopped, watched=args.until_closed):
                await _serve(LoggerNode(home, served), stopped, say)
    finally:
        home.close()
    return 0


async def _serve(node: Any, stopped: asyncio.Event, say: Callable[[Mapping[str, Any]], None]) -> None:
    async with node:
        for group in node.groups:
            status = await node.status(group.name)
            host, port = group.address
            say(
                {
                    "event": "logging",
                    "logger": node.home.name,
                    "group": group.name,
                    "address": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
                    "log": status.log,
                    "messages": status.messages,
                    "sessions": len(status.sessions),
                    "folder": str(group.folder),
                }
            )
        if node.metrics_address is not None:
            host, port = node.metrics_address
            say({"event": "metrics", "logger": node.home.name, "address": f"{host}:{port}"})
        await node.watch(stopped, say)
        say({"event": "stopping", "logger": node.home.name})


def _say_json(what: Mapping[str, Any]) -> None:
    print(json.dumps(dict(what)), flush=True)


def _say(what: Mapping[str, Any]) -> None:
    print(plain(sentence(what)), file=sys.stderr, flush=True)


def sentence(what: Mapping[str, Any]) -> str:
    """What happens, for people.

    >>> sentence({"event": "stopping", "logger": "log-1"})
    'log-1: stopping'
    """
    logger = what["logger"]
    match what["event"]:
        case "logging":
            return (
                f"{logger}: logs {what['group']} at {what['address']} in {what['folder']}"
                f" ({what['messages']} messages, {what['sessions']} sessions)"
            )
        case "metrics":
            return f"{logger}: metrics at http://{what['address']}/metrics"
        case "full":
            return (
                f"{logger}: the log of {what['group']} has no room for more senders or sessions;"
                f" {what['refused']} times one was refused"
            )
        case other:
            return f"{logger}: {other}"
