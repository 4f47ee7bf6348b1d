"""How groups overlap, as the program asserts it (1991, 6.6 and 7.3), and what follows for stamps."""

from collections.abc import Collection, Iterable, Sequence

from semcast.core.blocks import blocks, overlaps

ANY = "any"
ACYCLIC = "acyclic"


class Structure:
    """The same at all processes of a domain.

    Args:
        asserted: `any`, `acyclic`, or the sets of groups that one process may be in together.

    >>> ring = Structure([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    >>> sorted(ring.near("a")), sorted(ring.near("d"))
    (['a', 'b', 'c'], ['d'])
    >>> ring.objection(["a"], "d")
    "nobody may be in 'a' and 'd' together: the structure that was asserted has no such overlap"
    """

    def __init__(self, asserted: str | Sequence[Sequence[str]] = ANY) -> None:
        self._kind = asserted if isinstance(asserted, str) else ""
        if self._kind not in ("", ANY, ACYCLIC):
            raise ValueError(
                f"structure {asserted!r}: there are any, acyclic, or sets of groups that overlap"
            )
        sets = () if isinstance(asserted, str) else asserted
        members: dict[str, set[int]] = {}
        for number, groups in enumerate(sets):
            for group in groups:
                members.setdefault(group, set()).add(number)
        self._neighbours = overlaps(members)
        self._near: dict[str, set[str]] = {}
        for block in blocks(self._neighbours):
            for group in block:
                self._near.setdefault(group, set()).update(block)

    def near(self, group: str) -> Collection[str]:
        """The groups in a block with this one: something may come back from there by another way."""
        return self._near.get(group, {group})

    def keeps(self, own: Iterable[str], group: str) -> bool:
        """Whether a process that is in some groups has to know and say the time of another one."""
        return self._kind == ANY or any(group in self.near(each) for each in own)

    def objection(self, own: Sequence[str], group: str) -> str:
        """What speaks against a process in some groups joining another one; nothing if that is fine."""
        if self._kind == ACYCLIC and len(own) > 1:
            named = " and ".join(map(repr, own[:2]))
            return f"who is in {named} and in {group!r} makes a cycle of groups: structure is acyclic"
        if not self._kind:
            for other in own:
                if other not in self._neighbours.get(group, ()):
                    return (
                        f"nobody may be in {other!r} and {group!r} together:"
                        " the structure that was asserted has no such overlap"
                    )
        return ""
