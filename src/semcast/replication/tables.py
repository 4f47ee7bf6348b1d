"""What green actions do to the servers themselves: who they are, and which requests are done.

There are two of these: one at the green line, and one where the log begins, which a snapshot is made of.
"""

from semcast.replication.actions import ASKED, read_asked, read_change
from semcast.replication.dedupe import Requests
from semcast.replication.membership import Membership


class Tables:
    """As of one position in the order."""

    def __init__(self, requests: Requests) -> None:
        self.members = Membership()
        self.requests = requests

    def apply(self, action: bytes, position: int) -> tuple[bool, bool]:
        """An action that is not plain; returns whether it is to be done, and whether the servers change."""
        if action[0] == ASKED:
            request = read_asked(action)
            return request is not None and self.requests.apply(request, position), False
        change = read_change(action)
        return False, change is not None and self.members.apply(change, position)
