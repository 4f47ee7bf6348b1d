"""What a supervisor knows of one member: the process that has its name now, and what that said last."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from semcast.chaos.families import Family
from semcast.chaos.faults import Plan
from semcast.processes import Child, Line


class RosterEntry:
    """A name, the process that has it now, and what that said last."""

    def __init__(self, name: str, program: str, *, reads: bool, host: str = "") -> None:
        self.name = name
        self.program = program
        self.host = host or name
        """The member that it is a client of, and on whose host it is; itself where it is none."""
        self.reads = reads
        """Whether its program sees views and messages."""
        self.child: Child | None = None
        self.before: set[Path] = set()
        """Journals of earlier processes."""
        self.stopped = False
        self.begun = False
        """Whether it has become a member, so that there is something to kill."""
        self.view: tuple[int, tuple[tuple[str, int], ...]] | None = None
        self.report: Line = {}
        self.marks: set[str] = set()
        self.quiet = False
        self.state = ""
        """What its program has made of all messages, once it was asked."""

    @property
    def recorded_as(self) -> str:
        """The name in its recordings: a client has that of its daemon, too."""
        return self.name if self.host == self.name else f"{self.name}@{self.host}"

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self.child is not None and self.child.running

    def forget(self) -> None:
        """Another process begins."""
        self.view, self.report, self.marks, self.state = None, {}, set(), ""
        self.begun = self.quiet = self.stopped = False

    def hear(self, line: Line) -> None:
        """What the process says."""
        match line["event"]:
            case "begun":
                self.begun = True
            case "view":
                self.view = line["number"], tuple((name, at) for name, at in line["members"])
            case "rejoining":
                self.view = None
            case "mark":
                self.marks.add(line["text"])
            case "report":
                self.report = line
            case "quiet":
                self.quiet = True
            case "state":
                self.state = line["summary"]

    def condition(self) -> str:
        """In a few words, for who asks why it is stuck."""
        if not self.running:
            return "is not running"
        if not self.begun:
            return "has not begun"
        if not self.report:
            return "has not joined"
        view = "no view" if self.view is None else f"view {self.view[0]} of {len(self.view[1])}"
        waits = f", waits in send for {self.report['waits']} s" if self.report["waits"] > 1 else ""
        return f"{self.program}: {self.report['phase']}, {view}{waits}, {self.report['unsent']} unsent"


def roster(family: Family, plan: Plan) -> Iterator[RosterEntry]:
    """Everybody: clients first, so that they also leave first. Programs and hosts are dealt out in turn."""
    if family.clients is not None:
        programs = itertools.cycle(family.clients.programs.items())
        hosts = itertools.cycle(plan.names)
        for name, (program, reads), host in zip(plan.clients, programs, hosts, strict=False):
            yield RosterEntry(name, program, reads=reads, host=host)
    for name, (program, reads) in zip(plan.names, itertools.cycle(family.programs.items()), strict=False):
        yield RosterEntry(name, program, reads=reads)
