"""Replays the recorded transcript against a daemon: `python replay.py SOCKET TRANSCRIPT`."""

import json
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from semcast_client import pack, unpack  # type: ignore[import-not-found]


class Wire:
    """Frames, and nothing else."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def say(self, frame: Any) -> None:
        """Send a frame."""
        body = pack(frame)
        self.socket.sendall(struct.pack(">I", len(body)) + body)

    def hear(self, skip: list[int]) -> Any:
        """The next frame that is not skipped; None at the end."""
        while head := self.file.read(4):
            frame = unpack(self.file.read(int.from_bytes(head, "big")))[0]
            if frame[0] not in skip:
                return frame
        return None


def filled(value: Any, known: dict[str, Any]) -> Any:
    """A frame to send, with what is known in the place of names."""
    if isinstance(value, str) and value.startswith("$"):
        return known[value]
    if isinstance(value, dict):
        return pack(filled(value["packed"], known)) if "packed" in value else bytes.fromhex(value["bytes"])
    return [filled(each, known) for each in value] if isinstance(value, list) else value


def matches(wanted: Any, found: Any, known: dict[str, Any]) -> bool:
    """Whether a frame is as recorded."""
    if wanted == "*":
        return True
    if isinstance(wanted, str) and wanted.startswith("$"):
        return bool(known.setdefault(wanted, found) == found)
    if isinstance(wanted, dict) and "packed" in wanted:
        return matches(wanted["packed"], unpack(found)[0], known)
    if isinstance(wanted, dict):
        return bool(bytes.fromhex(wanted["bytes"]) == found)
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(wanted) == len(found)
            and all(matches(one, other, known) for one, other in zip(wanted, found, strict=True))
        )
    return bool(wanted == found)


def replay(path: str, transcript: Path) -> int:
    """Do what is recorded; returns how many steps that were."""
    wires: dict[str, Wire] = {}
    known: dict[str, Any] = {}
    skip: list[int] = []
    lines = transcript.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        step = json.loads(line)
        skip = step.get("skip", skip)
        if "at" not in step:
            continue
        wire = wires.get(step["at"]) or wires.setdefault(step["at"], Wire(path))
        if "say" in step:
            wire.say(filled(step["say"], known))
        else:
            found = wire.hear(skip)
            wanted = None if "closed" in step else step["hear"]
            if not matches(wanted, found, known):
                raise SystemExit(f"line {number}: {wanted} was recorded, {found} came")
    return len(lines)


if __name__ == "__main__":
    print(replay(sys.argv[1], Path(sys.argv[2])), "steps, all as recorded")
