"""Every settings file in the docs is read by who would read it."""

import re
from pathlib import Path

import pytest

from semcast.daemon.access import Access
from semcast.group.errors import ConfigurationError
from semcast.group.settings import resolve

ROOT = Path(__file__).parents[2]


def block(page: str) -> str:
    """The only settings file on a page."""
    text = (ROOT / "docs" / f"{page}.md").read_text("utf8")
    [found] = re.findall(r"^```toml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return str(found)


def test_every_page_with_a_settings_file_has_a_test() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    found = {page.stem for page in pages if re.search("^ *```toml", page.read_text("utf8"), re.M)}
    assert found == {"daemon", "report", "settings"}


def test_settings_of_a_group(tmp_path: Path) -> None:
    text = block("settings")
    (tmp_path / "semcast.toml").write_text(text)
    settings = resolve({}, tmp_path)
    assert (settings.bind, settings.peers) == ("192.0.2.7:0", ("192.0.2.8:7000",))
    assert (settings.multicast, settings.metrics) == (True, "127.0.0.1:9464")
    assert getattr(settings, "token_loss", None) == "500ms"
    (tmp_path / "semcast.toml").write_text(text.replace("token_loss", "token_lost"))
    with pytest.raises(ConfigurationError, match="token_loss"):
        resolve({}, tmp_path)


def test_who_may_use_a_daemon(tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text(block("daemon"))
    file.chmod(0o600)
    access = Access(file)
    assert access.has_tokens
    assert [rule.who for rule in access.file.allow] == ["token:web", "local"]


def test_what_a_spec_shows(tmp_path: Path) -> None:
    spec = pytest.importorskip("semcast.pipeline.sweep.spec")
    file = tmp_path / "f2.toml"
    grid = "[grid]\nr = [0.25]\ndelay_ms = [20]\n"
    file.write_text(f'experiment = "f2"\n{grid}{block("report")}')
    report = spec.read_spec(file).report
    assert set(report.ours) == {"buffer", "protocol"}
    assert [plot.title for plot in report.plots] == ["Throughput"]
