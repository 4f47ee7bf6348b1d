"""What a supervisor says of faults and of processes, in a few words."""

from pathlib import Path

import msgspec

from semcast.chaos.faults import AnyFault


def words_of(fault: AnyFault) -> str:
    """What a fault does, and to whom."""
    about = {
        key: value for key, value in msgspec.to_builtins(fault).items() if key not in ("fault", "at", "calm")
    }
    return " ".join(f"{key}={_short(value)}" for key, value in about.items())


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_short(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + " ".join(map(_short, value)) + "]"
    return str(value)


def last_line(path: Path) -> str:
    """Of what a process wrote to its standard error."""
    lines = path.read_text(encoding="utf8", errors="replace").strip().splitlines() if path.exists() else []
    return lines[-1] if lines else "without a word"
