"""Starts the members, does to them what the plan says, heals all, and sees whether they come together."""

import asyncio
import itertools
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

import msgspec

from semcast.chaos.families import FAMILIES
from semcast.chaos.faults import (
    AnyFault,
    Cut,
    Join,
    Kill,
    Loss,
    Partition,
    Plan,
    Restart,
    Roll,
    Stall,
    Stop,
)
from semcast.chaos.judge import ChaosOutcome, journals_of, judge, note_crash
from semcast.chaos.network import Lan, Loopback, between
from semcast.chaos.roster import RosterEntry, roster
from semcast.chaos.words import last_line, words_of
from semcast.group import families as groups
from semcast.net.keyfile import new_key, save_keyring
from semcast.processes import Child, Line
from semcast.wire.keyring import Cipher, Keyring

Network = Lan | Loopback
_LEAVING = 15.0
"""Seconds after which a member that was asked to leave is stuck: it gives up itself after three."""
_STARTING = 120.0
"""Seconds for processes to start on a machine that is busy; what they do from then on is judged."""
_BEGINNING = 10.0
"""Seconds for processes to start, before the next thing is done to any: one that is not there cannot die."""
_TOGETHER = 5.0
"""Seconds for messages that all send to arrive at all, before it is tried again."""


class Case(msgspec.Struct, frozen=True):
    """What is asked for, besides the plan."""

    stack: str
    settings: dict[str, Any]
    """Of all members, besides those that follow from the rest."""
    rate: float
    """Messages a second of each program."""
    patience: float
    """Seconds for a healed group to be one."""


class Say(Protocol):
    """Told of all that happens."""

    def __call__(self, text: str) -> None:
        """A line."""


