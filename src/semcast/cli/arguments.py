"""Values on the command line: durations, ranges, lists."""

import re
from pathlib import Path

from semcast.cli.errors import UsageError
from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.pipeline.paths import is_remote, local_path

_UNITS: dict[str, Nanos] = {"us": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "m": 60 * SECOND}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m)")


def duration(text: str) -> Nanos:
    """A time such as 20ms, 1.5s, 300us.

    >>> duration("1.5ms")
    1500000
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a duration: write 20ms, 1.5s, 300us or 2m")
    return round(float(match[1]) * _UNITS[match[2]])


def seed_range(text: str) -> range:
    """Seeds A..B, B not included; a single number is one seed.

    >>> seed_range("0..200")
    range(0, 200)
    """
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a range of seeds: write 0..200 or 17")
    first = int(match[1])
    last = first + 1 if match[2] is None else int(match[2])
    if last <= first:
        raise UsageError(f"{text!r}: the range is empty")
    return range(first, last)


def check_folder(option: str, name: str | None) -> None:
    """Refuse to take a file for a folder to write to; what is at a URI is found out later."""
    if name is None or is_remote(local_path(name)):
        return
    path = Path(local_path(name))
    if path.exists() and not path.is_dir():
        raise UsageError(f"{option} {name}: there is a file of that name")
