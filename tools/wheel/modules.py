"""Which modules of the package are compiled: docs/decisions/0018 says why."""

import enum
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

import msgspec

FOLDERS = (
    "core",
    "obsolescence",
    "wire",
    "protocols",
    "protocols/semantic",
    "protocols/vsync",
    "protocols/ring",
)
"""Folders whose modules are compiled: what every message of a live group or of a simulation passes."""
INTERPRETED = ("__init__", "family", "families", "watchers")
"""Modules that only import others, or find them by name, or define a protocol from which others derive."""


def to_compile(source: Path) -> list[Path]:
    """The modules to compile, of the package in this folder."""
    found = [path for folder in FOLDERS for path in sorted((source / "semcast" / folder).glob("*.py"))]
    return [path for path in found if path.stem not in INTERPRETED and not defines_structs(path, source)]


def defines_structs(path: Path, source: Path) -> bool:
    """Whether it defines a `msgspec.Struct`, which needs annotations that compiled classes do not have."""
    return any(issubclass(kind, msgspec.Struct) for kind in classes(path, source))


def open_classes(path: Path, source: Path) -> list[str]:
    """The classes of a module that others may derive from also where those are not compiled."""
    closed = (enum.Enum, tuple, BaseException)
    return [
        kind.__name__
        for kind in classes(path, source)
        if not (issubclass(kind, closed) or is_dataclass(kind))
    ]


def classes(path: Path, source: Path) -> list[type]:
    """The classes that a module defines."""
    name = ".".join(path.relative_to(source).with_suffix("").parts)
    found = (each for each in vars(import_module(name)).values() if isinstance(each, type))
    return [each for each in found if each.__module__ == name]
