"""The toy for programs: its settings, and how a live member is built."""

from random import Random

from tests.toy.family import TOY
from tests.toy.stack import Toy, ToySettings

from semcast.core import Outbox, Stack
from semcast.group import ConfigurationError, GroupSettings
from semcast.group.families import FAMILIES, Family, Site
from semcast.group.settings import parse_duration

MOST = 256
"""Messages under way: all of them are said again where one is lost."""


class ToyGroupSettings(GroupSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set about a live group of toys."""

    said_again: str = "20ms"
    """How long a message waits to be heard, before it is said again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if parse_duration(self.said_again) < 1:
            raise ConfigurationError(f"said_again {self.said_again}: more than nothing")


def _build(site: Site, _rng: Random, out: Outbox) -> Stack:
    settings = site.settings
    assert isinstance(settings, ToyGroupSettings)
    chosen = ToySettings(most=min(settings.queue_messages, MOST), again=parse_duration(settings.said_again))
    return Toy(site.member, site.members, chosen, out)


def _largest(site: Site) -> int:
    return site.packet


FAMILIES.register(
    Family(
        name="toy",
        protocol=TOY,
        settings=ToyGroupSettings,
        build=_build,
        fixed=True,
        largest=_largest,
        splits=False,
        takes_updates=False,
        announces=False,
    )
)
