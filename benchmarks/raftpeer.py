"""PySyncObj with its journal: three processes, each with commands of its own under way.

Run by whatever Python has `pysyncobj`: `python raftpeer.py NUMBER FOLDER COUNT SIZE PORT PORT PORT`. Settings
as found best by trying: a tick of 1 ms, 50 ms between appends, no compaction.
"""

import json
import resource
import sys
import time

from pysyncobj import SyncObj, SyncObjConf, replicated

WINDOW = 2000
"""Commands of a process that are under way."""


class Service(SyncObj):  # type: ignore[misc]
    """Keeps the last action."""

    def __init__(self, number: int, folder: str, ports: list[int]) -> None:
        self.applied = 0
        self.last = b""
        low, high = (0.4, 0.5) if number == 0 else (1.2, 1.6)  # so that it is known who leads
        settings = SyncObjConf(
            autoTickPeriod=0.001,
            appendEntriesPeriod=0.05,
            logCompactionMinEntries=10**9,
            logCompactionMinTime=10**6,
            raftMinTimeout=low,
            raftMaxTimeout=high,
            commandsQueueSize=1_000_000,
            journalFile=f"{folder}/journal{number}",
        )
        others = [f"127.0.0.1:{port}" for place, port in enumerate(ports) if place != number]
        super().__init__(f"127.0.0.1:{ports[number]}", others, settings)

    @replicated  # type: ignore[untyped-decorator]
    def update(self, action: bytes) -> None:
        """An action."""
        self.applied += 1
        self.last = action


def main(number: int, folder: str, count: int, size: int, ports: list[int]) -> None:
    """Say how long it took until all were applied here."""
    service = Service(number, folder, ports)
    while not service.isReady():
        time.sleep(0.01)
    sent = answered = 0

    def on_answer(_result: object, _error: object) -> None:
        nonlocal answered
        answered += 1

    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    while sent < count // len(ports):
        if sent - answered < WINDOW:
            service.update(bytes(size), callback=on_answer)
            sent += 1
        else:
            time.sleep(0.0005)
    while service.applied < count // len(ports) * len(ports):
        time.sleep(0.001)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"wall": time.perf_counter() - began, "cpu": cpu}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), list(map(int, sys.argv[5:])))
