"""Every command in the docs is one: `semcast` takes its words, and `make` knows its targets."""

import argparse
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from semcast.cli.main import VERBS, build_parser

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
MAKE = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf8"), re.MULTILINE))


def commands(page: Path) -> Iterator[str]:
    """The lines of the blocks for a shell; one that goes on ends with a backslash."""
    for block in re.findall(r"^ *```sh\n(.*?)^ *```", page.read_text("utf8"), re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            if line.strip() and not line.strip().startswith("#"):
                yield line.strip()


COMMANDS = [(page, line) for page in PAGES for line in commands(page)]


@cache
def parser() -> argparse.ArgumentParser:
    return build_parser()


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=lambda each: str(getattr(each, "name", each)))
def test_a_command_is_one(page: Path, line: str) -> None:
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    program, *rest = words
    if program == "export":
        assert re.fullmatch(r"[A-Z_]+=\S+", rest[0])
    elif program == "make":
        assert set(rest) <= MAKE, f"{page.name}: {line}"
    elif program == "spark-submit":
        parser().parse_args(rest[rest.index("semcast_submit.py") + 1 :])
    elif program == "python" and rest[:2] == ["-m", "semcast.cli.main"]:
        known = ["ring" if word == "toy" else word for word in rest[2:]]  # the variable adds the toy
        parser().parse_args(known)
    elif program == "python":
        assert (ROOT / rest[0]).is_file(), f"{page.name}: {line}"
    elif program == "pip":
        assert rest[0] == "install"
    else:
        assert program == "semcast", f"{page.name}: who knows {program}?"
        parser().parse_args(rest)


def options(words: list[str]) -> set[str]:
    """Those of a verb, and of what follows it."""
    found: set[str] = set()
    now: argparse.ArgumentParser | None = parser()
    while now is not None:
        found |= {option for action in now._actions for option in action.option_strings}
        inner = [action for action in now._actions if isinstance(action, argparse._SubParsersAction)]
        choices = inner[0].choices if inner else {}
        named = [word for word in words if word in choices]
        now = choices[named[0]] if named else None
        words = words[words.index(named[0]) + 1 :] if named else []
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_text_have_the_options_that_are_named(page: Path) -> None:
    prose = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf8"), flags=re.DOTALL | re.MULTILINE)
    for quoted in re.findall(r"`semcast ([^`]+)`", prose):
        words = re.split(r"[\s|]+", quoted.replace("[", " ").replace("]", " ").strip())
        if not re.fullmatch("[a-z]+", words[0]):
            continue  # such as `semcast VERB --help`
        assert words[0] in VERBS, f"{page.name}: semcast {quoted}"
        named = {word.split("=")[0].rstrip(",") for word in words if word.startswith("--")}
        assert named <= options(words) | {"--help"}, f"{page.name}: semcast {quoted}"


def described(now: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, argparse.Action]]:
    """All options and arguments, of all verbs."""
    for action in now._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from described(inner)
        else:
            yield now, action


def test_every_option_says_what_it_is_for() -> None:
    assert [(each.prog, action.dest) for each, action in described(parser()) if not action.help] == []


def test_every_verb_says_what_it_does() -> None:
    [verbs] = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    assert [name for name, verb in verbs.choices.items() if not verb.description] == []
