"""Registries: each name once, and errors that say what there is."""

import os
import subprocess
import sys

import msgspec
import pytest

import semcast
from semcast.bench import families as bench
from semcast.cli import families as cli
from semcast.core import Frame
from semcast.core.registry import Registry, UnknownNameError
from semcast.extensions import VARIABLE
from semcast.group import families as group
from semcast.group.stacks import build
from semcast.protocols.families import FAMILIES as PROTOCOLS
from semcast.protocols.families import Family
from semcast.protocols.ring.frames import Packet
from semcast.sim import families as sim
from semcast.specs.families import FAMILIES as PROMISES


class Pet(msgspec.Struct, frozen=True):
    name: str


def test_the_same_name_does_not_mean_two_things() -> None:
    pets: Registry[Pet] = Registry("pet")
    pets.register(Pet("rex"))
    with pytest.raises(ValueError, match="pet 'rex' is registered already"):
        pets.register(Pet("rex"))


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    pets: Registry[Pet] = Registry("pet")
    pets.register(Pet("rex"))
    pets.register(Pet("tom"))
    assert [pet.name for pet in pets] == ["rex", "tom"]
    with pytest.raises(UnknownNameError, match="pet 'kitty': choose from rex, tom"):
        pets.of("kitty")


def test_tags_of_frames_are_unique_among_all_families() -> None:
    class Again(Frame, frozen=True, array_like=True, tag=7):
        pass

    with pytest.raises(ValueError, match=f"Again of other has the tag of {Packet.__name__}: 7"):
        PROTOCOLS.register(Family("other", (Again,)))
    assert "other" not in PROTOCOLS


def test_the_layers_know_the_same_stacks() -> None:
    simulated, live = set(sim.FAMILIES.names()), set(group.FAMILIES.names())
    assert simulated == set(PROMISES.names()), "every stack that is simulated is judged"
    runs = {name for family in group.FAMILIES for name in family.runs or (family.name,)}
    assert runs <= simulated, "what programs run is what the swarm judges"
    assert live == set(bench.FAMILIES.names())
    assert set(cli.FAMILIES.names()) <= simulated


def test_a_module_that_is_not_there_is_told() -> None:
    command = [sys.executable, "-m", "semcast.cli.main", "--help"]
    env = {**os.environ, VARIABLE: "no.such"}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.strip() == f"semcast: {VARIABLE}: no.such: No module named 'no'"


def test_settings_of_another_type_are_refused() -> None:
    """A stack is never built from settings that nobody checked for it."""
    with pytest.raises(semcast.ConfigurationError, match="settings of vsync are SynchronySettings"):
        build("g", semcast.GroupSettings(stack="vsync"))
