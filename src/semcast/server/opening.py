"""Opens a server of a database in this process."""

from typing import Any

import semcast
from semcast.server.home import Home
from semcast.server.identity import Site, remember
from semcast.server.local import LocalDatabase


async def opened(site: Site, home: Home) -> LocalDatabase:
    """The server, once it takes requests."""
    settings: dict[str, Any] = {
        "data": str(site.data),
        "name": home.server,
        "durability": site.durability,
        "bind": site.bind or None,
        "peers": list(site.peers) or None,
        "key_file": site.key_file or None,
        "insecure": site.insecure or None,
        "record": site.record or None,
        **({"founders": list(home.founders)} if home.founders else {"newcomer": True}),
    }
    database = LocalDatabase(await semcast.database(home.database, servers=None, **settings))
    try:
        remember(site, home)
    except BaseException:
        await database.close()
        raise
    return database
