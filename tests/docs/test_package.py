"""What `import semcast` gives, and what it costs."""

import subprocess
import sys

import pytest

import semcast


def test_every_public_name_is_there() -> None:
    assert set(semcast.__all__) <= set(dir(semcast))
    assert all(getattr(semcast, name) is not None for name in semcast.__all__)
    assert set(semcast.__all__) - {"__version__"} == set(semcast._HOME)


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'conjure'"):
        _ = semcast.conjure


def test_packages_below_it_are_there_too() -> None:
    program = "import semcast; print(semcast.blocking.join, semcast.core.MemberId)"
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)


def test_names_are_loaded_when_they_are_asked_for() -> None:
    program = "import sys, semcast; print([m for m in sys.modules if m.startswith('semcast.')])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
