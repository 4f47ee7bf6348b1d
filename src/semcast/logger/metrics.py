"""Metrics of all logs of a logger, for Prometheus."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from semcast.group.errors import ConfigurationError
from semcast.group.metrics import MetricsServer, label_text
from semcast.logger.status import LogStatus
from semcast.net.addresses import AddressError, split_address
from semcast.storage.looking import members_in

Statuses = Callable[[], Awaitable[dict[str, LogStatus]]]


class LogMetrics:
    """Served on request.

    Args:
        folder: of the logger.
        statuses: asks all its logs.
    """

    def __init__(self, folder: Path, statuses: Statuses) -> None:
        self.address: tuple[str, int] | None = None
        self._folder = folder
        self._statuses = statuses
        self._server = MetricsServer(self._text)

    async def start(self, wanted: str) -> None:
        """Serve there."""
        try:
            host, port = split_address(wanted, any_port=True)
            self.address = await self._server.start(host, port)
        except AddressError as error:
            raise ConfigurationError(f"metrics: {error}") from error
        except OSError as error:
            raise ConfigurationError(f"metrics {wanted}: {error.strerror or error}") from error

    async def close(self) -> None:
        """Stop serving."""
        await self._server.close()

    async def _text(self) -> str:
        sizes = {owner.group: _size(path) for path, owner in members_in(self._folder)}
        return exposition(await self._statuses(), sizes)


def _size(path: Path) -> int:
    total = 0
    for file in path.glob("*.log"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:  # it was trimmed meanwhile
            continue
    return total


def exposition(statuses: dict[str, LogStatus], sizes: dict[str, int]) -> str:
    """The text that Prometheus reads."""
    return "\n".join(_lines(statuses, sizes)) + "\n"


def _lines(statuses: dict[str, LogStatus], sizes: dict[str, int]) -> Iterator[str]:
    yield from _gauge(
        "messages", "Messages in the log.", [({"group": g}, s.messages) for g, s in statuses.items()]
    )
    yield from _gauge("bytes", "Bytes of the log on disk.", [({"group": g}, n) for g, n in sizes.items()])
    yield from _gauge(
        "replaced",
        "Receipts of replaced messages.",
        [({"group": g}, sum(each.replaced for each in s.streams)) for g, s in statuses.items()],
    )
    yield from _gauge(
        "streams", "Streams in the log.", [({"group": g}, len(s.streams)) for g, s in statuses.items()]
    )
    yield from _gauge(
        "refused",
        "How often a sender or a session was refused because the log has no room for another.",
        [({"group": g}, s.refused) for g, s in statuses.items()],
    )
    yield from _gauge(
        "sessions",
        "Sessions that are owed messages.",
        [({"group": g}, len(s.sessions)) for g, s in statuses.items()],
    )
    sessions = [(g, each) for g, s in statuses.items() for each in s.sessions]
    yield from _gauge(
        "session_lag",
        "Messages that a session has not acknowledged.",
        [({"group": g, "session": each.member.name}, each.lag) for g, each in sessions],
    )
    yield from _gauge(
        "session_silent_seconds",
        "Seconds since a session was heard.",
        [({"group": g, "session": each.member.name}, each.silent or 0.0) for g, each in sessions],
    )


def _gauge(name: str, about: str, series: list[tuple[dict[str, str], float]]) -> Iterator[str]:
    yield f"# HELP semcast_log_{name} {about}"
    yield f"# TYPE semcast_log_{name} gauge"
    for labels, value in series:
        written = ",".join(f'{each}="{label_text(text)}"' for each, text in labels.items())
        yield f"semcast_log_{name}{{{written}}} {value}"
