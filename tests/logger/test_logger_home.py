"""The folder of a logger belongs to one logger, and to one process at a time."""

import errno
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from semcast.cli.main import main
from semcast.group.errors import ConfigurationError
from semcast.logger import Home, open_home


def _keep(path: Path, name: str = "", loggers: Sequence[str] = (), log_acks: int | None = None) -> Home:
    """A start of a logger that goes well."""
    home = open_home(path, name, loggers, log_acks)
    home.keep()
    home.close()
    return home


def test_the_name_is_made_up_once(tmp_path: Path) -> None:
    first = open_home(tmp_path)
    first.keep()
    first.close()
    second = open_home(tmp_path)
    second.close()
    assert first.name == second.name


def test_two_loggers_never_share_a_folder(tmp_path: Path) -> None:
    home = open_home(tmp_path, "log-1")
    with pytest.raises(ConfigurationError, match=r"is in use by the logger with process id \d+"):
        open_home(tmp_path, "log-1")
    home.close()
    open_home(tmp_path, "log-1").close()


def test_the_folder_of_another_logger_is_refused(tmp_path: Path) -> None:
    _keep(tmp_path, "log-1")
    with pytest.raises(ConfigurationError, match="belongs to the logger 'log-1', not to 'log-2'"):
        open_home(tmp_path, "log-2")


def test_a_later_start_knows_the_other_loggers(tmp_path: Path) -> None:
    """Else it would take itself for the only one: it would collect, and close streams, by itself."""
    _keep(tmp_path, "log-1", ("log-1", "log-2"), 2)
    for given in ({}, {"loggers": ("log-1", "log-2", "log-3")}, {}):
        home = _keep(tmp_path, **given)  # type: ignore[arg-type]
    assert (home.name, home.loggers, home.log_acks) == ("log-1", ("log-1", "log-2", "log-3"), 2)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--with", "log-1,log-2", "--name", "log-3"],
        ["--with", "log-1,log-2"],
        ["--acks", "2"],
        ["--retention", "live", "--messages", "1000"],
        ["--bytes", "many"],
        ["--age", "long"],
        ["--bind", "127.0.0.1"],
        ["--with", "log-1,,log-1", "--name", "log-1"],
    ],
)
@pytest.mark.parametrize("before", ["", "log-9"], ids=["new", "used"])
def test_a_command_that_is_refused_leaves_no_trace(
    wrong: list[str], before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the folder would remember the mistake, and refuse the command that was meant."""
    if before:
        _keep(tmp_path, before)
    if before and "--name" in wrong:
        wrong = wrong[:2]
    assert main(["logger", str(tmp_path), "--group", "g", *wrong]) == 2
    assert capsys.readouterr().err.startswith("semcast logger: ")
    home = open_home(tmp_path, before or "log-1")
    home.close()
    assert (home.name, home.loggers, home.log_acks) == (before or "log-1", (), None)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="ascii")
    with pytest.raises(ConfigurationError, match=r"Not a directory|File exists"):
        open_home(tmp_path / "file")


def test_the_first_start_names_a_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logger", str(tmp_path)]) == 2
    assert "--group: name a group" in capsys.readouterr().err


def test_an_address_that_is_none_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logger", str(tmp_path), "--group", f"g {uuid.uuid4().hex}", "--metrics", "9090"]) == 2
    assert "metrics: '9090' is not an address and a port" in capsys.readouterr().err


def test_the_unit_starts_the_same_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["logger", str(tmp_path), "--group", "my prices", "--name", "log-1", "--metrics", "127.0.0.1:9"]
    assert main([*words, "--print-unit"]) == 0
    text = capsys.readouterr().out
    assert f"-m semcast logger {tmp_path} --group 'my prices' --name log-1 --metrics 127.0.0.1:9" in text
    assert "semcast-log-1.service" in text


def test_the_unit_of_one_of_several_loggers_names_them_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["logger", str(tmp_path), "--group", "g", "--name", "log1", "--with", "log1,log2", "--acks", "2"]
    assert main([*words, "--print-unit"]) == 0
    assert "--with log1,log2 --name log1 --acks 2" in capsys.readouterr().out


def test_a_disk_that_is_full_is_no_mistake_in_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 3: the unit starts it again, and it goes on once there is room."""
    _keep(tmp_path, "log-1")

    def full(*_given: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for words in (["--group", "g"], ["--group", "g", "--acks", "2", "--with", "log-1,log-2"]):
        assert main(["logger", str(tmp_path), *words]) == 3
        assert "No space left on device" in capsys.readouterr().err
    monkeypatch.undo()
    home = open_home(tmp_path)
    home.close()
    assert home.name == "log-1"
