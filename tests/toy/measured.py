"""The toy for benchmarks."""

from collections.abc import Mapping
from typing import Any

from semcast.bench.case import Case
from semcast.bench.families import FAMILIES, Family, listed


def _settings(case: Case) -> Mapping[str, Any]:
    return {"members": listed(case), "said_again": "50ms"}


FAMILIES.register(Family(name="toy", orders=("fifo",), settings=_settings, fixed=True))
