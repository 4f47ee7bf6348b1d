"""Who may have how much under way, so that senders leave each other room; and when others must hear of it.

Beyond the papers, whose only limit is the buffer of whoever sends: where several send at once, each fills its
own, and then refuses what the others send, which must be repaired.
"""

from semcast.protocols.vsync.settings import VsyncSettings


class Shares:
    """Of one member in a view of `size`. Who sends alone has all; where several do, each has its share."""

    def __init__(self, settings: VsyncSettings, size: int) -> None:
        self._fair = settings.fair
        self._messages = settings.buffer_messages
        self._bytes = settings.window_bytes or settings.buffer_bytes
        self.tell_every = max(min(self._messages // 8, self.messages(size) // 2), 1)
        """So many messages that came are worth a word, lest their sender waits for it."""
        self.tell_bytes = self.bytes(size) // 2
        """Or so many bytes."""

    def messages(self, senders: int) -> int:
        """What one of so many senders may have under way, with room left for one more."""
        return max(self._messages // (senders + 1), 1) if self._fair else self._messages

    def bytes(self, senders: int) -> int:
        """The same in bytes."""
        return self._bytes // senders
