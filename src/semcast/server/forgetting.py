"""`semcast serve --forget`: an operator vouches that servers are gone for good."""

from collections.abc import Collection

from semcast.engine.offline import stopped
from semcast.group.errors import GroupError
from semcast.group.observing import observe
from semcast.group.settings import resolve
from semcast.server.home import Home
from semcast.server.identity import Site
from semcast.server.registry import found

LISTEN = 1.5
"""Seconds that servers have to show that they are alive: they speak once a second."""


def forget(site: Site, home: Home, names: Collection[str], *, loss: bool) -> list[str]:
    """Write down that servers are forgotten, in the folder of this one, which does not run yet.

    Args:
        site: of this server.
        home: who it is.
        names: who is gone for good.
        loss: whether it is accepted that actions are lost which nobody else has.

    Returns those that were not forgotten before.

    Raises:
        ConfigurationError: it makes no sense, or is too dangerous; says why.
    """
    with stopped(site.data, home.database, home.server) as server:
        return server.forget(names, lambda: _alive(site, home), loss=loss)


def _alive(site: Site, home: Home) -> set[str]:
    """Servers that run on this host, or that can be heard of."""
    here = {note.server for note in found(home.database)}
    given = {
        "bind": site.bind or None,
        "peers": list(site.peers) or None,
        "key_file": site.key_file or None,
        "insecure": site.insecure or None,
    }
    settings = resolve({key: value for key, value in given.items() if value is not None}, None)
    try:
        with observe(home.database, settings) as observer:
            observer.listen(LISTEN)
            return here | {sighting.member.name for sighting in observer.members()}
    except GroupError:
        return here
