"""`semcast keygen` from the command line's side."""

import json
import os
import stat
from pathlib import Path

import pytest

from semcast.cli.main import main
from semcast.net.keyfile import load_keyring


def keygen(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main(["keygen", *map(str, arguments)]) == 0
    captured = capsys.readouterr()
    return captured.out + captured.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main(["keygen", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.fixture
def path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    made = tmp_path / "keys.toml"
    keygen(capsys, made)
    return made


def test_only_the_owner_can_read_it_whatever_the_umask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = os.umask(0)
    try:
        keygen(capsys, tmp_path / "keys.toml")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "keys.toml").stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["keys.toml"], "no draft is left"


def test_a_key_turns_over_in_three_steps(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [old] = load_keyring(path).keys
    added = json.loads(keygen(capsys, path, "--add", "--cipher", "chacha20-poly1305", "--json"))
    new = added["keys"][1]["id"]
    assert added == {
        "file": str(path),
        "use": old.id,
        "keys": [
            {"id": old.id, "cipher": old.cipher.value},
            {"id": new, "cipher": "chacha20-poly1305"},
        ],
    }
    assert json.loads(keygen(capsys, path, "--use", new, "--json"))["use"] == new
    assert [key.id for key in load_keyring(path).keys] == [old.id, new]
    keygen(capsys, path, "--remove", old.id)
    assert [key.id for key in load_keyring(path).keys] == [new]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_secrets_are_never_printed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = keygen(capsys, path, "--add") + keygen(capsys, path, "--list")
    printed += keygen(capsys, path, "--list", "--json")
    text = path.read_text(encoding="utf8")
    secrets = [line.split('"')[1] for line in text.splitlines() if line.startswith("secret")]
    assert len(secrets) == 2
    for secret, key in zip(secrets, load_keyring(path).keys, strict=True):
        assert secret not in printed
        assert key.secret.hex() not in printed
        assert key.id in printed


def test_nothing_is_overwritten(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert "--add" in refused(capsys, path)
    assert path.read_bytes() == before


def test_two_rings_differ(tmp_path: Path, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keygen(capsys, tmp_path / "other.toml")
    assert load_keyring(path).sealing.secret != load_keyring(tmp_path / "other.toml").sealing.secret


def test_a_link_stays_a_link(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = path.with_name("link.toml")
    link.symlink_to(path)
    keygen(capsys, link, "--add")
    assert link.is_symlink()
    assert len(load_keyring(path).keys) == 2


def test_wrong_questions(tmp_path: Path, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    in_use = load_keyring(path).sealing.id
    assert "none of the keys" in refused(capsys, path, "--use", "ffffffff")
    assert "is in use" in refused(capsys, path, "--remove", in_use)
    assert "no such key" in refused(capsys, path, "--remove", "ffffffff")
    assert "for new keys" in refused(capsys, path, "--use", in_use, "--cipher", "aes-256-gcm")
    assert "No such file" in refused(capsys, tmp_path / "missing.toml", "--add")
    assert "No such file" in refused(capsys, tmp_path / "missing" / "keys.toml")
    path.chmod(0o604)
    assert f"chmod 600 {path}" in refused(capsys, path, "--list")


def test_a_file_that_is_no_keyring_is_not_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "keys.toml"
    for text in (
        'use = "TOPSECRET',
        "TOPSECRET",
        "\x00TOPSECRET",
        'TOPSECRET = "a"\nTOPSECRET = "b"',
        "[" * 5000,
    ):
        broken.write_text(text, encoding="utf8")
        broken.chmod(0o600)
        said = refused(capsys, broken, "--list")
        assert "not a keyring" in said
        assert "TOPSECRET" not in said
    broken.write_bytes(b"\xff\xfe")
    assert "not a keyring" in refused(capsys, broken, "--list")
    broken.write_bytes(b"#" * 100_000)
    assert "larger than any keyring" in refused(capsys, broken, "--list")
