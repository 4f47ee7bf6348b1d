"""What runs on a member of a lab."""

from typing import Protocol

from semcast.core.annotations import Annotation
from semcast.core.events import Delivery


class Application(Protocol):
    """Told what is delivered, and asked what to send. Each of `semcast.patterns` is one."""

    def on_delivery(self, each: Delivery) -> None:
        """The next delivery; never one about the state."""

    def waiting(self) -> tuple[bytes, Annotation | None] | None:
        """The next message to multicast. It may change until `sent`: a refused message is asked for anew."""

    def sent(self) -> None:
        """The stack took that message."""

    def export(self) -> bytes:
        """The state that all deliveries so far led to."""

    def restore(self, state: bytes) -> None:
        """Go on from this state."""


class Keeper:
    """An application that keeps what is delivered, and sends nothing by itself."""

    def __init__(self) -> None:
        self.taken: list[Delivery] = []
        self.state = b"state"

    def on_delivery(self, each: Delivery) -> None:
        """Keep it."""
        self.taken.append(each)

    def waiting(self) -> tuple[bytes, Annotation | None] | None:
        """Nothing."""
        return None

    def sent(self) -> None:
        """Never happens."""

    def export(self) -> bytes:
        """Whatever `state` is."""
        return self.state

    def restore(self, state: bytes) -> None:
        """Remember it."""
        self.state = state
