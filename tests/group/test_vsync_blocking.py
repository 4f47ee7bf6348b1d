"""State hooks of programs without asyncio: called in the thread that iterates."""

import threading
from typing import Any
from uuid import uuid4

import pytest

import semcast
from semcast import blocking


class Tally:
    """A state that knows who touched it."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.threads: set[str] = set()

    def export(self) -> bytes:
        self.threads.add(threading.current_thread().name)
        return b",".join(self.entries)

    def restore(self, state: bytes) -> None:
        self.threads.add(threading.current_thread().name)
        self.entries = state.split(b",")


def follow(group: blocking.BlockingGroup, tally: Tally, last: bytes) -> None:
    for event in group.events():
        if isinstance(event, semcast.Message):
            tally.entries.append(event.payload)
            if event.payload == last:
                return


def test_a_joiner_gets_the_state_in_its_own_thread() -> None:
    name = f"blocking-{uuid4().hex[:8]}"
    settings: dict[str, Any] = {"stack": "vsync", "order": "total", "token_loss": "2s"}
    first, second = Tally(), Tally()
    with blocking.join(name, name="a", bootstrap=True, state=first, **settings) as a:
        a.send_many([b"%d" % number for number in range(100)])
        follow(a, first, b"99")
        provider = threading.Thread(target=follow, args=(a, first, b"end"), name="provider")
        provider.start()
        with blocking.join(name, name="b", state=second, **settings) as b:
            for event in b.events():
                if isinstance(event, semcast.ViewChange):
                    break
            assert second.entries == [b"%d" % number for number in range(100)]
            b.send(b"end")
            follow(b, second, b"end")
            provider.join()
    assert first.entries == second.entries
    assert first.threads == {"provider"}
    assert second.threads == {threading.main_thread().name}


def test_nothing_happens_to_the_state_of_who_is_not_iterating() -> None:
    name = f"blocking-{uuid4().hex[:8]}"
    first = Tally()
    with (
        blocking.join(name, name="a", stack="vsync", bootstrap=True, state=first) as a,
        blocking.join(name, name="b", stack="vsync", state=Tally()) as b,
    ):
        assert not [event for event in b.events(timeout=0.5) if isinstance(event, semcast.ViewChange)]
        assert not first.threads
        found = [event for event in a.events(timeout=1.0) if isinstance(event, semcast.ViewChange)]
        assert len(found[-1].view.members) == 2
        assert first.threads
        assert next(iter(b.events(timeout=5.0)), None) is not None


def test_a_hook_that_raises_is_called_again() -> None:
    class Moody(Tally):
        def export(self) -> bytes:
            if not self.entries:
                self.entries.append(b"tried")
                raise ZeroDivisionError
            return super().export()

    name = f"blocking-{uuid4().hex[:8]}"
    with (
        blocking.join(name, name="a", stack="vsync", bootstrap=True, state=Moody()) as a,
        blocking.join(name, name="b", stack="vsync", state=Tally()) as b,
    ):
        with pytest.raises(ZeroDivisionError):
            list(a.events(timeout=5.0))
        list(a.events(timeout=0.5))
        assert isinstance(next(b.events(timeout=5.0)), semcast.ViewChange)
