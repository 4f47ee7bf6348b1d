"""How a client counts its updates, so that each is done once however often it is asked."""

from secrets import token_hex

from semcast.engine import RequestError


class Numbers:
    """The updates of one client whose outcomes it does not have yet."""

    def __init__(self) -> None:
        self.client = token_hex(16)
        self._next = 1
        self._open: set[int] = set()

    def take(self, wanted: int = 0) -> int:
        """The number of the next update, or of one that is asked again."""
        if wanted >= self._next:
            raise RequestError(f"number {wanted}: this client has not used it; its next one is {self._next}")
        number = wanted or self._next
        self._next = max(self._next, number + 1)
        self._open.add(number)
        return number

    @property
    def floor(self) -> int:
        """All outcomes below this number are here."""
        return min(self._open, default=self._next)

    def settle(self, number: int) -> None:
        """The outcome is here, good or bad."""
        self._open.discard(number)
