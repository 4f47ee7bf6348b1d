"""Optional dependencies: the extras of `pyproject.toml`."""

from collections.abc import Iterator
from contextlib import contextmanager


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the text says which extra to install."""


@contextmanager
def extra(name: str, dependency: str, purpose: str) -> Iterator[None]:
    """For the import of something that needs an optional dependency.

    >>> with extra("charts", "chartlib", "drawing a chart"):
    ...     import chartlib
    Traceback (most recent call last):
    semcast.extras.MissingExtraError: drawing a chart needs chartlib: install semcast[charts]
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != dependency:
            raise
        raise MissingExtraError(f"{purpose} needs {dependency}: install semcast[{name}]") from error
