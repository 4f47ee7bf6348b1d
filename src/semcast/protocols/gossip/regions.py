"""Where members are. Who has a region prefers a logger and peers of it (spec 4.4 and 6; the paper has none).

A member says its region whenever it says that it is there. Of its rounds, most go to peers of its own region
and some to anybody, so that what only one region has comes to all of them though no logger takes part; what
has to cross does so from logger to logger, once. A region that is cut off goes on with its own logger, and
has everything from it when that has heard from the others again.
"""

from semcast.core.ids import MemberId
from semcast.protocols.gossip.peers import Peers

_MOST = 8192
"""Members whose region is remembered."""


class Regions:
    """As far as one member knows.

    Args:
        mine: its own region; without one it cares for none.
        peers: told whom to prefer.
    """

    def __init__(self, mine: str, peers: Peers) -> None:
        self.mine = mine
        self._peers = peers
        self._of: dict[str, str] = {}

    def said(self, member: MemberId, region: str) -> None:
        """It says itself where it is."""
        if self.mine and self._of.get(member.name) != region and len(self._of) < _MOST:
            self._of[member.name] = region
            self._prefer()

    def forget(self, name: str) -> None:
        """It is not there any more."""
        if self._of.pop(name, None) is not None:
            self._prefer()

    def near(self, names: list[str]) -> list[str]:
        """Those of them that are in the own region."""
        return [name for name in names if self.mine and self._of.get(name) == self.mine]

    def _prefer(self) -> None:
        self._peers.near = tuple(name for name, region in self._of.items() if region == self.mine)
