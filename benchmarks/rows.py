"""What a benchmark reports."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A measured value beside its floor: what plain Python does in the same run, in the same unit."""

    name: str
    value: float
    unit: str
    floor: float
    ratio: float
    target: str


def against(name: str, value: float, unit: str, floor: float, target: str) -> Row:
    """A row with its ratio worked out."""
    return Row(name, value, unit, floor, value / floor, target)
