"""Starts members in processes of their own, tells them what to do, kills them, judges what was recorded."""

import asyncio
import itertools
import json
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any

import msgspec

from semcast.history import History, Kind, read_history, record_crash
from semcast.processes import Child, Line
from semcast.specs import Status, check

ROOT = Path(__file__).parents[3]
PATIENCE = 25.0
TOKEN_LOSS = 0.3
"""Seconds: shorter than by default, so that tests do not wait for long."""


class Process:
    """One incarnation of a member and everything that it said.

    Args:
        name: of the member.
        order: what `member.py` gets as its argument.
        prefix: the command that runs it somewhere else.
        module: what it runs.
    """

    def __init__(
        self, name: str, order: Line, prefix: Sequence[str] = (), module: str = "tests.live.lab.member"
    ) -> None:
        self.name = name
        self.lines: list[Line] = []
        self._changed = asyncio.Event()
        self._numbers = itertools.count()
        self._child = Child(module, [json.dumps(order)], self._hear, prefix=prefix, folder=ROOT)

    async def start(self) -> None:
        await self._child.start()

    def _hear(self, line: Line) -> None:
        self.lines.append(line)
        self._changed.set()

    @property
    def running(self) -> bool:
        return self._child.running

    # Waiting

    async def until(self, condition: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
        """Wait for what it says to come true; fails after a while, or if the process ends without it."""
        deadline = time.monotonic() + seconds
        while not condition() and not self._child.ended and time.monotonic() < deadline:
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), 0.2)
        assert condition(), f"{self.name} never {what}; it said last: {self.lines[-6:]}"

    async def until_view(self, names: Iterable[str]) -> None:
        """Wait until it sees these members."""
        wanted = sorted(names)
        await self.until(lambda: sorted(self.view()) == wanted, f"saw {wanted}")

    async def until_marks(self, marks: Iterable[str], seconds: float = PATIENCE) -> None:
        """Wait until it got these marks."""
        wanted = set(marks)
        await self.until(lambda: wanted <= self.marks(), f"got the marks {sorted(wanted)}", seconds)

    # What it said

    def said(self, event: str) -> list[Line]:
        return [line for line in self.lines if line["event"] == event]

    def view(self) -> list[str]:
        """The members it sees, by name."""
        views = self.said("view")
        return [str(name) for name in views[-1]["members"]] if views else []

    def marks(self) -> set[str]:
        return {str(line["mark"]) for line in self.said("mark")}

    # Orders

    async def tell(self, what: str, **about: Any) -> int:
        """Give an order; returns its number."""
        number = next(self._numbers)
        await self._child.tell({"do": what, "id": number, **about})
        return number

    async def ask(self, what: str, **about: Any) -> Line:
        """Give an order and wait until it is done; an error there is one here."""
        number = await self.tell(what, **about)
        answer = await self.answer(number, what)
        assert "error" not in answer, f"{self.name}: {answer}"
        return answer

    async def answer(self, number: int, what: str = "") -> Line:
        """Wait for the answer to an order."""

        def found() -> list[Line]:
            return [line for line in self.said("done") if line["id"] == number]

        await self.until(lambda: bool(found()), f"answered to {what or number}")
        return found()[0]

    # Ends

    def signal(self, number: signal.Signals) -> None:
        self._child.signal(number)

    async def kill(self) -> None:
        """SIGKILL, and wait until it is dead."""
        await self._child.kill()

    async def leave(self) -> None:
        """Ask it to leave, and see that it ends well."""
        await self.tell("leave")
        await self.ended_well()

    async def ended_well(self) -> None:
        """Wait for its end, which must be a clean one."""
        code = await self.wait()
        assert code == 0, f"{self.name} ended with {code}; it said last: {self.lines[-6:]}"
        assert self.said("left"), f"{self.name} did not say that it left"
        assert not self.said("corrupt")

    async def wait(self) -> int:
        return await self._child.wait(PATIENCE)


