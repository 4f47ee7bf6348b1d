"""Calls for the reference client: ask the members of a group, and answer (docs/client-protocol.md, Calls).

client = Client(path)
calls = Calls(client, lambda group, caller, payload: payload.upper())   # before it joins a group
client.join("shout")
... calls.call("shout", b"hi").replies
"""

import time
from collections.abc import Callable
from typing import Any

from semcast_client import (  # type: ignore[import-not-found]
    CALLS,
    DELIVER,
    OUT_OF,
    TRANSITIONAL,
    VIEW,
    Client,
    is_call,
    pack,
    unpack,
)

ASK, SAY = 1, 2
ALL, ONE = 0, 1
REPLY, ERROR, ABSTAINS = 0, 1, 2
Member = tuple[str, int]
Handler = Callable[[str, Member, bytes], bytes]


class Answer:
    """What came of a call: `complete`, `too few` or `timeout`; empty while it waits."""

    def __init__(self, replies: str | int, to: Any) -> None:
        self.outcome = ""
        self.replies: dict[Member, bytes] = {}
        self.errors: dict[Member, str] = {}
        self.departed: list[Member] = []
        self.abstained: list[Member] = []
        self.missing: list[Member] = []
        self.wanted, self.to = replies, to
        self.expected: list[Member] | None = None  # the members of the view in which it was delivered
        self.early: list[tuple[Member, int, bytes]] = []  # what came before that

    def hear(self, member: Member, what: int, body: bytes) -> None:
        """What a member says; it counts if it was asked, is there, and says it for the first time."""
        if self.expected is None:
            self.early.append((member, what, body))
        elif member in self.waiting():
            if what == ABSTAINS:
                self.abstained.append(member)
            elif what == ERROR:
                self.errors[member] = body.decode(errors="replace")
            else:
                self.replies[member] = body

    def waiting(self) -> list[Member]:
        """Who was asked, and has neither answered nor gone."""
        done = {*self.replies, *self.errors, *self.departed, *self.abstained}
        return [member for member in self.expected or () if member not in done]

    def judge(self, hopeless: bool = False) -> None:
        """Whether it returns: with what was asked for, or because that cannot come any more."""
        if self.expected is None or self.outcome:
            return
        got, waiting = len(self.replies) + len(self.errors), len(self.waiting())
        voters = len(self.expected) - len(self.abstained)
        needs = {"first": 1, "majority": voters // 2 + 1, "all": max(1, got + waiting)}
        need = 1 if self.to != ALL else self.wanted if isinstance(self.wanted, int) else needs[self.wanted]
        if got >= need:
            self.end("complete")
        elif hopeless or (self.to != ONE and got + waiting < need):
            self.end("too few")

    def end(self, outcome: str) -> None:
        """It returns."""
        self.outcome, self.missing = outcome, self.waiting()


class Calls:
    """The calls of one client, in all its groups. Without a handler it says that it answers none."""

    def __init__(self, client: Client, handler: Handler | None = None) -> None:
        self.client, self.handler = client, handler
        self.me: Member = tuple(client.member)
        self.number = 0
        self.views: dict[str, list[Member]] = {}  # those of the last view who are still together
        self.open: dict[int, tuple[str, Answer]] = {}
        self.last: dict[tuple[str, Member], int] = {}
        self.duties: dict[tuple[str, Member, int], tuple[list[Member], bytes]] = {}  # requests for one
        client.watch = self.watch

    def call(
        self, group: str, payload: bytes, replies: str | int = "all", to: Any = ALL, timeout: float = 10.0
    ) -> Answer:
        """Ask a group that this client is in; what else comes meanwhile is kept for `events`."""
        self.number += 1
        answer = Answer(replies, to)
        self.open[self.number] = group, answer
        until = time.monotonic() + timeout
        asked = [ASK, self.number, to, int(timeout * 1e9), payload]
        self.client.cast([group, CALLS], [pack(asked)])
        while not answer.outcome:
            left = until - time.monotonic()
            frame = self.client.hear(left) if left > 0 else None
            if frame is None:
                answer.end("timeout")
            else:
                self.client.pending.append(frame)
        self.open = {number: each for number, each in self.open.items() if each[1] is not answer}
        return answer

    def watch(self, frame: list[Any]) -> None:
        """Every frame, in order."""
        if frame[0] == VIEW:
            self.on_view(frame[1], [tuple(each) for each in frame[3]])
        elif frame[0] == TRANSITIONAL:
            self.on_view(frame[1], [each for each in self.views.get(frame[1], []) if list(each) in frame[3]])
        elif frame[0] == OUT_OF:
            self.views.pop(frame[1], None)
        elif frame[0] == DELIVER and is_call(frame):
            (number, rest, _), index = frame[4]
            for place, payload in enumerate(frame[5]):
                position = ((number << 1 | rest) << 53 | index) + place
                self.on_envelope(frame[1][0], tuple(frame[2]), position, unpack(payload)[0])

    def on_view(self, group: str, members: list[Member]) -> None:
        """Who was asked and did not come along is departed; its own requests are nobody's any more."""
        before = self.views.get(group, [])
        self.views[group] = members
        for where, answer in list(self.open.values()):
            if where == group and answer.expected is not None:
                answer.departed += [each for each in answer.waiting() if each not in members]
                answer.judge()
        for each in set(before) - set(members):
            self.last.pop((group, each), None)
        for key, (candidates, _) in list(self.duties.items()):
            if key[0] == group and key[1] not in members:
                del self.duties[key]
            elif key[0] == group:
                self.choose(key, [each for each in candidates if each in members])

    def on_envelope(self, group: str, sender: Member, position: int, envelope: list[Any]) -> None:
        """A request, or what somebody says to one."""
        if envelope[0] == ASK:
            number, to, body = envelope[1], envelope[2], envelope[4]
            if number > self.last.get((group, sender), 0) and group in self.views:
                self.last[group, sender] = number
                self.on_ask(group, sender, number, to, position, body)
        elif envelope[0] == SAY:
            caller, number, what, body = tuple(envelope[1]), *envelope[2:5]
            if caller == self.me and number in self.open:
                self.open[number][1].hear(sender, what, body)
                self.open[number][1].judge()
            duty = self.duties.get((group, caller, number))
            if duty is not None and what == ABSTAINS:
                self.choose((group, caller, number), [each for each in duty[0] if each != sender])
            elif duty is not None and sender == duty[0][0]:
                del self.duties[group, caller, number]

    def on_ask(self, group: str, caller: Member, number: int, to: Any, position: int, body: bytes) -> None:
        """A request is delivered: in this view, for all of it."""
        members = self.views[group]
        if caller == self.me and number in self.open:
            answer = self.open[number][1]
            answer.expected = [tuple(to)] if isinstance(to, list | tuple) else list(members)
            for said in answer.early:
                answer.hear(*said)
            answer.judge()
        if to == ONE:
            first = position % len(members)
            self.duties[group, caller, number] = [], body
            self.choose((group, caller, number), members[first:] + members[:first])
        elif to == ALL or tuple(to) == self.me:
            self.answer(group, caller, number, body)

    def choose(self, key: tuple[str, Member, int], candidates: list[Member]) -> None:
        """A request for one is the first's of those who are left; the same at all members."""
        before, body = self.duties[key]
        self.duties[key] = candidates, body
        if not candidates:
            del self.duties[key]
            if key[1] == self.me and key[2] in self.open:
                self.open[key[2]][1].judge(hopeless=True)
        elif candidates[0] == self.me and before[:1] != [self.me]:
            self.answer(*key, body)

    def answer(self, group: str, caller: Member, number: int, body: bytes) -> None:
        """With what the handler makes of it."""
        try:
            said = (REPLY, self.handler(group, caller, body)) if self.handler else (ABSTAINS, b"")
        except Exception as error:
            said = ERROR, str(error).encode()
        self.client.cast([group, CALLS], [pack([SAY, caller, number, *said])])
