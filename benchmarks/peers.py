"""What people would use instead, measured in the same run: one sender, two more processes, on loopback.

Each function gives messages a second at the slowest receiver, or None where the package is not installed
(`pip install semcast[bench]`; PySyncObj by its own name) or does not finish. None of them gives order,
membership and bounded memory at once.
"""

import importlib.util
import socket
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.queues import Queue
from queue import Empty
from typing import Any

Worker = Callable[..., None]
_PATIENCE = 60


def pyzmq(size: int, count: int) -> float | None:
    """XPUB that does not drop: no order among senders, no membership."""
    return _run("zmq", _zmq_sender, _zmq_receiver, size, count)


def zenoh(size: int, count: int) -> float | None:
    """A publisher that blocks when it is congested."""
    return _run("zenoh", _zenoh_sender, _zenoh_receiver, size, count)


def pysyncobj(size: int, count: int) -> float | None:
    """Raft: total order, no partitions, every command a call."""
    if importlib.util.find_spec("pysyncobj") is None:
        return None
    ports = [_port() for _ in range(3)]
    return _processes([(_raft_member, (number, ports, size, count)) for number in range(3)])


def _run(package: str, sender: Worker, receiver: Worker, size: int, count: int) -> float | None:
    if importlib.util.find_spec(package) is None:
        return None
    port = _port()
    return _processes([(receiver, (port, count)), (receiver, (port, count)), (sender, (port, size, count))])


def _processes(work: list[tuple[Worker, tuple[object, ...]]]) -> float | None:
    """Run the workers; the rate of the slowest that reports one."""
    context = get_context("spawn")
    results: Queue[float] = context.Queue()
    processes = [context.Process(target=call, args=(results, *args), daemon=True) for call, args in work]
    for process in processes:
        process.start()
    try:
        rates = [results.get(timeout=_PATIENCE) for _ in range(2)]
    except Empty:
        return None
    finally:
        for process in processes:
            process.kill()
            process.join()
    return min(rates)


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _zmq_sender(_results: "Queue[float]", port: int, size: int, count: int) -> None:
    import zmq  # noqa: PLC0415 (only where it is installed)

    context = zmq.Context()
    out = context.socket(zmq.XPUB)
    out.setsockopt(zmq.XPUB_NODROP, 1)
    out.setsockopt(zmq.XPUB_VERBOSE, 1)  # both subscribers are to be seen
    out.setsockopt(zmq.SNDHWM, 10_000)
    out.bind(f"tcp://127.0.0.1:{port}")
    for _ in range(2):
        out.recv()
    payload = bytes(size)
    for _ in range(count):
        out.send(payload)
    time.sleep(_PATIENCE)


def _zmq_receiver(results: "Queue[float]", port: int, count: int) -> None:
    import zmq  # noqa: PLC0415

    inbox = zmq.Context().socket(zmq.SUB)
    inbox.setsockopt(zmq.RCVHWM, 10_000)
    inbox.setsockopt(zmq.SUBSCRIBE, b"")
    inbox.connect(f"tcp://127.0.0.1:{port}")
    inbox.recv()
    started = time.perf_counter()
    for _ in range(count - 1):
        inbox.recv()
    results.put(count / (time.perf_counter() - started))


def _zenoh_config(port: int, *, listen: bool) -> Any:
    import zenoh  # noqa: PLC0415

    config = zenoh.Config()
    config.insert_json5("mode", '"peer"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("listen/endpoints" if listen else "connect/endpoints", f'["tcp/127.0.0.1:{port}"]')
    if not listen:
        config.insert_json5("listen/endpoints", "[]")
    return config


def _zenoh_sender(_results: "Queue[float]", port: int, size: int, count: int) -> None:
    import zenoh  # noqa: PLC0415

    with zenoh.open(_zenoh_config(port, listen=True)) as session:
        out = session.declare_publisher("bench", congestion_control=zenoh.CongestionControl.BLOCK)
        time.sleep(3)  # until the subscribers are known
        payload = bytes(size)
        for _ in range(count):
            out.put(payload)
        time.sleep(_PATIENCE)


def _zenoh_receiver(results: "Queue[float]", port: int, count: int) -> None:
    import zenoh  # noqa: PLC0415

    time.sleep(1)  # until the publisher listens
    with zenoh.open(_zenoh_config(port, listen=False)) as session:
        inbox = session.declare_subscriber("bench")
        inbox.recv()
        started = time.perf_counter()
        for _ in range(count - 1):
            inbox.recv()
        results.put(count / (time.perf_counter() - started))


def _raft_member(results: "Queue[float]", number: int, ports: list[int], size: int, count: int) -> None:
    from pysyncobj import SyncObj, SyncObjConf, replicated  # noqa: PLC0415

    class Log(SyncObj):  # type: ignore[misc]
        def __init__(self) -> None:
            others = [f"127.0.0.1:{port}" for place, port in enumerate(ports) if place != number]
            super().__init__(f"127.0.0.1:{ports[number]}", others, SyncObjConf(commandsQueueSize=1_000_000))
            self.applied = 0
            self.first = 0.0

        @replicated  # type: ignore[untyped-decorator]
        def append(self, payload: bytes) -> None:  # noqa: ARG002
            self.first = self.first or time.perf_counter()
            self.applied += 1

    log = Log()
    log.waitReady()
    payload = bytes(size)
    if number == 0:
        for _ in range(count):
            log.append(payload)
    while log.applied < count:
        time.sleep(0.001)
    results.put(count / (time.perf_counter() - log.first))
    time.sleep(_PATIENCE)
