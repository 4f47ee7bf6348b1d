"""Who may do what in which group."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

ACTIONS = frozenset({"join", "send", "private"})
CALLS = "\x00calls"
"""The group in which nobody is: what is sent to a group and to this one belongs to calls."""


def is_call(groups: Sequence[str]) -> bool:
    """Whether messages to these groups belong to calls.

    >>> is_call(("prices", CALLS)), is_call((CALLS, "prices"))
    (True, False)
    """
    return len(groups) == 2 and groups[1] == CALLS


class Identity(msgspec.Struct, frozen=True):
    """Who is at the other end of a connection."""

    names: tuple[str, ...]
    """As rules name it: `user:alice`, `uid:1000`, `gid:100`, `token:web`, `local`."""
    admin: bool = False
    """Whether it may look at the daemon and drop clients."""
    resumes: bool = False
    """Whether its session outlives the connection for a while."""

    def __str__(self) -> str:
        return self.names[0] if self.names else "nobody"


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lets some do something."""

    who: str
    """A name of an identity, or a pattern for it: `uid:1000`, `token:*`, `*`."""
    groups: tuple[str, ...] = ("*",)
    """Names of groups, or patterns for them."""
    may: tuple[str, ...] = ("join", "send", "private")

    def __post_init__(self) -> None:
        if strange := set(self.may) - ACTIONS:
            raise ValueError(f"{', '.join(sorted(strange))}: there are {', '.join(sorted(ACTIONS))}")


_KNOWN = 10_000
"""Answers that are remembered, at most: clients make up names of groups."""
EVERYTHING = (Rule("*"),)


class Permissions:
    """The rules of a daemon: what none allows is refused.

    >>> web = Identity(("token:web",))
    >>> rules = Permissions([Rule("token:web", ("chat.*",), ("join", "send"))])
    >>> rules.allow(web, "join", "chat.all"), rules.allow(web, "join", "orders")
    (True, False)
    """

    def __init__(self, rules: Sequence[Rule] = EVERYTHING) -> None:
        self._rules = tuple(rules)
        self._known: dict[tuple[Identity, str, str], bool] = {}

    def allow(self, who: Identity, action: str, group: str) -> bool:
        """Whether it may; private messages have no group."""
        key = who, action, group
        found = self._known.get(key)
        if found is None:
            if len(self._known) > _KNOWN:
                self._known.clear()
            found = self._known[key] = any(_lets(rule, *key) for rule in self._rules)
        return found


def _lets(rule: Rule, who: Identity, action: str, group: str) -> bool:
    if action not in rule.may or not any(fnmatchcase(name, rule.who) for name in who.names):
        return False
    return action == "private" or any(fnmatchcase(group, pattern) for pattern in rule.groups)
