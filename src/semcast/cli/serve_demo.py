"""`semcast serve demo`: three servers of a database on this host, with nothing configured."""

import argparse
import asyncio
import shutil
import socket
import tempfile
from pathlib import Path

from semcast.cli.errors import JobError
from semcast.cli.live import plain, stopping_on_signals
from semcast.demo.servers import NAMES, Servers
from semcast.demo.supervisor import DemoError
from semcast.server.registry import found

PORT = 7420


def run_demo(args: argparse.Namespace) -> int:
    """Serve until told to stop."""
    _check_alone(args.database)
    try:
        if args.data is not None:
            return asyncio.run(_serve(args, args.data))
        data = Path(tempfile.mkdtemp(prefix="semcast-demo-"))
        try:
            return asyncio.run(_serve(args, data))
        finally:
            shutil.rmtree(data, ignore_errors=True)
    except DemoError as error:
        raise JobError(str(error)) from error


def _check_alone(database: str) -> None:
    """Servers of the same names would refuse each other."""
    running = found(database)
    if running:
        where = ", ".join(f"{note.server} (process {note.process})" for note in running)
        raise JobError(
            f"{database!r} runs on this host already: {where}. Use it (semcast sql {database}), or stop it"
            " first"
        )


async def _serve(args: argparse.Namespace, data: Path) -> int:
    with stopping_on_signals() as stopped:
        servers = Servers(args.database, data, lambda name: ("--listen", f"127.0.0.1:{_port(name)}"))
        try:
            await servers.start()
            kept = f"kept in {data}" if args.data is not None else "gone in the end"
            print(f"a database of three servers, {', '.join(NAMES)}; its data are {plain(kept)}")
            for name, address in sorted(servers.addresses.items()):
                print(f"  {name} http://{address}")
            print(f"In another terminal:\n  semcast sql {args.database}\nCtrl-C ends it.", flush=True)
            while not stopped.is_set():
                await servers.news()
                if len(servers.gone()) == len(NAMES):
                    raise DemoError("all servers have ended")
        finally:
            await servers.stop()
    return 0


def _port(name: str) -> int:
    """The usual one, unless somebody has it."""
    port = PORT + NAMES.index(name)
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port
