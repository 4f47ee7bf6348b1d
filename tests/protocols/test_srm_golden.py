"""Golden traces: scripts of inputs with the frames, deliveries and receipts they give.

A change of behaviour shows up as a readable diff. `SEMCAST_GOLDEN=write make test` writes the files anew;
read the diff before you commit it.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from semcast.core import Frame, Item, Purged
from semcast.protocols.semantic import Settings
from semcast.protocols.semantic.frames import Data, Gossip, Notice, Request

TRACES = sorted((Path(__file__).parent / "golden").glob("*.txt"))


def describe(frame: Frame) -> str:
    match frame:
        case Data(sender=sender, first=first, payloads=payloads):
            return f"data {sender}:{first} {b' '.join(payloads).decode()}"
        case Request(sender=sender, spans=spans):
            return f"request {sender}:{spans}"
        case Notice(sender=sender, base=base, bitmap=bitmap):
            return f"notice {sender}:{base} purged {int.from_bytes(bitmap, 'little'):b}"
        case Gossip(received=received, stability=stability, safety=safety):
            safe = None if safety is None else safety.result
            return f"gossip queued {received} stable {stability.result} safe {safe}"
    return repr(frame)


class Player:
    """Runs a script: one command a line, its effects printed below it."""

    def __init__(self, make_lab: Any) -> None:
        self._make_lab = make_lab
        self._lab: Any = None
        self._seen = 0

    def play(self, line: str) -> list[str]:
        verb, *words = line.split()
        options = dict(word.split("=") for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        match verb:
            case "group":
                self._lab = self._make_lab(names[0], Settings(buffer_messages=int(options["buffer"])))
            case "multicast":
                item = options.get("item")
                accepted = self._lab.multicast(names[0], names[1].encode(), Item(item) if item else None)
                return self._effects() + ([] if accepted else ["refused"])
            case "carry":
                self._seen = 0
                self._lab.carry(lambda _source, dest, _frame: not names or dest in names)
            case "gossip":
                self._lab.gossip(names[0], *names[1:])
            case "request":
                self._lab.request(names[0])
            case "crash":
                self._lab.crash(names[0])
            case "read":
                return [f"{names[0]} delivers {payload.decode()}" for payload in self._lab.read(names[0])]
        return self._effects()

    def _effects(self) -> list[str]:
        """New frames on the wire, and receipts."""
        wire = self._lab.wire
        lines = [f"{source} -> {dest}: {describe(frame)}" for source, dest, frame in wire[self._seen :]]
        self._seen = len(wire)
        for name, events in self._lab.events.items():
            lines += [f"{name} purges {event.id}" for event in events if isinstance(event, Purged)]
            events.clear()
        return lines


def replay(make_lab: Any, text: str) -> str:
    player = Player(make_lab)
    lines = []
    for line in text.splitlines():
        if line.startswith("    "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"    {effect}" for effect in player.play(line)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_golden_trace(make_lab: Any, path: Path) -> None:
    text = path.read_text(encoding="utf8")
    played = replay(make_lab, text)
    if os.environ.get("SEMCAST_GOLDEN") == "write":
        path.write_text(played, encoding="utf8")
    assert played == text
