"""A folder knows whose it is."""

import socket
from pathlib import Path

import pytest

from semcast.group.errors import ConfigurationError
from semcast.server.home import Home, keep, settled
from semcast.server.identity import Site, home_of


def test_a_new_folder_takes_what_the_command_says(tmp_path: Path) -> None:
    made = settled(tmp_path, "bank", "a", ("a", "b"), joins=False)
    assert made == Home("bank", "a", ("a", "b"))
    keep(tmp_path, made)
    assert settled(tmp_path, "bank", "", (), joins=False) == made
    assert settled(tmp_path, "bank", "a", ("a", "b"), joins=True) == made


def test_what_contradicts_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is new: name all servers"):
        settled(tmp_path, "bank", "a", (), joins=False)
    keep(tmp_path, Home("bank", "a", ("a", "b")))
    with pytest.raises(ConfigurationError, match="belongs to the database 'bank', not to 'shop'"):
        settled(tmp_path, "shop", "a", (), joins=False)
    with pytest.raises(ConfigurationError, match="belongs to the server 'a', not to 'b'"):
        settled(tmp_path, "bank", "b", (), joins=False)
    with pytest.raises(ConfigurationError, match="was founded with a, b, not with a, c"):
        settled(tmp_path, "bank", "a", ("a", "c"), joins=False)
    (tmp_path / "server.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="not written by this program"):
        settled(tmp_path, "bank", "a", (), joins=False)


def test_a_server_is_called_as_its_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "db1.example")
    site = Site("bank", tmp_path, founders=("db1", "db2"))
    assert home_of(site).server == "db1"
    assert home_of(Site("bank", tmp_path, joins=True)).server == "db1.example"
    with pytest.raises(ConfigurationError, match="none of x, y: say who this is"):
        home_of(Site("bank", tmp_path, founders=("x", "y")))
