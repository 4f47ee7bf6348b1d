"""The folder of recordings, in which specs name their traces."""

import os
from pathlib import Path

VARIABLE = "SEMCAST_TRACES"


def data_folder() -> Path | None:
    """The folder that `SEMCAST_TRACES` names; None if it is not set."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None
