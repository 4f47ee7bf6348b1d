"""`semcast dashboard`: a page in the browser that shows groups, live or recorded, without joining them."""

import argparse
import asyncio
import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from semcast.cli.errors import UsageError
from semcast.cli.live import add_group, errors_explained, plain, settings_of, stopping_on_signals
from semcast.extras import MissingExtraError
from semcast.group.observing import observe
from semcast.group.settings import check_group
from semcast.net.addresses import AddressError, is_loopback, split_address
from semcast.net.observer import Observer

if TYPE_CHECKING:
    from semcast.dashboard.feed import Feed
    from semcast.dashboard.playing import Film

LISTEN = "127.0.0.1:8080"


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "dashboard",
        help="watch groups in the browser",
        description="Serve a page that shows groups as they are: members, views, rates, queues, flow control"
        " and what changed. It joins no group and changes nothing. With --replay it shows recorded groups.",
    )
    add_group(parser, several=True)
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        default=LISTEN,
        help=f"where the page is (default: {LISTEN}; port 0: any)",
    )
    parser.add_argument(
        "--insecure", action="store_true", help="let other hosts see the page: there is no password"
    )
    parser.add_argument("--replay", metavar="DIR", type=Path, help="show the runs recorded in a folder")
    parser.add_argument("--speed", type=_speed, default=1.0, help="of a replay: so many times as fast")
    parser.set_defaults(run=run)


def _speed(text: str) -> float:
    found = float(text)
    if not 0 < found < 1e6:
        raise argparse.ArgumentTypeError(f"{text} times as fast: write a number above 0")
    return found


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    _check(args)
    try:
        import starlette  # noqa: F401, PLC0415
        import uvicorn  # noqa: F401, PLC0415
    except ImportError:
        raise MissingExtraError(
            "a dashboard needs the extra `server`: pip install 'semcast[server]'"
        ) from None
    if args.replay is not None:
        return asyncio.run(_replay(args, _films(args.replay)))
    with ExitStack() as stack:
        return asyncio.run(_watch(args, [(group, _observed(args, group, stack)) for group in _groups(args)]))


def _check(args: argparse.Namespace) -> None:
    if bool(args.group) == (args.replay is not None):
        raise UsageError("name one or more groups to watch, or a folder to --replay")
    try:
        place = split_address(args.listen, any_port=True)
    except AddressError as error:
        raise UsageError(f"--listen: {error}") from error
    if not is_loopback(place) and place[0] != "localhost" and not args.insecure:
        raise UsageError(
            f"--listen {args.listen}: everybody who reaches it could watch: add --insecure if they may"
        )


def _groups(args: argparse.Namespace) -> list[str]:
    return list(dict.fromkeys(args.group))


def _observed(args: argparse.Namespace, group: str, stack: ExitStack) -> Observer:
    with errors_explained():
        check_group(group)
        settings = settings_of(argparse.Namespace(**{**vars(args), "group": group}))
        return stack.enter_context(observe(group, settings))


def _films(folder: Path) -> "list[Film]":
    from semcast.dashboard.playing import films  # noqa: PLC0415 (histories need pyarrow: slow to load)
    from semcast.history import HistoryError  # noqa: PLC0415

    try:
        found = films(folder)
    except HistoryError as error:
        raise UsageError(f"--replay: {error}") from error
    if not found:
        raise UsageError(f"--replay: {folder}: nothing happens in what is recorded there")
    return found


async def _watch(args: argparse.Namespace, observers: list[tuple[str, Observer]]) -> int:
    from semcast.dashboard.feed import Feed  # noqa: PLC0415 (the extra may be missing)
    from semcast.dashboard.watching import watch  # noqa: PLC0415

    feed = Feed({"replay": ""})
    names = ", ".join(plain(group) for group, _ in observers)
    return await _serve(args, feed, asyncio.create_task(watch(feed, observers)), f"watching {names}")


async def _replay(args: argparse.Namespace, shown: "list[Film]") -> int:
    from semcast.dashboard.feed import Feed  # noqa: PLC0415
    from semcast.dashboard.playing import play  # noqa: PLC0415

    feed = Feed({"replay": args.replay.name or str(args.replay), "speed": args.speed})
    names = ", ".join(plain(film.group) for film in shown)
    return await _serve(args, feed, asyncio.create_task(play(feed, shown, args.speed)), f"replaying {names}")


async def _serve(args: argparse.Namespace, feed: "Feed", showing: "asyncio.Task[None]", what: str) -> int:
    from semcast.dashboard.application import application  # noqa: PLC0415
    from semcast.server.serving import HttpServer, ServerAddress, ServingError  # noqa: PLC0415

    server = HttpServer(application(feed), ServerAddress(listen=args.listen))
    try:
        with stopping_on_signals() as stopped:
            async with server:
                address = f"http://{server.address}/"
                said = json.dumps({"address": address}) if args.json else f"{what} at {address}"
                print(said, flush=True)
                showing.add_done_callback(lambda done: _stop_on_failure(done, stopped))
                await stopped.wait()
                feed.close()
    except ServingError as error:
        raise UsageError(f"--listen: {error}") from error
    finally:
        showing.cancel()
    if showing.done() and not showing.cancelled():
        showing.result()
    return 0


def _stop_on_failure(showing: "asyncio.Task[None]", stopped: asyncio.Event) -> None:
    """A replay that has ended stays on the page."""
    if not showing.cancelled() and showing.exception() is not None:
        stopped.set()
