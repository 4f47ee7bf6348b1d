"""How far the disks of all servers are (6.1, "white"): only actions that all have there can be forgotten."""

from collections.abc import Collection

from semcast.replication.ids import Server


class GreenLines:
    """The green lines that servers told, each of what was on its disk then."""

    def __init__(self) -> None:
        self._lines: dict[Server, int] = {}

    def told(self, server: Server, line: int) -> bool:
        """A server told its line; returns whether that is news."""
        if line <= self._lines.get(server, -1):
            return False
        self._lines[server] = line
        return True

    def of(self, server: Server) -> int:
        """What a server told last."""
        return self._lines.get(server, 0)

    def white(self, servers: Collection[Server]) -> int:
        """The line that all of these have."""
        return min((self._lines.get(server, 0) for server in servers), default=0)
