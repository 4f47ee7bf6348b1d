"""What S-RM makes of the settings of a group."""

import pytest

from semcast.group.errors import ConfigurationError
from semcast.group.families.semantic import FAMILY


def test_nobody_leaves_a_fixed_list() -> None:
    with pytest.raises(ConfigurationError, match=r"policy 'leave': .* set purge or block"):
        FAMILY.settings(stack="s-rm", policy="leave")


@pytest.mark.parametrize("policy", ["block", "purge"])
def test_other_policies_are_obeyed(policy: str) -> None:
    assert FAMILY.settings(stack="s-rm", policy=policy).policy == policy
