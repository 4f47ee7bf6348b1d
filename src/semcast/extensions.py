"""Families of stacks that are not part of the package.

A program that uses one imports its module. Commands, and processes that commands start, cannot know of that
import: they are told with `SEMCAST_FAMILIES=module,module`.
"""

import importlib
import os
from functools import cache

VARIABLE = "SEMCAST_FAMILIES"


class ExtensionError(Exception):
    """A module that was named cannot be imported; says why."""


@cache
def load_families() -> None:
    """Import the modules that the environment names, once: each registers what it has."""
    for name in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ExtensionError(f"{VARIABLE}: {name}: {error}") from error
