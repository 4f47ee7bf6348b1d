"""How much of vector times a message carries (seed I, 6.3, 6.6, 6.7 and table I)."""

from semcast.core.blocks import blocks, overlaps
from semcast.core.ids import MemberId
from semcast.history.events import History
from semcast.specs.domains.kinds import BEGAN, CLIENT, SENT, VIEW
from semcast.specs.domains.story import NOTHING_RECORDED, Row, Story, story_of
from semcast.specs.verdict import Findings, Verdict, unknown

MAX_GROUPS = 64
"""So many other groups a stamp may speak of under the policy `full`."""


def stamp_bound(history: History) -> Verdict:
    """I, 6.3 to 6.7 and table I: the stamp of a message is no larger than the structure of groups asks for.

    Of its own group at most a field for each member of the view; b of a group of diffusion with b servers;
    2s + c where s servers have c clients. Of other groups: none (conservative), those that its sender is in
    (epochs), those in which its sender ever was, those in a block of at least three groups with one of these,
    and those that direct messages to it spoke of (blocks), at most 64 (full); and of each no more fields than
    it ever had members. Blocks are those of the groups as they were, or as they were asserted to overlap; if
    nothing was asserted, it is as with full. Counts messages.
    """
    name = "stamp_bound"
    story = story_of(history)
    if not story.stays:
        return unknown(name, NOTHING_RECORDED)
    policies: dict[MemberId, str] = {}
    asserted: tuple[tuple[str, ...], ...] = ()
    silent: list[MemberId] = []
    for process, rows in story.rows.items():
        began = next((row for row in rows if row.kind is BEGAN), None)
        if began is not None and began.event.level is not None:
            structure = began.text.structure
            policies[process] = "full" if structure == "any" else began.event.level
            asserted = structure if isinstance(structure, tuple) else asserted
        elif any(row.kind is SENT and row.text.others for row in rows):
            silent.append(process)
    findings = Findings(name)
    _Bounds(story, policies, asserted).find(findings)
    verdict = findings.verdict()
    if silent and not verdict.count:
        return unknown(name, f"it is not recorded which policy {silent[0]} has")
    return verdict


class _Bounds:
    def __init__(
        self, story: Story, policies: dict[MemberId, str], asserted: tuple[tuple[str, ...], ...]
    ) -> None:
        self._rows = story.rows
        self._policies = policies
        self._sizes: dict[str, int] = {}
        self._views: dict[tuple[str, int], Row] = {}
        self._groups: dict[MemberId, set[str]] = {process: set() for process in story.rows}
        members: dict[str, set[MemberId]] = {}
        for process, rows in story.rows.items():
            for row in rows:
                if row.kind in (VIEW, CLIENT) and row.event.view is not None:
                    group, inside = row.text.group, row.event.members or ()
                    self._groups[process].add(group)
                    self._views.setdefault((group, row.event.view), row)
                    self._sizes[group] = max(self._sizes.get(group, 0), len(inside))
                    members.setdefault(group, set()).update(inside)
        together = {f"asserted {number}": groups for number, groups in enumerate(asserted)}
        everybody: dict[str, list[MemberId | str]] = {group: [*inside] for group, inside in members.items()}
        for name, groups in together.items():
            for group in groups:
                everybody.setdefault(group, []).append(name)
        self._blocks = blocks(overlaps(everybody))
        self._spoken: dict[MemberId, set[str]] = {}  # groups that direct messages spoke of
        for rows in story.rows.values():
            for row in rows:
                if row.kind is SENT and row.text.direct and row.event.members:
                    spoken = self._spoken.setdefault(row.event.members[0], set())
                    spoken.update(row.text.others, (row.text.group,))

    def find(self, findings: Findings) -> None:
        for process, rows in self._rows.items():
            near = self._near(self._groups[process]) | self._spoken.get(process, set())
            here: set[str] = set()
            for row in rows:
                if row.kind in (VIEW, CLIENT):
                    here.add(row.text.group)
                elif row.kind is SENT:
                    problem = self._problem(row, self._allowed(process, here, near))
                    if problem:
                        findings.count(1)
                        findings.example(f"{process}: {problem}", row.event.only(row.event.seq))

    def _near(self, groups: set[str]) -> set[str]:
        return groups.union(*(block for block in self._blocks if block & groups))

    def _allowed(self, process: MemberId, here: set[str], near: set[str]) -> set[str] | None:
        """The other groups that a stamp may speak of; None for any."""
        policy = self._policies.get(process)
        if policy in ("full", None):
            return None
        return {"conservative": set[str](), "epochs": here, "blocks": near}.get(policy or "", set[str]())

    def _problem(self, row: Row, allowed: set[str] | None) -> str:
        text, event = row.text, row.event
        assert event.view is not None
        view = self._views.get((text.group, event.view))
        if view is not None and text.own > (most := _fields(view)):
            return f"{text.own} fields of {text.group}, which has {most} at most"
        if len(text.others) > MAX_GROUPS:
            return f"a stamp of {len(text.others)} groups"
        for group, fields in text.others.items():
            if allowed is not None and group not in allowed:
                return f"a stamp of {group} in {text.group}, where none is needed"
            if group == text.group or fields > self._sizes.get(group, 0):
                return f"{fields} fields of {group}, which never had so many members"
        return ""


def _fields(view: Row) -> int:
    """The most that a message of a view may carry of its own group."""
    members, text = len(view.event.members or ()), view.text
    if text.style == "diffusion":
        return text.servers
    return members + text.servers if text.style == "client-server" else members
