"""Services for tests."""

import semcast


class Counter:
    """Adds; never goes below zero. Remembers all it was told, so that lost or doubled actions show."""

    def __init__(self) -> None:
        self.total = 0
        self.history: list[bytes] = []

    def apply(self, action: bytes, _context: semcast.Context) -> bytes:
        if action == b"break":
            raise RuntimeError("a bug of the service")
        if self.total + int(action) < 0:
            raise semcast.ActionError("below zero")
        self.total += int(action)
        self.history.append(action)
        return str(self.total).encode()

    def query(self, question: bytes) -> bytes:
        return b" ".join(self.history) if question == b"history" else str(self.total).encode()

    def snapshot(self) -> bytes:
        return b" ".join(self.history)

    def restore(self, state: bytes) -> None:
        self.history = state.split()
        self.total = sum(map(int, self.history))
