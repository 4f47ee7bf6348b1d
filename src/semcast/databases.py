"""`database`: a server of a replicated database in this process, or a client of servers elsewhere."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from semcast.engine.database import Database
from semcast.engine.database import database as serve_here
from semcast.group.errors import ConfigurationError

if TYPE_CHECKING:
    from semcast.engine.blocking_database import BlockingDatabase
    from semcast.server.blocking import BlockingClient
    from semcast.server.client import Client


@overload
def database(group: str, /, *, servers: Sequence[str], **settings: Any) -> "Client": ...


@overload
def database(
    group: str, /, *, servers: None = None, config: Path | None = None, **settings: Any
) -> Database: ...


def database(
    group: str, /, *, servers: Sequence[str] | None = None, config: Path | None = None, **settings: Any
) -> "Client | Database":
    """A replicated SQLite database: `async with semcast.database("bank", ...) as db:`.

    With `servers` this program is a client of these servers; without, it is a server itself.

    Args:
        group: the name of the database, the same at all servers.
        servers: some of its servers, as `host:port`; if one fails, the next is used.
        config: folder of `semcast.toml`, for a server.
        settings: of a server, as for `replicate`: `data`, `name`, `founders` or `newcomer`, ...
            Of a client: `token` (access token), `tls=True` or `ca=FILE` (trusted certificates),
            `insecure=True` (allow sending the token without TLS), `timeout` (seconds for each call, 30 by
            default).
    """
    if servers is None:
        return serve_here(group, config=config, **settings)
    _check_client(config, settings)
    _check_extra()
    from semcast.server.client import Client  # noqa: PLC0415 (the extra may be missing)

    return Client(group, servers, **settings)


@overload
def database_blocking(group: str, /, *, servers: Sequence[str], **settings: Any) -> "BlockingClient": ...


@overload
def database_blocking(
    group: str, /, *, servers: None = None, config: Path | None = None, **settings: Any
) -> "BlockingDatabase": ...


def database_blocking(
    group: str, /, *, servers: Sequence[str] | None = None, config: Path | None = None, **settings: Any
) -> "BlockingClient | BlockingDatabase":
    """The same without asyncio: `with semcast.blocking.database("bank", ...) as db:`.

    A server in this process runs in a thread of its own; its methods may be called by any thread.
    """
    if servers is None:
        from semcast.engine.blocking_database import BlockingDatabase  # noqa: PLC0415

        return BlockingDatabase(group, {"config": config, **settings})
    _check_client(config, settings)
    _check_extra()
    from semcast.server.blocking import BlockingClient  # noqa: PLC0415

    return BlockingClient(group, servers, settings)


def _check_client(config: Path | None, settings: Mapping[str, Any]) -> None:
    if config is not None or "data" in settings:
        raise ConfigurationError("servers= is for clients: leave it out to run a server with data=")


def _check_extra() -> None:
    try:
        import httpx  # noqa: F401, PLC0415
    except ImportError as error:
        raise ConfigurationError(
            "clients of databases need the extra `server`: pip install 'semcast[server]'"
        ) from error
