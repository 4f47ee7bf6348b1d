"""What an experiment is given and gives: flat records, so that they travel and end up in a table."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec

Value = float | int | str
Cell = Mapping[str, Value]
Result = dict[str, Value]


class CellError(Exception):
    """A cell that its experiment cannot run; says which parameter is wrong."""


class Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every cell has. Each experiment adds its own, with the paper's values as defaults."""

    seed: int = 1


P = TypeVar("P", bound=Parameters)


class Experiment(Generic[P]):
    """A pure function of a cell, and the parameters that it takes."""

    def __init__(self, parameters: type[P], body: Callable[[P], Result]) -> None:
        self._parameters = parameters
        self._body = body

    def __call__(self, cell: Cell) -> Result:
        """Run one cell."""
        return self._body(self.check(cell))

    def check(self, cell: Cell) -> P:
        """The parameters of a cell; CellError where they are not those of this experiment."""
        try:
            return msgspec.convert(dict(cell), self._parameters)
        except msgspec.ValidationError as error:
            raise CellError(str(error)) from error
