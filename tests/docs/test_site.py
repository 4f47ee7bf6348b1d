"""The documentation as a site: it builds without a warning, needs no network, and its pictures are true."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from semcast.core.ids import MILLISECOND
from semcast.sim.slow_receiver import SlowReceiver, measure

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_pictures_are_those_of_the_code() -> None:
    command = [sys.executable, "-m", "tools.pictures", "--check"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_chart_of_the_slow_receiver_shows_what_is_measured() -> None:
    chart = (ROOT / "docs" / "pictures" / "slow-receiver.svg").read_text("utf8")
    for stack in ("reliable", "s-rm"):
        rate = measure(SlowReceiver(stack, 20 * MILLISECOND)).sent
        assert f">{rate:.0f}</text>" in chart


def test_the_site_builds_and_needs_no_network(tmp_path: Path) -> None:
    """Strict: a link that leads nowhere, or a page that is in no menu, fails."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text("utf8")
        loaded = re.findall(r"<(?:script|img|link)[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>", text)
        assert not [tag for tag in loaded if 'rel="canonical"' not in tag], page.name
        assert "class=mermaid" not in text
        assert 'class="mermaid"' not in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_programs_in_the_text_can_be_read_by_python(page: Path) -> None:
    for program in re.findall(r"^```python\n(.*?)^```", page.read_text("utf8"), re.DOTALL | re.MULTILINE):
        whole = program if not program.startswith(" ") else f"if True:\n{program}"  # a part of a class
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        compile(whole, str(page), "exec", flags)


def test_no_page_cites_papers_by_letters() -> None:
    for page in PAGES:
        assert not re.search(r"(?<!-)\bseed [PRISA]\b", page.read_text("utf8")), page.name
