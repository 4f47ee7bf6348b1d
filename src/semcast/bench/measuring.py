"""One measurement: start the members, wait for their figures."""

import asyncio
import json
import os
import socket
import sys
from contextlib import ExitStack
from itertools import count as counter

import msgspec

from semcast.bench.case import Case
from semcast.bench.families import FAMILIES

_RUNS = counter()
_PATIENCE = 120.0


class BenchError(Exception):
    """A member of a benchmark failed or did not finish; says which."""


class Figures(msgspec.Struct, frozen=True):
    """What one member measured."""

    member: int
    delivered: int
    purged: int
    seconds: float
    """From the first delivery to the last."""
    cpu: float
    memory_mb: float
    latency_ms: tuple[float, float] | None
    """Median and 99th percentile, where the rate was given."""
    fresh_after: float | None
    """Seconds from the last send to the last delivery."""

    @property
    def rate(self) -> float:
        """Messages a second, those included that were replaced."""
        return (self.delivered + self.purged) / self.seconds if self.seconds else 0.0


async def measure_async(case: Case) -> list[Figures]:
    """Run the members as processes, and gather their figures."""
    if FAMILIES.of(case.stack).fixed and not case.addresses:
        case = msgspec.structs.replace(case, addresses=free_addresses(case.members))
    group = f"bench-{os.getpid()}-{next(_RUNS)}"
    work = json.dumps(msgspec.to_builtins(case))
    members = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "semcast.bench.member",
            group,
            str(number),
            work,
            stdout=asyncio.subprocess.PIPE,
        )
        for number in range(case.members)
    ]
    try:
        outputs = await asyncio.wait_for(
            asyncio.gather(*(member.communicate() for member in members)), _PATIENCE
        )
    except TimeoutError:
        raise BenchError(f"the members did not finish within {_PATIENCE:.0f} s") from None
    finally:
        for member in members:
            if member.returncode is None:
                member.kill()
    figures = []
    for number, (output, _) in enumerate(outputs):
        if members[number].returncode != 0:
            raise BenchError(f"member {number} failed")
        figures.append(msgspec.json.decode(output, type=Figures))
    return figures


def free_addresses(count: int) -> tuple[str, ...]:
    """Different ones: each is taken until all are chosen."""
    with ExitStack() as taken:
        chosen = []
        for _ in range(count):
            probe = taken.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            probe.bind(("127.0.0.1", 0))
            chosen.append(f"127.0.0.1:{probe.getsockname()[1]}")
        return tuple(chosen)


def measure(case: Case) -> list[Figures]:
    """Run one case."""
    return asyncio.run(measure_async(case))
