"""Who a server is, and where it finds the others: as the command says, as its folder says."""

import socket
from pathlib import Path

import msgspec

from semcast.group.errors import ConfigurationError
from semcast.server.home import Home, keep, settled


class Site(msgspec.Struct, frozen=True):
    """Where a server finds the others, and how it keeps what it has."""

    database: str
    data: Path
    server: str = ""
    founders: tuple[str, ...] = ()
    joins: bool = False
    durability: str = "disk"
    bind: str = ""
    peers: tuple[str, ...] = ()
    key_file: str = ""
    insecure: bool = False
    record: str = ""
    """Folder for the journal of what it does, which `semcast check` judges."""


def home_of(site: Site) -> Home:
    """Who the server is: as the command says, as its folder says, or as its host is called.

    Raises:
        ConfigurationError: they contradict each other, or nothing says it.
    """
    home = settled(site.data, site.database, site.server, site.founders, joins=site.joins)
    if home.server:
        return home
    host = socket.gethostname()
    names = [name for name in (host, host.partition(".")[0]) if name in home.founders]
    if home.founders and not names:
        raise ConfigurationError(
            f"this host is called {host}, which is none of {', '.join(home.founders)}: "
            "say who this is (--name)"
        )
    return msgspec.structs.replace(home, server=names[0] if names else host)


def remember(site: Site, home: Home) -> None:
    """The next start needs nothing but the folder."""
    try:
        keep(site.data, home)
    except OSError as error:
        raise ConfigurationError(f"{site.data}: {error.strerror or error}") from error
