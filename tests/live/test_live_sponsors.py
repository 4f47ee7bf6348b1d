"""Members that join where no logger is there: as processes, which are killed."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 40.0


class Process:
    """A process that says what happens."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True)

    def until(self, event: str, **about: object) -> dict[str, Any]:
        """Read on until it says that."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found: dict[str, Any] = json.loads(line)
            if found["event"] == event and all(found.get(key) == value for key, value in about.items()):
                return found
        raise AssertionError(f"it ended, and never said {event} {about}")

    def run_of(self, sender: str, length: int) -> list[int]:
        """So many messages of a sender in a row, as they are given; what is lost is told between them."""
        assert self.process.stdout is not None
        found: list[int] = []
        upto = 0
        for line in self.process.stdout:
            said = json.loads(line)
            if said.get("sender") == sender and said["event"] == "message":
                assert not found or said["seq"] == upto + 1
                found.append(upto := said["seq"])
            elif said.get("sender") == sender and said["event"] == "lost":
                upto = said["last"]
            if len(found) == length:
                return found
        raise AssertionError(f"it ended after {len(found)} messages of {sender}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)


class Members:
    """The processes of a group."""

    def __init__(self) -> None:
        self.group = f"sponsors {uuid.uuid4().hex}"
        self.started: list[Process] = []

    def start(self, **given: Any) -> Process:
        return self._begin("tests.live.lab.gossiper", self.group, json.dumps(given))

    def logger(self, folder: Path) -> Process:
        return self._begin("semcast", "logger", str(folder), "--group", self.group, "--json")

    def _begin(self, *command: str) -> Process:
        self.started.append(Process(*command))
        return self.started[-1]


@pytest.fixture
def members() -> Iterator[Members]:
    found = Members()
    yield found
    for each in found.started:
        each.kill()
        assert each.process.stdout is not None
        each.process.stdout.close()


def test_who_joins_without_any_logger_has_everything_from_there_on(members: Members) -> None:
    a, b = members.start(name="a", protocol="pbcast"), members.start(name="b", protocol="pbcast")
    first = a.until("joined")["me"]
    b.until("joined")
    b.run_of(first, 20)
    c = members.start(name="c", protocol="pbcast")
    c.until("joined")
    run = c.run_of(first, 30)
    assert run[0] > 20  # not from the beginning: it starts where its sponsors are


def test_a_sponsor_that_is_killed_while_it_sponsors_holds_nobody_up(members: Members) -> None:
    a, b = members.start(name="a"), members.start(name="b")
    first = a.until("joined")["me"]
    b.until("joined")
    b.run_of(first, 5)
    c = members.start(name="c")
    b.kill()
    c.until("joined")
    c.run_of(first, 30)


def test_all_members_are_killed_and_start_again_at_once(members: Members) -> None:
    a, b = members.start(name="a"), members.start(name="b")
    first = a.until("joined")["me"]
    b.until("joined")
    b.run_of(first, 5)
    for each in (a, b):
        each.kill()
    a, b = members.start(name="a"), members.start(name="b")
    first, second = a.until("joined")["me"], b.until("joined")["me"]
    a.run_of(second, 20)
    b.run_of(first, 20)


def test_who_joins_while_the_logger_is_down_is_taken_in_and_known_to_it_later(
    members: Members, tmp_path: Path
) -> None:
    logger = members.logger(tmp_path)
    given = {"durable": True, "sponsors": 2}
    a, b = members.start(name="a", **given), members.start(name="b", **given)
    first = a.until("joined")["me"]
    b.until("joined")
    b.run_of(first, 5)
    logger.kill()
    a.until("away")
    c = members.start(**given)  # without a name: it never had a session
    third = c.until("joined")["me"]
    members.logger(tmp_path)
    c.until("back")
    c.run_of(first, 20)
    a.run_of(third, 20)
