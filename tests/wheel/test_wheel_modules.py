"""What may be compiled: seen in the sources, where nothing is."""

import pkgutil
from collections.abc import Iterator
from pathlib import Path

from tools.wheel.modules import classes, to_compile

import semcast

SOURCE = Path(__file__).parents[2] / "src"
OPTIONAL = ("semcast.pipeline", "semcast.server", "semcast.cli")
"""They need what not everybody installs, or start something."""


def interpreted() -> Iterator[Path]:
    compiled = set(to_compile(SOURCE))
    for module in pkgutil.walk_packages(semcast.__path__, "semcast."):
        path = SOURCE.joinpath(*module.name.split("."))
        path = path / "__init__.py" if module.ispkg else path.with_suffix(".py")
        if (
            not module.name.startswith(OPTIONAL)
            and not module.name.endswith("__main__")
            and path not in compiled
        ):
            yield path


def test_no_class_derives_from_a_compiled_protocol_unless_it_is_compiled() -> None:
    """Else it cannot be instantiated, and only a live group would tell."""
    names = {".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in to_compile(SOURCE)}
    for path in interpreted():
        for kind in classes(path, SOURCE):
            protocols = [base for base in kind.__mro__[1:] if getattr(base, "_is_protocol", False)]
            assert not [base for base in protocols if base.__module__ in names], kind
