"""`semcast log forget`: have loggers go on without one that never comes back."""

import argparse
import asyncio
import json
from pathlib import Path

from semcast.cli.errors import JobError, UsageError
from semcast.cli.live import plain, why
from semcast.group.errors import ConfigurationError, GroupError
from semcast.storage.errors import StorageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it can be told."""
    parser.add_argument(
        "where",
        metavar="DIR|GROUP",
        help="folder of a stopped logger, or the name of a group with running loggers",
    )
    parser.add_argument("logger", metavar="LOGGER", help="name of the lost logger")
    parser.add_argument("--group", help="with DIR: only this group")
    parser.add_argument(
        "--ask", default="", metavar="NAME", help="with GROUP: the logger to tell (default: any)"
    )
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="S", help="with GROUP: seconds to wait"
    )
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
    """In a folder, or in a group."""
    try:
        if Path(args.where).is_dir():
            return _in_folder(args)
        return asyncio.run(_in_group(args))
    except ConfigurationError as error:
        raise UsageError(str(error)) from error
    except (GroupError, StorageError) as error:
        raise JobError(why(error) if isinstance(error, GroupError) else str(error)) from error
    except TimeoutError:
        raise JobError(
            f"after {args.timeout:g} s not all loggers of {plain(args.where)} have said that they go on"
            f" without {plain(args.logger)}: are all others there? It goes on; ask again to see"
        ) from None


def _in_folder(args: argparse.Namespace) -> int:
    from semcast.logger.amending import forget  # noqa: PLC0415
    from semcast.logger.offline import log_folders  # noqa: PLC0415

    folder = Path(args.where)
    for log in log_folders(folder):
        if args.group in (None, log.group):
            forget(folder, log, args.logger)
            _say(args, log.group)
    return 0


async def _in_group(args: argparse.Namespace) -> int:
    from semcast.group.logclient import log  # noqa: PLC0415

    settings = {"key_file": args.key_file, "bind": args.bind, "peers": args.peers}
    async with asyncio.timeout(args.timeout), log(args.where, logger=args.ask, **settings) as found:
        await found.forget(args.logger)
    _say(args, args.where)
    return 0


def _say(args: argparse.Namespace, group: str) -> None:
    if args.json:
        print(json.dumps({"group": group, "forgotten": args.logger}))
    else:
        print(f"{plain(group)}: {plain(args.logger)} is forgotten")
