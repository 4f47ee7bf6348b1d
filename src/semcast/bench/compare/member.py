"""One process of a comparison: `python -m semcast.bench.compare.member NAME NUMBER PORTS`.

It says `up` when it hears all members, then takes one task a line and answers with what it saw, until its
input ends.
"""

import os
import sys
import threading
import time
from collections.abc import Callable

import msgspec

from semcast.bench.compare.contestants import (
    Contestant,
    HubClient,
    Ring,
    SafeRing,
    SingleRing,
    Zmq,
    serve_hub,
)
from semcast.bench.compare.work import Counter, Task, hello, sleep_until

KINDS: dict[str, Callable[[int, Counter, list[int]], Contestant]] = {
    "hub": HubClient,
    "pyzmq": Zmq,
    "lists": Ring,
    "single": SingleRing,
    "safe": SafeRing,
}
_HELLO = 0.05


def main() -> None:
    """Take part."""
    kind, number, ports = sys.argv[1], int(sys.argv[2]), msgspec.json.decode(sys.argv[3], type=list[int])
    if number == len(ports) - 1:
        serve_hub(ports[-1])
    counter = Counter(number, len(ports) - 1)
    contestant: Contestant = KINDS[kind](number, counter, ports)
    begun = threading.Event()
    threading.Thread(target=_say_hello, args=(contestant, number, begun), daemon=True).start()
    while len(counter.heard) < len(ports) - 1:
        time.sleep(_HELLO)
    print("up", flush=True)
    for line in sys.stdin:
        begun.set()
        task = msgspec.json.decode(line, type=Task)
        counter.begin(task.number, timed=task.rate > 0)
        if number < task.senders:
            threading.Thread(target=_send, args=(contestant, task), daemon=True).start()
        sleep_until(task.begin)
        sys.stdout.buffer.write(msgspec.json.encode(counter.watch(task)) + b"\n")
        sys.stdout.buffer.flush()
    os._exit(0)  # whatever threads still do


def _say_hello(contestant: Contestant, number: int, begun: threading.Event) -> None:
    """Until the work begins: who has heard all may be one whom others have not."""
    while not begun.wait(_HELLO):
        contestant.send(hello(number))


def _send(contestant: Contestant, task: Task) -> None:
    sleep_until(task.begin)
    contestant.work(task)


if __name__ == "__main__":
    main()
