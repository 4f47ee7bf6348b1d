"""The examples in virtual time: their programs are unchanged, and many seeds take as long as one live run."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from semcast.testing import World, swarm

EXAMPLES = Path(__file__).parents[2] / "examples"
WHOLE = ["answers", "chat", "counter", "dictionary", "game", "jobs", "primary_backup", "publisher"]
WHOLE += ["shop", "state_machine", "stock"]
KEEPING = ["atm", "fleet", "inventory", "taxis"]
"""Those with logs and databases. What starts processes, sleeps with `time.sleep` or records is left out."""


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("name", WHOLE)
def test_an_example_runs_as_it_is(name: str) -> None:
    main = example(name).main
    for seed in range(3):
        with World(seed, hosts=1) as world:
            world.run(main)
            world.check()


@pytest.mark.parametrize("name", KEEPING)
def test_an_example_with_a_disk_runs_as_it_is(name: str) -> None:
    with World(seed=1, hosts=1) as world:
        world.run(example(name).main)
        world.check()


@swarm(seeds=20, loss=0.1, jitter=0.003)
def test_a_chat_of_three_hosts_on_a_bad_network(world: World) -> None:
    chatter = example("chat").chatter
    people = {"ann": ["hello", "how are you?"], "bob": ["hi", "fine"], "cleo": ["hey", "bye"]}

    async def person(name: str) -> object:
        return await chatter(name, people[name], size=3)

    started = [world.start(host, person, name) for host, name in zip(world.hosts, people, strict=True)]
    world.wait()
    logs = [process.result() for process in started]
    assert logs[0] == logs[1] == logs[2]
    world.check()
