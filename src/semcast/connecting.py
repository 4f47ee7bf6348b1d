"""`connect`: to a replicated database that runs elsewhere. What it needs is loaded when it is called."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from semcast.group.errors import ConfigurationError

if TYPE_CHECKING:
    from semcast.server.blocking import BlockingClient
    from semcast.server.client import Client


def connect(name: str, servers: Sequence[str], **settings: Any) -> "Client":
    """Be a client of a database: `db = await semcast.connect("bank", ["10.0.0.1:7420", ...], token=...)`.

    Args:
        name: of the database.
        servers: some of its servers, as `host:port`; where one is gone, the next is asked.
        settings: `token` (what the servers know it by), `tls=True` or `ca=FILE` (certificates that are
            trusted), `insecure=True` (a token may travel in the open), `timeout` (seconds for each call,
            30 by default).
    """
    _check_extra()
    from semcast.server.client import Client  # noqa: PLC0415 (the extra may be missing)

    return Client(name, servers, **settings)


def connect_blocking(name: str, servers: Sequence[str], **settings: Any) -> "BlockingClient":
    """The same for programs without asyncio: `with semcast.blocking.connect("bank", [...]) as db:`."""
    _check_extra()
    from semcast.server.blocking import BlockingClient  # noqa: PLC0415

    return BlockingClient(name, servers, settings)


def _check_extra() -> None:
    try:
        import httpx  # noqa: F401, PLC0415
    except ImportError as error:
        raise ConfigurationError(
            "clients of databases need the extra `server`: pip install 'semcast[server]'"
        ) from error
