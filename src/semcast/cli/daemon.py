"""`semcast daemon`: one member of a domain on a host, for many local programs in any language."""

import argparse
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semcast.cli.errors import JobError, UsageError
from semcast.cli.live import plain
from semcast.group.errors import ConfigurationError, GroupError
from semcast.group.settings import parse_size

if TYPE_CHECKING:
    from semcast.daemon.opening import DaemonSettings

_ASKS = ("status", "clients", "groups", "drop")


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "daemon",
        help="run a daemon that connects local programs to groups, or query a running one",
        description="Run a daemon until SIGTERM or Ctrl-C: it joins a domain and lets local programs use its"
        " groups. Or query the daemon on this host: status, clients, groups, drop. See docs/daemon.md.",
    )
    parser.add_argument(
        "action",
        nargs="?",
        choices=("run", *_ASKS),
        default="run",
        metavar="ACTION",
        help="run (default), status, clients, groups [NAME], drop CLIENT",
    )
    parser.add_argument(
        "about", nargs="?", default="", metavar="WHAT", help="name of a group, or of the client to drop"
    )
    parser.add_argument(
        "--socket", default="", metavar="PATH", help="path of the Unix socket (default: the standard path)"
    )
    parser.add_argument(
        "--socket-mode", default="600", metavar="MODE", help="file mode of the Unix socket (default: 600)"
    )
    parser.add_argument(
        "--domain", default="semcast", help="name of the domain; daemons of one domain find each other"
    )
    parser.add_argument("--name", default="", help="name of the daemon; clients are called NAME@DAEMON")
    parser.add_argument(
        "--listen", default="", metavar="HOST:PORT", help="accept clients with a token over TCP"
    )
    parser.add_argument(
        "--ws", default="", metavar="HOST:PORT", help="accept clients with a token over WebSocket, at /v1"
    )
    parser.add_argument(
        "--pages", default="", metavar="DIR", help="also serve the files of this folder at the --ws address"
    )
    parser.add_argument(
        "--origin",
        dest="origins",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="web origin that may use the WebSocket, such as https://example.org; may be repeated",
    )
    parser.add_argument("--access", default="", metavar="FILE", help="file with tokens and permissions")
    parser.add_argument("--cert", default="", metavar="FILE", help="TLS certificate (PEM)")
    parser.add_argument("--key", default="", metavar="FILE", help="TLS private key (PEM)")
    parser.add_argument(
        "--allow-block",
        action="store_true",
        help="allow clients to choose policy block, which slows the group down",
    )
    parser.add_argument(
        "--queue-messages", type=int, default=4096, metavar="N", help="messages that may wait for a client"
    )
    parser.add_argument(
        "--queue-bytes", default="16MiB", metavar="SIZE", help="bytes of messages that may wait for a client"
    )
    parser.add_argument(
        "--leave-after",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="disconnect a client whose queue has been full for this long (default: 5)",
    )
    parser.add_argument(
        "--bind", default=None, metavar="HOST:PORT", help="address to listen on for other daemons"
    )
    parser.add_argument(
        "--peer",
        dest="peers",
        action="append",
        metavar="HOST:PORT",
        help="address of another daemon; may be repeated",
    )
    parser.add_argument("--key-file", metavar="FILE", help="keyring of the domain, made by `semcast keygen`")
    parser.add_argument(
        "--insecure", action="store_true", default=None, help="allow listening beyond this host without a key"
    )
    parser.add_argument("--metrics", default="", metavar="HOST:PORT", help="serve metrics for Prometheus")
    parser.add_argument("--record", metavar="DIR", help="record all events, for semcast check")
    parser.add_argument(
        "--record-run", metavar="RUN", help="name of the recorded run, the same at all daemons"
    )
    parser.add_argument(
        "--print-unit", action="store_true", help="print a systemd unit for this command and exit"
    )
    parser.add_argument("--json", action="store_true", help="print events as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run a daemon, or ask one."""
    try:
        if args.action != "run":
            return _ask(args)
        if args.print_unit:
            return _print_unit(args)
        return _serve(args)
    except ConfigurationError as error:
        raise UsageError(str(error)) from error
    except GroupError as error:
        raise JobError(str(error)) from error


def _settings(args: argparse.Namespace) -> "DaemonSettings":
    from semcast.daemon.opening import DaemonSettings  # noqa: PLC0415

    try:
        mode = int(args.socket_mode, 8)
    except ValueError:
        raise UsageError(f"--socket-mode {args.socket_mode}: write it as for chmod, such as 660") from None
    member = {
        "name": args.name or None,
        "bind": args.bind,
        "peers": args.peers,
        "key_file": args.key_file,
        "insecure": args.insecure,
        "record": args.record,
        "record_run": args.record_run,
    }
    return DaemonSettings(
        domain=args.domain,
        socket=args.socket,
        socket_mode=mode,
        listen=args.listen,
        ws=args.ws,
        origins=tuple(args.origins),
        pages=args.pages,
        access=args.access,
        metrics=args.metrics,
        certificate=args.cert,
        key=args.key,
        allow_block=args.allow_block,
        queue_messages=args.queue_messages,
        queue_bytes=parse_size(args.queue_bytes),
        leave_after=args.leave_after,
        member=member,
    )


def _serve(args: argparse.Namespace) -> int:
    from semcast.daemon.collecting import collect_seldom  # noqa: PLC0415
    from semcast.daemon.notify import notify  # noqa: PLC0415
    from semcast.daemon.opening import open_daemon  # noqa: PLC0415

    say = _say_json if args.json else _say
    server = open_daemon(_settings(args))
    collect_seldom()
    stack = server.member.stack

    def ready() -> None:
        say(
            {
                "event": "serving",
                "daemon": str(stack.me),
                "domain": args.domain,
                "doors": server.places,
            }
        )
        if server.metrics_place:
            say({"event": "metrics", "daemon": str(stack.me), "address": server.metrics_place})
        notify("READY=1")

    def stop() -> None:
        notify("STOPPING=1")
        server.stop()

    server.on_settled = ready
    with _signals({signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: server.reload}):
        server.run()
    say({"event": "stopped", "daemon": str(stack.me)})
    return 0


@contextmanager
def _signals(deeds: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """What to do at signals, while a daemon runs in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, lambda number, _: deeds[signal.Signals(number)]()) for each in deeds}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _print_unit(args: argparse.Namespace) -> int:
    from semcast.daemon.unit import unit  # noqa: PLC0415

    words = [
        sys.executable,
        "-m",
        "semcast",
        "daemon",
        "--socket",
        args.socket or "/run/semcast/semcast.sock",
    ]
    words += ["--domain", args.domain, "--socket-mode", args.socket_mode if args.socket else "666"]
    for flag in ("name", "listen", "ws", "bind", "metrics"):
        if value := getattr(args, flag):
            words += [f"--{flag}", str(value)]
    for flag in ("pages", "access", "cert", "key", "key_file"):
        if value := getattr(args, flag):
            words += [f"--{flag.replace('_', '-')}", str(Path(value).absolute())]
    for flag, values in (("--origin", args.origins), ("--peer", args.peers or ())):
        for value in values:
            words += [flag, value]
    words += ["--insecure"] if args.insecure else []
    words += ["--allow-block"] if args.allow_block else []
    print(unit(args.domain, words), end="")
    return 0


def _ask(args: argparse.Namespace) -> int:
    from semcast.daemon.asking import ask  # noqa: PLC0415
    from semcast.domains.places import find_daemon  # noqa: PLC0415

    if args.action == "drop" and not args.about:
        raise UsageError("drop: name a client")
    answer = ask(args.socket or find_daemon(), args.action, args.about)
    if args.json:
        print(answer)
        return 0
    found = json.loads(answer)
    for row in found if isinstance(found, list) else [found]:
        print(plain(line_of(row)))
    return 0


def line_of(row: Mapping[str, Any]) -> str:
    """What a daemon says, for people.

    >>> line_of({"group": "a", "members": 2})
    'group=a members=2'
    """
    return " ".join(f"{key}={_text(value)}" for key, value in row.items() if value not in ("", None))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "-"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _say_json(what: Mapping[str, Any]) -> None:
    print(json.dumps(dict(what)), flush=True)


def _say(what: Mapping[str, Any]) -> None:
    print(plain(sentence(what)), file=sys.stderr, flush=True)


def sentence(what: Mapping[str, Any]) -> str:
    """What happens, for people.

    >>> sentence({"event": "stopped", "daemon": "a"})
    'a: stopped'
    """
    if what["event"] == "serving":
        return f"{what['daemon']}: serves {what['domain']} at {', '.join(what['doors'])}"
    if what["event"] == "metrics":
        return f"{what['daemon']}: metrics at http://{what['address']}/metrics"
    return f"{what['daemon']}: {what['event']}"
