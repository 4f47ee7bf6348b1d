"""Settings that cannot be: every error names the setting, and what would do."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import semcast
from semcast.group.observing import observe
from semcast.group.settings import GroupSettings, check_group, resolve
from semcast.group.stacks import bind_address, build


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No file and no variables but those of a test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"token_loss": "1us"}, "token_loss '1us': must be at least 10ms"),
        ({"token_loss": "soon"}, "token_loss = 'soon' is not a duration: write 20ms"),
        ({"token_los": "1s"}, r"no such setting: token_los; did you mean token_loss\?"),
        ({"zebra": 1}, "no such setting: zebra; choose from name, stack"),
        ({"queue_messages": "many"}, "queue_messages = 'many': expected `int`"),
        ({"queue_messages": 0}, "queue_messages must be at least 1"),
        ({"multicast": "perhaps"}, "multicast = 'perhaps': expected `bool`"),
        ({"peers": "127.0.0.1:5000"}, "peers = '127.0.0.1:5000': expected `array`"),
        ({"peers": ["nowhere"]}, "peers: 'nowhere' is not an address and a port"),
        ({"peers": ["::1:80"]}, "peers: '::1:80': an IPv6 address stands in brackets"),
        ({"peers": ["127.0.0.1:0"]}, "peers: '127.0.0.1:0' is not an address and a port"),
        ({"bind": "127.0.0.1"}, "bind: '127.0.0.1' is not an address and a port"),
        ({"metrics": "here"}, "metrics: 'here' is not an address and a port"),
        ({"name": "n" * 65}, "name of 65 bytes: at most 64"),
        ({"name": "ü" * 33}, "name of 66 bytes: at most 64"),
        ({"name": "\ud800"}, "is not text"),
        ({"name": 5}, "name = 5: expected `str`"),
        ({"datagram": 100}, "datagram of 100 bytes"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(semcast.ConfigurationError, match=words):
        resolve(wrong)


def test_a_misspelt_variable_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMCAST_TOKENLOSS", "1s")
    wanted = r"no such variable: SEMCAST_TOKENLOSS; did you mean SEMCAST_TOKEN_LOSS\?"
    with pytest.raises(semcast.ConfigurationError, match=wanted):
        resolve({})


def test_variables_of_other_things_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = resolve({})
    for name in (
        "SEMCAST_SPARK_MEMORY",
        "SEMCAST_TEST_EVERYTHING",
        "SEMCAST_TRACES",
        "SEMCAST_SRC",
        "SEMCAST_SERVICE_HOST",
    ):
        monkeypatch.setenv(name, "1")
    assert resolve({}) == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('token_loss = "1s"', "semcast.toml: token_loss: settings belong into the table"),
        ("[groups]\nname = 'a'", "semcast.toml: groups: settings belong into the table"),
        ("group = 1", r"semcast.toml: \[group\] is not a table"),
        ("[group]\ntoken_los = '1s'", "semcast.toml: no such setting: token_los; did you mean token_loss"),
        ("[group]\nwindow = 'x'", "window = 'x': expected `int`"),
        ("[group", "semcast.toml: "),
    ],
)
def test_files_that_make_no_sense(alone: Path, text: str, words: str) -> None:
    (alone / "semcast.toml").write_text(text)
    with pytest.raises(semcast.ConfigurationError, match=words):
        resolve({})


def test_an_empty_file_says_nothing(alone: Path) -> None:
    before = resolve({})
    (alone / "semcast.toml").write_text("# nothing yet\n")
    assert resolve({}) == before


@pytest.mark.parametrize("name", ["", "g" * 257, 5, "\udc00"])
def test_names_of_groups_are_bounded(name: Any) -> None:
    with pytest.raises(semcast.ConfigurationError, match="name"):
        check_group(name)
    with pytest.raises(semcast.ConfigurationError, match="name"):
        observe(name, GroupSettings())

    async def join() -> None:
        with pytest.raises(semcast.ConfigurationError, match="name"):
            semcast.join(name)

    asyncio.run(join())


def test_host_names_are_looked_up_at_the_start() -> None:
    assert bind_address(resolve({"bind": "localhost:0"}))[0] in ("127.0.0.1", "::1")
    with pytest.raises(semcast.ConfigurationError, match=r"bind: 'no\.invalid:0': cannot find host"):
        bind_address(resolve({"bind": "no.invalid:0"}))
    with pytest.raises(semcast.ConfigurationError, match=r"peers: 'no\.invalid:5000': cannot find"):
        build("g", resolve({"peers": ["no.invalid:5000"]}))


def test_peers_are_of_the_family_that_is_bound_to() -> None:
    with pytest.raises(semcast.ConfigurationError, match=r"peers: .*is an IPv6 address, and this member"):
        build("g", resolve({"peers": ["[::1]:5000"]}))
    parts = build("g", resolve({"bind": "[::1]:0", "peers": ["[::1]:5000", "localhost:5001"]}))
    parts.close()
    assert parts.peers == (("::1", 5000), ("::1", 5001))


def test_a_fixed_list_has_names_of_hosts_too() -> None:
    settings = {"stack": "s-rm", "name": "a", "members": ["a=127.0.0.1:5701", "b=localhost:5702"]}
    parts = build("g", resolve(settings))
    parts.close()
    assert parts.lease.exchange.endpoint.address == ("127.0.0.1", 5701)
    assert parts.peers == (("127.0.0.1", 5702),)
    with pytest.raises(semcast.ConfigurationError, match=r"members: 'no\.invalid:1': cannot find"):
        build("g", resolve({**settings, "members": ["a=127.0.0.1:5701", "b=no.invalid:1"]}))
    with pytest.raises(semcast.ConfigurationError, match="not among the members"):
        build("g", resolve({**settings, "name": "c"}))
