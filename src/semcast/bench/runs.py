"""One measurement: start the members, wait for their figures."""

import asyncio
import json
import os
import socket
import sys
from contextlib import ExitStack
from itertools import count as counter

import msgspec

_RUNS = counter()
_PATIENCE = 120.0


class BenchError(Exception):
    """A member of a benchmark failed or did not finish; says which."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure."""

    members: int = 3
    senders: int = 1
    size: int = 64
    count: int = 500_000
    """Messages of all senders together."""
    stack: str = "ring"
    order: str = "agreed"
    """ring: `agreed` or `safe`; vsync: `fifo`, `causal` or `total`; s-rm: `fifo`."""
    engine: str = ""
    """vsync, total: `token` or `consensus`."""
    uniform: bool = False
    """vsync: deliver only what survives."""
    items: int = 0
    """Messages are updates of so many items; 0 for messages that never become obsolete."""
    rate: float = 0.0
    """Messages a second of each sender; 0 for as fast as the group takes them."""
    reading: str = "batches"
    """`batches` or `single`: how the applications read."""
    sleeping: float = 0.0
    """Milliseconds for which the last member's application blocks with each message."""
    datagram: int = 0
    key_file: str = ""
    record: str = ""
    fanout: str = "unicast"
    """`unicast` or `multicast`."""
    addresses: tuple[str, ...] = ()
    """s-rm: where each member is; chosen where none are given."""


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
    if case.stack == "s-rm" and not case.addresses:
        case = msgspec.structs.replace(case, addresses=_free_addresses(case.members))
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


def _free_addresses(count: int) -> tuple[str, ...]:
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