class Cluster:
    """The members of one group, recorded in one folder. Whoever is left at the end is killed.

    Args:
        folder: for the journals.
        settings: of all members.
    """

    module = "tests.live.lab.member"
    """What a member runs."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder / "journals"
        self.group = f"live {folder.name} {token_hex(4)}"
        self.members: dict[str, Process] = {}
        self._settings = {"token_loss": f"{round(TOKEN_LOSS * 1000)}ms", **settings}
        self._all: list[Process] = []
        self._marks = itertools.count()

    async def __aenter__(self) -> "Cluster":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._all:
            await process.kill()

    def __getitem__(self, name: str) -> Process:
        return self.members[name]

    async def start(
        self,
        *names: str,
        prefix: Sequence[str] = (),
        options: Line | None = None,
        **settings: Any,
    ) -> list[Process]:
        """Start members at the same moment, or start them again; does not wait for any."""
        started = []
        for name in names:
            mine = {
                **self._settings,
                "name": name,
                "record": str(self.folder),
                "record_run": "live",
                **settings,
            }
            order = {"group": self.group, "settings": mine, **(options or {})}
            process = Process(name, order, prefix, self.module)
            self.members[name] = process
            self._all.append(process)
            started.append(process)
        await asyncio.gather(*(process.start() for process in started))
        return started

    async def together(self, *names: str) -> None:
        """Wait until these see each other and nobody else; all that there are by default."""
        wanted = names or tuple(self.members)
        await asyncio.gather(*(self.members[name].until_view(wanted) for name in wanted))

    async def traffic(self, *names: str, **about: Any) -> None:
        """These begin to send; all that there are by default."""
        await asyncio.gather(*(self.members[name].ask("traffic", **about) for name in names or self.members))

    async def flowing(self, *names: str) -> None:
        """Wait until each has got a mark that each sent into the traffic from now on."""
        await self.exchange_marks(*names)

    async def quiet(self, *names: str) -> int:
        """Nobody sends any more; returns how many messages these have sent."""
        answers = await asyncio.gather(*(self.members[name].ask("quiet") for name in names or self.members))
        return sum(answer["sent"] for answer in answers)

    async def settle(self) -> None:
        """Wait until all are together for long enough to get a mark of each: views may still come and go."""
        async with asyncio.timeout(PATIENCE):
            while True:
                await self.together()
                try:
                    await self.exchange_marks(seconds=2.0)
                except AssertionError:
                    assert all(process.running for process in self.members.values()), "somebody has died"
                    continue
                return

    async def exchange_marks(self, *names: str, seconds: float = PATIENCE) -> None:
        """Each sends a mark, and waits for those of all."""
        names = names or tuple(self.members)
        number = next(self._marks)
        marks = {name: f"{number} of {name}" for name in names}
        await asyncio.gather(*(self.members[name].ask("mark", text=mark) for name, mark in marks.items()))
        await asyncio.gather(*(self.members[name].until_marks(marks.values(), seconds) for name in names))

    async def kill(self, name: str) -> Process:
        """SIGKILL, recorded by whoever watches: us."""
        process = self.members.pop(name)
        await process.kill()
        record_crash(self.folder, name)
        return process

    async def leave(self, *names: str) -> None:
        """These leave; all that there are by default. One after the other."""
        for name in names or tuple(self.members):
            await self.members.pop(name).leave()

    async def finish(self) -> History:
        """Stop the traffic, let everybody get everything, leave, and judge what was recorded."""
        await self.quiet()
        await self.exchange_marks()
        await self.leave()
        return judge(self.folder)


def judge(folder: Path, *, quiesced: bool = False) -> History:
    """Read what was recorded, all of it, and see that every promise was kept."""
    history = read_history(folder)
    assert history.info.cut_off == (), "somebody's end was not recorded"
    if quiesced:
        history = History(msgspec.structs.replace(history.info, quiesced=True), history.events)
    violated = [str(verdict) for verdict in check(history) if verdict.status is Status.VIOLATED]
    assert not violated, "\n".join(violated)
    return history


def delivered(history: History, name: str) -> int:
    """Messages that all incarnations of a member delivered."""
    return sum(
        event.count
        for process in history.processes
        if process.name == name
        for event in history.of(process)
        if event.kind is Kind.DELIVER
    )


def multicast(history: History) -> int:
    """Messages that were sent."""
    return sum(event.count for event in history.events if event.kind is Kind.MULTICAST)


async def eventually(condition: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """For what no event tells of."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        await asyncio.sleep(0.02)
