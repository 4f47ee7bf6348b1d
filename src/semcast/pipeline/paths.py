"""Paths as people write them and as Spark reads them."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_GLOB = re.compile(r"([\\*?\[\]{}])")


def is_remote(path: str) -> bool:
    """Whether a path names its file system, as in `s3a://bucket/x`."""
    return "://" in path


def local_path(uri: str) -> str:
    """The path that a person knows: no percent signs, and no scheme if it is on the local disk."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return unquote(parts.path)
    return unquote(uri) if is_remote(uri) else uri


def literal(path: str) -> str:
    """A path as Spark reads it, which would take `[` and `*` for a pattern, and no scheme for its default."""
    return path if is_remote(path) else for_spark(path)


def for_spark(path: str) -> str:
    """One file or folder as Spark reads it, on the local disk if it names no other file system."""
    return escaped(as_uri(path))


def escaped(path: str) -> str:
    """With every character standing for itself."""
    return _GLOB.sub(r"\\\1", path)


def as_uri(path: str) -> str:
    """A path as Spark writes to it: of this machine if it names no file system, whatever the cluster's is.

    Hadoop takes names as they are: no percent signs here.
    """
    return path if is_remote(path) else f"file://{Path(path).resolve()}"
