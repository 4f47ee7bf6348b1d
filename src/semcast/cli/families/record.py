"""What the command line must know of a stack: flags of its own."""

import argparse
from collections.abc import Callable

import msgspec

from semcast.cli.errors import UsageError
from semcast.core.registry import Registry
from semcast.sim.scenario import Fixed, Scenario


def _none(_parser: argparse.ArgumentParser) -> None:
    pass


def _as_is(_args: argparse.Namespace, scenario: Scenario) -> Scenario:
    return scenario


def _all_drawn(_args: argparse.Namespace) -> Fixed | None:
    return None


def _nothing(_fixed: Fixed) -> str:
    return ""


class Flags(msgspec.Struct, frozen=True):
    """Flags of one verb that are there for one stack. What is not given is None."""

    names: tuple[str, ...] = ()
    """Those that say nothing to other stacks, and are refused there; as in `args`."""
    declare: Callable[[argparse.ArgumentParser], None] = _none


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A stack, for commands."""

    name: str
    run: Flags = Flags()
    """Of `semcast sim run`."""
    scenario: Callable[[argparse.Namespace, Scenario], Scenario] = _as_is
    """The scenario that common flags describe, with what those of `run` say."""
    swarm: Flags = Flags()
    """Of `semcast sim swarm`."""
    fixed: Callable[[argparse.Namespace], Fixed | None] = _all_drawn
    """What those of `swarm` fix."""
    again: Callable[[Fixed], str] = _nothing
    """What to type to have the same fixed again."""
    live: Flags = Flags()
    """Of the verbs that join a group; each is the name of a setting."""


FAMILIES: Registry[Family] = Registry("stack")


def refuse_strange(args: argparse.Namespace, verb: Callable[[Family], Flags]) -> None:
    """Raise where flags of another stack are given."""
    for family in FAMILIES:
        for name in verb(family).names if family.name != args.stack else ():
            value = getattr(args, name)
            if value is not None:
                said = f"--{name.replace('_', '-')}" + ("" if isinstance(value, bool) else f" {value}")
                raise UsageError(f"{said}: for --stack {family.name}, not {args.stack}")
