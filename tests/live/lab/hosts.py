"""Hosts in network namespaces, for tests: skipped, saying why, where there are none."""

import pytest
from tests.lacking import lacking

from semcast.chaos import network
from semcast.chaos.network import NoNamespacesError


class Lan(network.Lan):
    """A network of hosts, each with a letter for its name."""

    def __init__(self, names: str) -> None:
        try:
            super().__init__(names)
        except NoNamespacesError as error:
            if "iproute2" in str(error):
                lacking(str(error))
            pytest.skip(str(error))

    def __enter__(self) -> "Lan":
        try:
            super().__enter__()
        except NoNamespacesError as error:
            pytest.skip(str(error))
        return self
