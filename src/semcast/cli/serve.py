"""`semcast serve`: a server of a replicated database; `semcast serve demo`: three of them on this host."""

import argparse
import asyncio
import errno
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semcast.cli.errors import JobError, UsageError
from semcast.cli.live import plain, showing_warnings, stopping_on_signals, stopping_when_closed, why
from semcast.engine import RequestError
from semcast.group.errors import ConfigurationError, GroupError
from semcast.sql.errors import DatabaseError
from semcast.sql.failures import is_damage
from semcast.storage import DamageError

if TYPE_CHECKING:
    from semcast.server.home import Home
    from semcast.server.identity import Site
    from semcast.server.node import Say

DEMO = "demo"
NAMES = ("a", "b", "c")
PORT = 7420


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "serve",
        help="run a server of a replicated database",
        description="Run a server of a replicated database until SIGTERM or Ctrl-C. `semcast serve demo`"
        " without options starts three servers on this host; their data is deleted at the end unless --data"
        " names a folder.",
    )
    parser.add_argument("database", metavar="NAME", help="name of the database")
    parser.add_argument("--data", type=Path, metavar="DIR", help="data folder of this server; not shared")
    parser.add_argument(
        "--name", default="", metavar="SERVER", help="name of this server (default: the host name)"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--with", dest="founders", metavar="A,B,C", help="names of all servers that found the database"
    )
    how.add_argument(
        "--join",
        metavar="HOST:PORT",
        help="join an existing database: the --bind address of one of its servers, or `here` for this host."
        " Then run: semcast sql NAME --add SERVER",
    )
    parser.add_argument(
        "--durability",
        choices=["disk", "memory"],
        default="disk",
        help="when to answer a write: once it is on disk, or as soon as it is ordered",
    )
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help=f"address for clients (default: 127.0.0.1:{PORT})"
    )
    parser.add_argument(
        "--tokens",
        type=Path,
        metavar="FILE",
        help="file with one `ROLE TOKEN` a line; roles: read, write, admin",
    )
    parser.add_argument("--cert", default="", metavar="FILE", help="TLS certificate (PEM)")
    parser.add_argument("--key", default="", metavar="FILE", help="TLS private key (PEM)")
    parser.add_argument(
        "--bind", default="", metavar="HOST:PORT", help="address to listen on for the other servers"
    )
    parser.add_argument(
        "--peer",
        dest="peers",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="--bind address of another server; may be repeated",
    )
    parser.add_argument("--key-file", default="", metavar="FILE", help="keyring shared by all servers")
    parser.add_argument(
        "--forget",
        default="",
        metavar="B,C",
        help="declare these servers lost for good; the others continue without them once all others are"
        " running. Data that only they had is lost",
    )
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="with --forget: accept that all servers of the last primary are lost",
    )
    parser.add_argument("--record", default="", metavar="DIR", help="record all events, for semcast check")
    parser.add_argument(
        "--insecure", action="store_true", help="allow listening beyond this host without keys or TLS"
    )
    parser.add_argument("--json", action="store_true", help="print events as JSON")
    parser.add_argument("--until-closed", action="store_true", help=argparse.SUPPRESS)  # of our own processes
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop."""
    _check_extra()
    from semcast.server.serving import ServingError  # noqa: PLC0415
    from semcast.server.tokens import TokenFileError  # noqa: PLC0415

    try:
        if args.database == DEMO and not (args.founders or args.join or args.name):
            from semcast.cli.serve_demo import run_demo  # noqa: PLC0415

            return run_demo(args)
        with showing_warnings():
            return asyncio.run(_serve(args))
    except ConfigurationError as error:
        if _is_disk(error.__cause__):
            raise JobError(f"{error}{_advice(args, error)}") from error
        raise UsageError(str(error)) from error
    except (RequestError, ServingError, TokenFileError) as error:
        raise UsageError(str(error)) from error
    except GroupError as error:
        raise JobError(why(error)) from error
    except DatabaseError as error:
        anew = "Move database.sqlite away with all that begins like it: the server makes it anew from its log"
        raise JobError(f"{error}. {anew}" if is_damage(error.__cause__) else str(error)) from error


def _is_disk(cause: BaseException | None) -> bool:
    """Whether it is the disk that is wrong, and not what the server was told."""
    below = None if cause is None else cause.__cause__
    full = isinstance(below, OSError) and below.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    return full or isinstance(cause, DamageError)


def _advice(args: argparse.Namespace, error: ConfigurationError) -> str:
    """What to do about damage: the others have what this server had."""
    if not isinstance(error.__cause__, DamageError):
        return ""
    server = args.name or "this server"
    return (
        f". Put the file back as it was; or remove {server} at another server (semcast sql {args.database}"
        " --remove), and let it in anew with an empty folder"
    )


def _check_extra() -> None:
    try:
        import starlette  # noqa: F401, PLC0415
        import uvicorn  # noqa: F401, PLC0415
    except ImportError as error:
        raise UsageError("serving needs the extra `server`: pip install 'semcast[server]'") from error


async def _serve(args: argparse.Namespace) -> int:
    from semcast.server.identity import Site, home_of  # noqa: PLC0415
    from semcast.server.node import Wanted, serve  # noqa: PLC0415
    from semcast.server.opening import opened  # noqa: PLC0415
    from semcast.server.serving import ServerAddress  # noqa: PLC0415

    if args.data is None:
        raise UsageError("--data: a server needs a folder of its own")
    joins = args.join is not None
    site = Site(
        database=args.database,
        data=args.data,
        server=args.name,
        founders=_names(args.founders or ""),
        joins=joins,
        durability=args.durability,
        bind=args.bind,
        peers=(*args.peers, *([args.join] if joins and args.join != "here" else [])),
        key_file=args.key_file,
        insecure=args.insecure,
        record=args.record,
    )
    home = home_of(site)
    say = _say_json if args.json else _say
    _forget(args, site, home, say)
    place = ServerAddress(args.listen or f"127.0.0.1:{PORT}", args.cert, args.key, args.insecure)
    wanted = Wanted(args.database, home.server, place, args.tokens)
    with stopping_on_signals() as stopped:
        async with stopping_when_closed(stopped, watched=args.until_closed):
            await serve(wanted, lambda: opened(site, home), stopped, say)
    return 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _forget(args: argparse.Namespace, site: "Site", home: "Home", say: "Say") -> None:
    """Before it starts."""
    from semcast.server.forgetting import forget  # noqa: PLC0415

    names = _names(args.forget)
    if args.accept_loss and not names:
        raise UsageError("--accept-loss is for --forget")
    if names:
        forgotten = forget(site, home, names, loss=args.accept_loss)
        say({"event": "forgot", "server": home.server, "forgotten": forgotten, "known": list(names)})


def _say_json(what: Mapping[str, Any]) -> None:
    print(json.dumps(dict(what)), flush=True)


def _say(what: Mapping[str, Any]) -> None:
    print(plain(sentence(what)), file=sys.stderr, flush=True)


def sentence(what: Mapping[str, Any]) -> str:
    """What happens, for people.

    >>> sentence({"event": "state", "server": "a", "primary": True, "view": ["a", "b"]})
    'a: in the primary, with a, b'
    """
    server = what["server"]
    match what["event"]:
        case "starting":
            return (
                f"{server}: starts; where its database is founded, or where it joins, it waits for the others"
            )
        case "forgot" if not what["forgotten"]:
            return f"{server}: {', '.join(what['known'])} was forgotten before"
        case "forgot":
            gone = ", ".join(what["forgotten"])
            return f"{server}: FORGOT {gone}: the next primary needs all others that were in the last one"
        case "serving":
            return f"{server}: serves at {what['address']}"
        case "state" if what["primary"]:
            return f"{server}: in the primary, with {', '.join(what['view'])}"
        case "state":
            return f"{server}: no primary here, with {', '.join(what['view']) or 'nobody'} ({what['state']})"
        case other:
            return f"{server}: {other}"
