"""Where recordings are: one folder, which specs name their traces in."""

import os
from pathlib import Path

DEFAULT = "../shared/data"


def data_folder(base: Path | None = None) -> Path:
    """The folder of `SEMCAST_TRACES`, else the default; relative ones start from `base`, or from here."""
    return (base or Path()) / (os.environ.get("SEMCAST_TRACES") or DEFAULT)
