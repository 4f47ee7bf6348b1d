"""A few processes of a causal domain, with every frame in the hands of the test."""

from collections.abc import Callable
from random import Random
from typing import Any

import semcast.specs.domains.kinds  # noqa: F401  (what the recorder writes down)
from semcast.core.events import Note
from semcast.core.ids import MILLISECOND, MemberId, Nanos
from semcast.core.outbox import Frame, Outbox, Timer
from semcast.history import History, Recorder, RunInfo
from semcast.history.schema import CAUSAL
from semcast.protocols.isis import IsisSettings, Policy
from semcast.protocols.isis.client_frames import ClientPiece
from semcast.protocols.isis.frames import Direct, InGroup, number_of
from semcast.protocols.semantic.frames import Data
from semcast.protocols.vsync import DetectorSettings, VsyncSettings
from semcast.protocols.vsync.frames import InView
from semcast.sim.isis_programs import DomainProcess, IsisPlan

Letter = tuple[str, str, Frame]
"""From whom, to whom, what."""


class Lab:
    """Processes named by letters. Frames arrive at once and in order, unless they are held.

    Args:
        groups: by name, the letters of those who found each.
        policy: between groups.
        kind: of the processes, or a mutant.
        others: letters of processes that are in no group yet.
        silence: milliseconds that somebody may be silent at most.
        styles: of groups that have clients.
        settings: others than the usual ones.
    """

    def __init__(
        self,
        groups: dict[str, str],
        policy: Policy,
        kind: type[DomainProcess] = DomainProcess,
        others: str = "",
        silence: int = 1000,
        styles: dict[str, str] | None = None,
        **settings: Any,
    ) -> None:
        letters = sorted({*"".join(groups.values()), *others})
        plan = IsisPlan(
            settings=_settings(policy, silence, settings),
            groups=tuple((name, tuple(map(letters.index, who))) for name, who in groups.items()),
            answers=0,
            styles=tuple((styles or {}).items()),
        )
        self.now: Nanos = 0
        self.held: list[Letter] = []
        self.given: dict[str, list[str]] = {letter: [] for letter in letters}
        """What programs were given, by the names of messages."""
        self.left: dict[str, bool] = dict.fromkeys(letters, False)
        self.views: dict[str, int] = dict.fromkeys(letters, 0)
        """How many views programs were told of."""
        info = RunInfo.one("lab", "lab", "isis", 1, (), None, uniform=False, quiesced=False, order=CAUSAL)
        self._recorder = Recorder(info)
        self._names: dict[tuple[str, int], str] = {}
        self._net: list[Letter] = []
        self._holds: Callable[[str, str, str, bool], bool] | None = None
        self._timers: dict[tuple[str, Timer], Nanos] = {}
        self._gone: set[str] = set()
        self._groups = {number_of(name): name for name in (*groups, "new")}
        self.at = {
            letter: kind(MemberId(letter), plan, number, Random(number), Outbox())
            for number, letter in enumerate(letters)
        }
        for letter, process in self.at.items():
            process.start(self.now)
            self._drain(letter)
        self.run(2000)
        for name, who in groups.items():
            for letter in who:
                assert {member.name for member in self.members(letter, name)} == set(who), (letter, name)

    def members(self, letter: str, group: str) -> tuple[MemberId, ...]:
        """Of the latest view."""
        stream = self.at[letter].seats[group].member.stream
        return () if stream is None else stream.members

    # What happens

    def send(
        self,
        letter: str,
        group: str,
        name: str,
        *,
        ordered: bool = False,
        to: str | None = None,
        item: str | None = None,
    ) -> None:
        """A program sends a message."""
        process = self.at[letter]
        client = None if to is None else MemberId(to)
        items = None if item is None else [item]
        number = process.cast(group, [name.encode()], items, ordered=ordered, to=client)
        self._names[letter, number] = name
        process.settle(self.now)
        self._drain(letter)

    def queue(self, letter: str, group: str, name: str) -> None:
        """A program asks for a message to be sent, and has more to ask for before anything happens."""
        self._names[letter, self.at[letter].cast(group, [name.encode()])] = name

    def look(self, letter: str) -> None:
        """Something comes of what a program asked for."""
        self.at[letter].settle(self.now)
        self._drain(letter)

    def tell(self, letter: str, to: str, name: str, more: bytes = b"") -> None:
        """A program sends a message to one member alone."""
        process = self.at[letter]
        self._names[letter, process.send_to(MemberId(to), name.encode() + more)] = name
        process.settle(self.now)
        self._drain(letter)

    def join(self, letter: str, group: str, minimum: int = 0) -> None:
        """A program asks to join."""
        self.at[letter].join(self.now, group, minimum)
        self.at[letter].settle(self.now)
        self._drain(letter)

    def visit(self, letter: str, group: str) -> None:
        """A program asks to be a client."""
        self.at[letter].enter(self.now, group, client=True)
        self.at[letter].settle(self.now)
        self._drain(letter)

    def history(self) -> History:
        """What was noted, as a run that is over."""
        for letter in sorted(self._gone):
            self._recorder.crash(self.now, MemberId(letter))
        return self._recorder.close(quiesced=True)

    def leave(self, letter: str, group: str) -> None:
        """A program asks to leave."""
        self.at[letter].ask_to_leave(group)
        self.at[letter].settle(self.now)
        self._drain(letter)

    def crash(self, *letters: str) -> None:
        """Processes are gone, with what they sent and nobody has received."""
        self._gone.update(letters)
        self._net = [letter for letter in self._net if letter[0] not in letters]
        self.held = [letter for letter in self.held if letter[0] not in letters]

    def hold(self, which: Callable[[str, str, str, bool], bool]) -> None:
        """Hold frames: told from whom, to whom, about which group, and whether they carry messages."""
        self._holds = which

    def release(self) -> None:
        """All that was held arrives, and nothing is held any more."""
        self._holds = None
        self._net, self.held = [*self.held, *self._net], []

    def hand_over(self, letter: Letter) -> None:
        """A frame that was held arrives."""
        self.at[letter[1]].on_frame(self.now, MemberId(letter[0]), letter[2])
        self._drain(letter[1])

    def let(self, which: Callable[[str, str, str, bool], bool]) -> None:
        """Hold only these from now on: whatever else was held arrives."""
        self._holds = which
        self._net, self.held = [*self.held, *self._net], []

    def run(self, milliseconds: int = 0) -> None:
        """Frames arrive, and time passes."""
        until = self.now + milliseconds * MILLISECOND
        while True:
            while self._net:
                self._arrive(*self._net.pop(0))
            due = min(self._timers.items(), key=lambda item: item[1], default=None)
            if due is None or due[1] > until:
                break
            (letter, timer), at = due
            del self._timers[letter, timer]
            self.now = max(self.now, at)
            if letter not in self._gone:
                self.at[letter].on_timer(self.now, timer)
                self._drain(letter)
        self.now = until

    def _arrive(self, source: str, dest: str, frame: Frame) -> None:
        if dest in self._gone:
            return
        assert isinstance(frame, InGroup)
        inside = frame.frame
        carries = isinstance(inside, Direct | ClientPiece) or (
            isinstance(inside, InView) and isinstance(inside.frame, Data)
        )
        if self._holds is not None and self._holds(source, dest, self._groups[frame.group], carries):
            self.held.append((source, dest, frame))
            return
        self.at[dest].on_frame(self.now, MemberId(source), frame)
        self._drain(dest)

    def _drain(self, letter: str) -> None:
        out = self.at[letter].out
        for timer, at in out.timers:
            if at is None:
                self._timers.pop((letter, timer), None)
            else:
                self._timers[letter, timer] = at
        for dest, frame in out.sends:
            to = [each for each in self.at if each != letter]
            if isinstance(dest, MemberId | tuple):
                to = [each.name for each in ((dest,) if isinstance(dest, MemberId) else dest)]
            self._net += [(letter, each, frame) for each in to]
        for event in out.events:
            if isinstance(event, Note):
                self._recorder.note(self.now, MemberId(letter), event)
            if isinstance(event, Note) and event.kind == "dom-view":
                self.views[letter] += 1
            if isinstance(event, Note) and event.kind == "dom-given":
                assert event.sender is not None
                numbers = range(event.seq, event.seq + event.count)
                self.given[letter] += [self._names[event.sender.name, number] for number in numbers]
            elif isinstance(event, Note) and event.kind == "dom-out":
                self.left[letter] = True
        out.timers, out.sends, out.events = [], [], []


def _settings(policy: Policy, silence: int, more: dict[str, Any]) -> IsisSettings:
    detector = DetectorSettings(
        heartbeat=20 * MILLISECOND,
        timeout_initial=300 * MILLISECOND,
        timeout_min=200 * MILLISECOND,
        timeout_max=silence * MILLISECOND,
    )
    vsync = VsyncSettings(detector=detector, resend=10 * MILLISECOND, hello=40 * MILLISECOND)
    return IsisSettings(policy=policy, notes=True, vsync=vsync, **more)
