"""What there is of a kind, by name: each layer keeps one of what it must know of a family of stacks."""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar


class Named(Protocol):
    """A record that says what it is called."""

    @property
    def name(self) -> str:
        """Its name, which is that of a stack."""


Record = TypeVar("Record", bound=Named)


class Registry(Generic[Record]):
    """Records by name, in the order in which they came. A module registers its record when it is imported.

    Args:
        what: the names stand for, in a word; for errors.

    >>> from types import SimpleNamespace
    >>> pets = Registry("pet")
    >>> rex = pets.register(SimpleNamespace(name="rex", kind="dog"))
    >>> pets.of("rex").kind
    'dog'
    >>> pets.of("tom")
    Traceback (most recent call last):
    ...
    semcast.core.registry.UnknownNameError: pet 'tom': choose from rex
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._records: dict[str, Record] = {}

    def register(self, record: Record) -> Record:
        """Add a record; the same name does not mean two things."""
        if record.name in self._records:
            raise ValueError(f"{self._what} {record.name!r} is registered already")
        self._records[record.name] = record
        return record

    def of(self, name: str) -> Record:
        """The record of a name; an error that says which there are."""
        try:
            return self._records[name]
        except KeyError:
            raise UnknownNameError(f"{self._what} {name!r}: choose from {', '.join(self._records)}") from None

    def names(self) -> tuple[str, ...]:
        """All names."""
        return tuple(self._records)

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __iter__(self) -> Iterator[Record]:
        return iter(tuple(self._records.values()))


class UnknownNameError(ValueError):
    """There is nothing of that name; says what there is."""
