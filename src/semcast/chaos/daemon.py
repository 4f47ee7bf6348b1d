"""One daemon in a process of its own: `python -m semcast.chaos.daemon '{"group": ..., "settings": {...}}'`.

It obeys its standard input: `quiet` (it sends nothing of its own), `leave`. Clients are `chaos.client`.
"""

import json
import os
import sys
import threading

from semcast.chaos.orders import say
from semcast.daemon.opening import DaemonSettings, open_daemon
from semcast.daemon.server import DaemonServer
from semcast.processes import Line

_QUEUE = 64
"""Messages that may wait for a client: few, so that those who are stopped or never read are put out."""
_LEAVE_AFTER = 2.0


def socket_of(daemon: str) -> str:
    """Where clients find it, from the folder of the run: paths of sockets must not be long."""
    return f"{daemon}.sock"


def run(order: Line) -> None:
    """Until told to leave, or until its member fails."""
    settings = {name: value for name, value in order["settings"].items() if name != "stack"}
    wanted = DaemonSettings(
        domain=order["group"],
        socket=socket_of(settings["name"]),
        queue_messages=_QUEUE,
        leave_after=_LEAVE_AFTER,
        member=settings,
    )
    server = open_daemon(wanted)
    server.on_settled = _serves
    say("begun", incarnation=server.member.parts.member.incarnation)
    threading.Thread(target=_obey, args=(server,), daemon=True).start()
    server.run()
    say("left")


def _serves() -> None:
    say("joined")
    say("report", sent=0, waits=0.0, phase="serves", unsent=0)


def _obey(server: DaemonServer) -> None:
    """Unbuffered: a thread that waits in a buffer's lock is in the way of a process that ends by an error."""
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as orders:
        for line in orders:
            match json.loads(line)["do"]:
                case "quiet":
                    say("quiet")
                case "leave":
                    break
    server.stop()


def main() -> None:
    """Run the daemon that the argument describes."""
    order: Line = json.loads(sys.argv[1])
    os.chdir(order["folder"])
    run(order)


if __name__ == "__main__":
    main()