class Supervisor:
    """One run.

    Args:
        case: what is asked for.
        plan: what goes wrong.
        network: between the members.
        folder: for journals, records and logs.
        say: told of all that happens.
    """

    def __init__(self, case: Case, plan: Plan, network: Network, folder: Path, say: Say) -> None:
        self._family = FAMILIES.of(case.stack)
        self.members = {member.name: member for member in roster(self._family, plan)}
        self.faults: Counter[str] = Counter()
        self.died: list[str] = []
        self.stuck: list[str] = []
        self.healed_after: float | None = None
        self.states: dict[str, str] = {}
        """What programs made of all messages, in the end."""
        self.rest: int | None = None
        """The time of day at which nothing was under way any more."""
        self.journals = folder / "journals"
        self._case, self._plan, self._network, self._folder, self._say = case, plan, network, folder, say
        self._group = f"chaos {token_hex(4)}"
        self._marks = itertools.count()
        self._rounds: list[set[str]] = []  # marks: all who read must get all of one round
        self._began = time.monotonic()
        self._expected: set[str] = set()
        """Whose processes should be running."""

    async def run(self) -> None:
        """From the first start to the last end."""
        self.journals.mkdir(parents=True)
        if self._network.cuts:
            key = new_key(Cipher.AES_256_GCM)
            save_keyring(self._folder / "keys.toml", Keyring([key], key.id), replace=False)
        try:
            early = self._family.early
            first = [
                name
                for name, each in self.members.items()
                if name not in self._plan.late or each.program in early
            ]
            await self._at_once(self._start(name) for name in first)
            await self._until(self._begun, _STARTING)
            if not await self._until(lambda: self._joined(first), self._case.patience):
                self._note_stuck()
                return
            self._began = time.monotonic()
            await self._torment()
            await self._heal()
        finally:
            for member in self.members.values():
                if member.child is not None:
                    await member.child.kill()

    # Faults

    async def _torment(self) -> None:
        async with asyncio.TaskGroup() as tracks:
            watching = tracks.create_task(self._watch())
            tracks.create_task(self._follow(self._plan.network))
            tracks.create_task(self._follow(self._plan.processes))
            tracks.create_task(self._end_after(self._plan.seconds, watching))

    async def _follow(self, track: Iterable[AnyFault]) -> None:
        """One fault after the other; what does not fit into the time is left out."""
        for fault in track:
            if fault.at >= self._plan.seconds:
                return
            await asyncio.sleep(self._began + fault.at - time.monotonic())
            await self._until(self._working if fault.calm else self._begun, _BEGINNING)
            if self._elapsed() < self._plan.seconds:
                await self._inflict(fault)

    async def _inflict(self, fault: AnyFault) -> None:
        kind = str(msgspec.to_builtins(fault)["fault"])
        self.faults[kind] += 1
        self._tell(f"{kind} {words_of(fault)}")
        match fault:
            case Partition(sides=sides, lasts=lasts):
                await self._cut(between(sides), lasts)
            case Cut(pairs=pairs, lasts=lasts):
                await self._cut(list(pairs), lasts)
            case Loss(percent=percent, lasts=lasts):
                await asyncio.to_thread(self._network.disturb, loss=percent)
                await asyncio.sleep(lasts)
                await asyncio.to_thread(self._network.disturb)
            case Kill(down=down):
                await self._at_once(self._kill(name) for name in down)
                await self._at_once(self._start(name, after) for name, after in down.items())
            case Stop(names=names, lasts=lasts):
                self._signal(names, signal.SIGSTOP)
                await asyncio.sleep(lasts)
                self._signal(names, signal.SIGCONT)
            case Stall(names=names, lasts=lasts):
                await self._at_once(
                    self._tell_member(self.members[name], {"do": "stall", "lasts": lasts}) for name in names
                )
                await asyncio.sleep(lasts)
            case Restart(down=down):
                await self._at_once(self._leave(name) for name in down)
                await self._at_once(self._start(name, after) for name, after in down.items())
            case Roll(names=names, pause=pause, kill=kill):
                for name in names:
                    await (self._kill(name) if kill else self._leave(name))
                    await self._start(name)
                    await asyncio.sleep(pause)
            case Join(name=name) if not self.members[name].running:
                await self._start(name)

    async def _cut(self, pairs: list[tuple[str, str]], lasts: float) -> None:
        await asyncio.to_thread(self._network.cut, pairs)
        await asyncio.sleep(lasts)
        await asyncio.to_thread(self._network.cut, [])

    def _signal(self, names: Iterable[str], number: signal.Signals) -> None:
        for name in names:
            member = self.members[name]
            if member.child is not None and member.running:
                member.child.signal(number)
                member.stopped = number is signal.SIGSTOP

    async def _watch(self) -> None:
        """Say now and then how it goes; see who died."""
        while True:
            await asyncio.sleep(5.0)
            self._look_for_dead()
            self._tell(self._progress())

    async def _end_after(self, seconds: float, watching: asyncio.Task[None]) -> None:
        await asyncio.sleep(self._began + seconds - time.monotonic())
        watching.cancel()

    # Processes

    async def _start(self, name: str, after: float = 0.0) -> None:
        await asyncio.sleep(after)
        member = self.members[name]
        member.forget()
        member.before = journals_of(self.journals, member.recorded_as)
        clients = self._family.clients if member.host != name else None
        order = {
            "name": name,
            "host": member.host,
            "folder": str(self._folder),
            "group": self._group,
            "settings": self._recorded() if clients else self._settings(name),
            "program": member.program,
            "seed": self._plan.seed,
            "rate": self._case.rate,
        }
        member.child = Child(
            clients.module if clients else self._family.module,
            [msgspec.json.encode(order).decode()],
            member.hear,
            prefix=self._network.at(member.host),
            errors=self._folder / f"{name}.log",
        )
        await member.child.start()
        self._expected.add(name)

    def _recorded(self) -> dict[str, Any]:
        return {"record": str(self.journals), "record_run": "chaos"}

    def _settings(self, name: str) -> dict[str, Any]:
        case = self._case
        found: dict[str, Any] = {
            "stack": self._family.group_stack,
            "name": name,
            **self._recorded(),
            **self._family.settings(self._plan.names),
        }
        if groups.FAMILIES.of(self._family.group_stack).keeps:
            found["data"] = str(self._folder / "data")
        if self._network.cuts:
            found["key_file"] = str(self._folder / "keys.toml")
        return {**found, **self._family.by_program(self.members[name].program), **case.settings}

    async def _kill(self, name: str) -> None:
        """Kill -9, and a crash row for it."""
        member = self.members[name]
        self._expected.discard(name)
        if member.child is not None and member.running:
            await member.child.kill()
            note_crash(self.journals, member.recorded_as, member.before)

    async def _leave(self, name: str) -> None:
        """Ask it to leave; who does not is stuck, and killed."""
        member = self.members[name]
        self._expected.discard(name)
        if member.child is None or not member.running:
            return
        await member.child.tell({"do": "leave"})
        await self._until(lambda: member.begun or not member.running, _STARTING)  # before, it hears nothing
        try:
            code = await member.child.wait(_LEAVING)
        except TimeoutError:
            when = f"within {_LEAVING:.0f} s at {self._elapsed():.0f} s"
            self.stuck.append(f"{name} did not leave {when} ({member.condition()})")
            self._tell(self.stuck[-1])
            await self._kill(name)
        else:
            if code:
                self._note_death(name, f"ended with {code} when it was asked to leave")

    def _look_for_dead(self) -> None:
        for name in sorted(self._expected):
            if not self.members[name].running:
                self._expected.discard(name)
                self._note_death(name, "ended by itself")

    def _note_death(self, name: str, how: str) -> None:
        """Nobody wanted that. Its journal has no end: what it did is all there."""
        member = self.members[name]
        note_crash(self.journals, member.recorded_as, member.before)
        last = last_line(self._folder / f"{name}.log")
        self.died.append(f"{name} {how} at {self._elapsed():.0f} s: {last}")
        self._tell(self.died[-1])

    # The end

    async def _heal(self) -> None:
        """Everything works again, and everybody is there: they must come together, and all must move."""
        await asyncio.to_thread(self._network.heal)
        self._signal(self.members, signal.SIGCONT)
        self._look_for_dead()
        await self._at_once(self._start(name) for name, each in self.members.items() if not each.running)
        await self._until(self._begun, _STARTING)
        self._tell("everything is healed, all members are started")
        healed = time.monotonic()
        deadline = healed + self._case.patience
        if await self._come_together(deadline):
            self.healed_after = time.monotonic() - healed
            self._tell(f"one view after {self.healed_after:.1f} s")
            await self._at_once(self._tell_member(each, {"do": "quiet"}) for each in self.members.values())
            quiet = await self._until(self._all_quiet, self._case.patience)
            if not quiet or not await self._come_together(time.monotonic() + self._case.patience):
                self._note_stuck()
            else:
                await self._compare()
                await asyncio.sleep(self._family.pause)
                self.rest = time.time_ns() if self._family.rests else None
        else:
            self._note_stuck()
        self._look_for_dead()
        for name in self.members:
            await self._leave(name)
        self._tell("all have left")

    async def _come_together(self, deadline: float) -> bool:
        """Whether all see one view of all, and everybody who reads gets a message of everybody."""
        self._rounds.clear()
        while time.monotonic() < deadline:
            if not await self._until(self._together, deadline - time.monotonic()):
                return False
            number = next(self._marks)
            senders = [each for each in self.members.values() if each.program not in self._family.silent]
            self._rounds.append({f"{number} of {member.name}" for member in senders})
            for member in senders:
                name = member.name
                await self._tell_member(member, {"do": "mark", "text": f"{number} of {name}"})
            if await self._until(self._marked, min(_TOGETHER, max(0.1, deadline - time.monotonic()))):
                return True
        return False

    def _begun(self) -> bool:
        return all(member.begun for member in self.members.values() if member.running)

    async def _compare(self) -> None:
        """Where members share a state, all who read have the same now."""
        if not self._family.states:
            return
        readers = [member for member in self.members.values() if member.reads and member.running]
        await self._at_once(self._tell_member(each, {"do": "state"}) for each in readers)
        await self._until(lambda: all(each.state for each in readers), self._case.patience)
        self.states = {each.name: each.state for each in readers}

    def _working(self) -> bool:
        running = [member for member in self.members.values() if member.running]
        return all(member.report and (member.view or not member.reads) for member in running)

    def _joined(self, names: Iterable[str]) -> bool:
        return all(self.members[name].report for name in names)

    def _together(self) -> bool:
        views = {member.view for member in self.members.values() if member.reads and member.running}
        if (self._family.agreed_views and len(views) != 1) or not views:
            return False
        unlisted = {each.name for each in self.members.values() if each.program in self._family.unlisted}
        everybody = self.members.keys() - unlisted
        return all(view and {name for name, _ in view[1]} - unlisted == everybody for view in views)

    def _marked(self) -> bool:
        readers = [each for each in self.members.values() if each.reads]
        return any(all(marks <= each.marks for each in readers) for marks in self._rounds)

    def _all_quiet(self) -> bool:
        return all(member.quiet for member in self.members.values() if member.running)

    def _note_stuck(self) -> None:
        """Say of everybody what is missing."""
        together = self._together()
        for name, member in self.members.items():
            owed = self._rounds[0] if self._rounds and together and member.reads else set()
            lacking = sorted(owed - member.marks)
            why = f"; lacks the marks {', '.join(lacking)}" if lacking else ""
            self.stuck.append(f"{name} ({member.condition()}{why})")
            self._tell(f"stuck: {self.stuck[-1]}")

    # Small things

    async def _tell_member(self, member: RosterEntry, what: Line) -> None:
        if member.child is not None and member.running:
            await member.child.tell(what)

    async def _until(self, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.05)
        return True

    async def _at_once(self, what: Iterable[Coroutine[Any, Any, None]]) -> None:
        await asyncio.gather(*what)

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _tell(self, text: str) -> None:
        self._say(f"[{self._elapsed():6.1f} s] {text}")

    def _progress(self) -> str:
        there = [member for member in self.members.values() if member.running]
        sent = sum(member.report.get("sent", 0) for member in there)
        views = Counter(
            "-" if each.view is None else f"{each.view[0]} of {len(each.view[1])}"
            for each in there
            if each.reads
        )
        seen = ", ".join(f"{count} in {view}" for view, count in sorted(views.items()))
        return f"{len(there)} run, {sent} sent by them; views: {seen}"


def run(case: Case, plan: Plan, network: Network, folder: Path, say: Say) -> ChaosOutcome:
    """Run all of it, and judge."""
    with network:
        supervisor = Supervisor(case, plan, network, folder, say)
        asyncio.run(supervisor.run())
    say("judging what was recorded")
    judgement = judge(supervisor.journals, supervisor.states, supervisor.rest)
    return ChaosOutcome(
        stack=case.stack,
        members=len(plan.names),
        seconds=plan.seconds,
        seed=plan.seed,
        network="namespaces" if network.cuts else "loopback",
        faults=dict(supervisor.faults),
        stuck=tuple(supervisor.stuck),
        died=tuple(supervisor.died),
        healed_after=supervisor.healed_after,
        judgement=judgement,
        folder=str(folder),
        clients=len(plan.clients),
    )
