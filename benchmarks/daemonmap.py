"""A process: the map of a daemon with many clients and groups, its memory, and the time of its census."""

import json
import time
from pathlib import Path
from random import Random

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.protocols.lightweight import LightweightSettings, Machine
from semcast.protocols.lightweight.census import Gathering, census_of
from semcast.protocols.lightweight.messages import Census, decode, encode

GROUPS, CLIENTS, MEMBERSHIPS = 10_000, 1_000, 100
D = MemberId("d", 1)


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / (1 << 20)


def _run(machine: Machine) -> None:
    while True:
        machine.requests.fill(1000)
        if not machine.requests.sends:
            break
        machine.on_message(D, machine.tag + machine.requests.sends.popleft()[0])
    machine.on_safe(machine.placing.own)


def main() -> None:
    """Fill it, and say what that took."""
    machine = Machine(D, LightweightSettings(queue_messages=10_000_000), Outbox())
    machine.on_configuration(7, D, [D])
    before, rng = _resident(), Random(1)
    sessions = [machine.requests.connect(f"client-{number}", 1) for number in range(CLIENTS)]
    _run(machine)
    for session in sessions:
        for group in rng.sample(range(GROUPS), MEMBERSHIPS):
            machine.requests.join(session, f"group-{group}")
        _run(machine)
        for each in sessions:
            each.take()
    used = _resident() - before
    began = time.process_time()
    bodies = [encode(part) for part in census_of(machine.map, D, machine.settings.census_bytes)]
    gathering = Gathering([D])
    for body in bodies:
        part = decode(body)
        assert isinstance(part, Census)
        gathering.add(D, part)
    gathering.united()
    print(json.dumps({"mib": used, "census": time.process_time() - began, "bytes": sum(map(len, bodies))}))


if __name__ == "__main__":
    main()
