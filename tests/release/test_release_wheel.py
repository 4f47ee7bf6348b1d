"""What would be published: the archives hold what they should, and the wheel works by itself.

`make release` sets SEMCAST_TEST_DIST to the archives that it has built; otherwise they are built here.
"""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from tests.firstprogram import README, run_three
from tests.release.emptyenvironment import Environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, and the wheel that was built from it."""
    given = os.environ.get("SEMCAST_TEST_DIST")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Installed without extras."""
    return Environment(tmp_path_factory.mktemp("plain"), wheel)


@pytest.fixture(scope="session")
def with_history(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Installed as semcast[history]."""
    return Environment(tmp_path_factory.mktemp("history"), wheel, "history")


def files(*folders: str) -> set[str]:
    """The files in these folders of the project."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    names = {str(path.relative_to(ROOT)) for path in found}
    return {name for name in names if "__pycache__" not in name and ".egg-info" not in name}


def test_the_wheel_holds_the_package_and_its_experiments_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert not archive.testzip()
    expected = {name.removeprefix("src/") for name in files("src")}
    assert not expected - names
    assert not {name for name in names if not name.startswith("semcast/")}
    assert "semcast/experiments/f2.toml" in names
    assert "semcast/experiments/profile/g1.toml" in names
    assert "semcast/py.typed" in names


def test_the_source_archive_holds_tests_docs_and_changelog(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert not files("src", "tests", "docs", "examples", "benchmarks") - names
    assert {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"} <= names
    assert not [name for name in names if name.endswith(".pyc")]


def test_its_metadata_is_valid(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Metadata.from_email(archive.read(name), validate=True)
    assert metadata.classifiers is not None
    assert "Operating System :: POSIX :: Linux" in metadata.classifiers
    assert metadata.description_content_type == "text/markdown"
    assert metadata.description == README.read_text("utf8")
    plain = [str(needed) for needed in metadata.requires_dist or () if needed.marker is None]
    assert not [needed for needed in plain if "pyarrow" in needed]


def test_both_commands_start(plain: Environment, tmp_path: Path) -> None:
    assert plain.run("-m", "semcast", "--help", cwd=tmp_path).returncode == 0
    script = Path(plain.python).with_name("semcast")
    assert subprocess.run([script, "--version"], check=False, cwd=tmp_path).returncode == 0


def test_the_first_program_runs_without_extras(plain: Environment, tmp_path: Path) -> None:
    printed = run_three(plain.python, tmp_path)
    prices = [re.findall(r".* says .*", text) for text in printed]
    assert prices[0] == prices[1] == prices[2]


def test_the_simulation_of_the_readme_runs_without_extras(plain: Environment, tmp_path: Path) -> None:
    programs = re.findall(r"```python\n(.*?)```", README.read_text("utf8"), re.DOTALL)
    (program,) = (each for each in programs if "simulate(" in each)
    ran = plain.run("-c", program, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "semantic_agreement: holds" in ran.stdout


def test_what_needs_pyarrow_says_what_to_install(plain: Environment, tmp_path: Path) -> None:
    for arguments in (
        ["check", str(tmp_path)],
        ["sim", "run", "--record", str(tmp_path / "run")],
        ["chaos", "--stack", "ring"],
    ):
        ran = plain.run("-m", "semcast", *arguments, cwd=tmp_path)
        assert ran.returncode == 2, ran.stderr
        needs = "reading or writing a recorded history needs pyarrow: install semcast[history]"
        assert ran.stderr == f"semcast {arguments[0]}: {needs}\n"


def test_with_history_a_recording_is_written_and_checked(with_history: Environment, tmp_path: Path) -> None:
    recorded = str(tmp_path / "run")
    written = with_history.run("-m", "semcast", "sim", "run", "--record", recorded, cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    checked = with_history.run("-m", "semcast", "check", recorded, cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "holds" in checked.stdout
    assert "violated" not in checked.stdout
