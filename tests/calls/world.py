"""A group that delivers at once and to all, with a machine of calls at each member."""

from collections.abc import Sequence

from semcast.core.events import Note, TransitionalView, ViewChange
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import batch_of
from semcast.core.outbox import Outbox
from semcast.core.views import View
from semcast.history import History, Recorder, RunInfo
from semcast.patterns.calls import (
    ALL,
    MARK,
    CallAnswer,
    CallLimits,
    CallRequest,
    Calls,
    Done,
    Forget,
    Key,
    Notes,
    Run,
    Wanted,
)
from semcast.specs import check
from semcast.specs.verdict import Status


class World:
    """Names are single letters."""

    def __init__(
        self,
        names: str,
        kind: type[Calls] = Calls,
        limits: CallLimits | None = None,
        serve: str | None = None,
    ) -> None:
        self.now: Nanos = 0
        self.kind, self.limits = kind, limits
        self.outs: dict[str, Outbox] = {}
        self.machines: dict[str, Calls] = {}
        self.runs: dict[str, list[CallRequest]] = {}
        self.done: dict[str, list[Done]] = {}
        self.forgotten: list[Key] = []
        self.rows: list[tuple[MemberId, Note]] = []
        self.seq = 0
        self.number = 0
        for name in names:
            self.add(name, serves=serve is None or name in serve)
        self.view(names)

    def add(self, name: str, *, serves: bool = True) -> None:
        out = self.outs[name] = Outbox()
        machine = self.machines[name] = self.kind(MemberId(name), self.limits, Notes(out))
        machine.serves = serves
        self.runs[name], self.done[name] = [], []

    def __getitem__(self, name: str) -> Calls:
        return self.machines[name]

    def settle(self) -> None:
        for name, machine in self.machines.items():
            for effect in machine.take_effects():
                if isinstance(effect, Run):
                    self.runs[name].append(effect.request)
                elif isinstance(effect, Forget):
                    self.forgotten.append(effect.key)
                else:
                    self.done[name].append(effect)
            events, self.outs[name].events = self.outs[name].events, []
            self.rows += [(machine.me, event) for event in events if isinstance(event, Note)]

    def view(self, names: str, among: str | None = None) -> None:
        """The members `among` these are told of a view."""
        self.number += 1
        view = View(self.number, tuple(MemberId(name) for name in names))
        for name in names if among is None else among:
            self[name].on_delivery(self.now, ViewChange(view))
        self.settle()

    def part(self, names: str) -> None:
        """These go on together."""
        for name in names:
            here = self[name].view
            assert here is not None
            members = tuple(MemberId(each) for each in names)
            self[name].on_delivery(self.now, TransitionalView(View(here.id, members)))
        self.settle()

    def carry(self, sender: str, to: str | None = None) -> int:
        """What a member wants to multicast reaches these; returns how much that was."""
        outgoing, count = self[sender].outgoing, len(self[sender].outgoing)
        me = self[sender].me
        for _ in range(count):
            self.seq += 1
            self.deliver(me, outgoing.popleft(), to)
        return count

    def deliver(self, sender: MemberId, payload: bytes, to: str | None = None) -> None:
        batch = batch_of(sender, self.seq or 1, [payload], MARK)
        for name in self.machines if to is None else to:
            self[name].on_delivery(self.now, batch)
        self.settle()

    def rest(self, to: str | None = None) -> None:
        """Until nobody has anything to send."""
        while sum(self.carry(name, to) for name in (self.machines if to is None else to)):
            pass

    def call(
        self, name: str, replies: Wanted = "all", to: int | MemberId = ALL, timeout: Nanos | None = None
    ) -> int:
        return self[name].call(self.now, b"?", replies, to, timeout)

    def answer(self, names: str, body: bytes = b"!", *, error: bool = False) -> None:
        """These answer all that they were given."""
        for name in names:
            for request in self.runs[name]:
                self[name].answer(request.key, body, error=error)
            self.runs[name].clear()
        self.settle()

    def expire(self, now: Nanos) -> None:
        self.now = now
        for machine in self.machines.values():
            machine.expire(now)
        self.settle()

    def result(self, name: str) -> CallAnswer:
        """Of the call that returned last."""
        answer = self.done[name][-1].answer
        assert answer is not None
        return answer

    def history(self, order: str = "total", *, quiesced: bool = True) -> History:
        self.settle()
        members = tuple(machine.me for machine in self.machines.values())
        info = RunInfo.one(
            "calls", "g", "calls", 1, members, None, uniform=False, quiesced=False, order=order
        )
        recorder = Recorder(info)
        for member, note in self.rows:
            recorder.note(0, member, note)
        return recorder.close(quiesced=quiesced)

    def broken(self, order: str = "total", *, quiesced: bool = True) -> set[str]:
        verdicts = check(self.history(order, quiesced=quiesced))
        return {verdict.property for verdict in verdicts if verdict.status is Status.VIOLATED}


def names(members: Sequence[MemberId] | dict[MemberId, bytes]) -> str:
    return "".join(member.name for member in members)
