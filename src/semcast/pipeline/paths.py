"""Paths as people write them and as Spark reads them."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_GLOB = re.compile(r"([\\*?\[\]{}])")


def is_remote(path: str) -> bool:
    """Whether a path names its file system, as in `s3a://bucket/x`."""
    return "://" in path


def local_path(uri: str) -> str:
    """The path that a person knows: no scheme, no percent signs."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri


def literal(path: str) -> str:
    """A path as Spark reads it, which would take `[` and `*` for a pattern, and no scheme for its default."""
    return path if is_remote(path) else _GLOB.sub(r"\\\1", as_uri(path))


def as_uri(path: str) -> str:
    """A path as Spark writes to it: of this machine if it names no file system, whatever the cluster's is.

    Hadoop takes names as they are: no percent signs here.
    """
    return path if is_remote(path) else f"file://{Path(path).resolve()}"
