"""The properties as `verify` knows them, what a form on Spark starts from, and what it says.

Which stack promises which property is said once, in `semcast.specs.families`; what each means, by the
checkers of `semcast.specs`. A new property needs a record here, and a form that knows its name.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from semcast import specs
from semcast.history import HistoryError, RunInfo
from semcast.pipeline.verify.run_index import RunIndex
from semcast.pipeline.verify.stays import Who
from semcast.pipeline.verify.totals import Participant
from semcast.specs import Verdict


class Need(enum.Enum):
    """What must be known of a run before anything can be said."""

    END = "the run was over"
    RELATION = "what replaces what: that is an order, and all that was sent is known"
    ALL_SENT = "all that was sent"
    SENT = "all that was sent, unless something breaks it anyway"
    CONFIGURATIONS = "configurations"
    VIEWS = "views"
    LIMIT = "the limit of buffers, and how full they were"


class Form(enum.Enum):
    """How it is judged on Spark."""

    ORDER = "streams that go forwards"
    CRASHES = "rows after the end of a process"
    RELATION = "circles of replacements"
    CONTENTS = "who delivered what of all that was multicast, and whether the contents are the same"
    BUFFERS = "high-water marks against a limit"
    STATES = "the last states of applications"
    CONFIGURATIONS = "what com(c) asks of its members"
    VIEWS = "what a view asks of its members"
    POSITIONS = "positions in the total order"
    RING = "positions of the ring"
    CAUSAL = "vector times"
    CONFIRMED = "what was confirmed against what was delivered"
    REPLICATION = "rows of servers that are in doubt"
    GOSSIP = "what sessions and logs of gossip have"
    LIGHTWEIGHT = "daemons of lightweight groups, and what clients were told"
    CALLS = "calls and their answers"
    DOMAINS = "causal order between groups"
    NONE = "not at all: only in memory"


@dataclass(frozen=True, slots=True)
class Property:
    """One property."""

    name: str
    form: Form
    needs: tuple[Need, ...] = ()


def _records() -> tuple[Property, ...]:
    over, relation = (Need.END, Need.RELATION), Need.RELATION
    there, views = Need.CONFIGURATIONS, Need.VIEWS
    return (
        Property("relation_is_order", Form.RELATION),
        Property("integrity", Form.CONTENTS, (Need.SENT,)),
        Property("fifo_delivery", Form.ORDER),
        Property("nothing_after_crash", Form.CRASHES),
        Property("semantic_sender_reliability", Form.CONTENTS, over),
        Property("semantic_validity", Form.CONTENTS, over),
        Property("semantic_agreement", Form.CONTENTS, over),
        Property("semantic_uniform_agreement", Form.CONTENTS, over),
        Property("semantic_fifo_completeness", Form.CONTENTS, over),
        Property("buffer_bound", Form.BUFFERS, (Need.LIMIT,)),
        Property("same_state", Form.STATES, (Need.END,)),
        Property("same_state_of_correct_senders", Form.STATES, (Need.END,)),
        Property("ring_certificate", Form.RING, (there,)),
        Property("vector_certificate", Form.CAUSAL, (views,)),
        Property("evs_1_1_precedence", Form.RING, (there,)),
        Property("evs_1_2_local_order", Form.CONFIGURATIONS, (there,)),
        Property("evs_1_3_sent_before_in_same_configuration", Form.CONFIGURATIONS, (there, Need.SENT)),
        Property("evs_1_4_once", Form.CONFIGURATIONS, (there,)),
        Property("evs_2_1_installed_by_all", Form.CONFIGURATIONS, (Need.END, there)),
        Property("evs_2_2_inside_configuration", Form.CONFIGURATIONS, (there,)),
        Property("evs_2_3_cut_after", Form.RING, (there,)),
        Property("evs_2_4_cut_before", Form.RING, (there,)),
        Property("evs_3_self_delivery", Form.CONFIGURATIONS, (there, relation)),
        Property("evs_4_failure_atomicity", Form.CONFIGURATIONS, (there, relation)),
        Property("evs_5_causal", Form.RING, (there, relation)),
        Property("evs_6_1_order_respects_precedence", Form.RING, (there,)),
        Property("evs_6_2_same_moment", Form.RING, (there,)),
        Property("evs_6_3_agreed", Form.RING, (there, relation)),
        Property("evs_7_1_safe", Form.CONFIGURATIONS, (there, relation)),
        Property("evs_7_2_safe_configuration_installed", Form.CONFIGURATIONS, (there,)),
        Property("pair_same_members", Form.CONFIGURATIONS, (there,)),
        Property("pair_transitional", Form.CONFIGURATIONS, (there, relation)),
        Property("pair_transitional_then_regular", Form.CONFIGURATIONS, (there, relation)),
        Property("evs_purge_within_configuration", Form.CONFIGURATIONS, (there, Need.ALL_SENT)),
        Property("vs_view_agreement", Form.VIEWS, (views,)),
        Property("vs_primary_partition", Form.VIEWS, (views,)),
        Property("vs_sending_view_delivery", Form.VIEWS, (views, Need.SENT)),
        Property("vs_semantic_validity", Form.VIEWS, (views, relation)),
        Property("vs_view_synchrony", Form.VIEWS, (views,)),
        Property("vs_semantic_view_synchrony", Form.VIEWS, (views, relation)),
        Property("vs_semantic_fifo_view_completeness", Form.VIEWS, (views, relation)),
        Property("vs_semantic_uniform_agreement", Form.VIEWS, (views, relation)),
        Property("causal_delivery", Form.CAUSAL, (views, Need.SENT)),
        Property("semantic_causal_completeness", Form.CAUSAL, (views, relation)),
        Property("total_order", Form.POSITIONS, (views,)),
        Property("uniform_total_order", Form.POSITIONS, (views,)),
        Property("vs_state_transfer", Form.VIEWS, (views,)),
        Property("confirmed", Form.CONFIRMED),
        *(Property(name, Form.REPLICATION) for name in specs.REPLICATION),
        *(Property(name, Form.GOSSIP) for name in (*specs.GOSSIP, *specs.GOSSIP_LOGS, *specs.GOSSIP_BATCHES)),
        *(Property(name, Form.LIGHTWEIGHT) for name in specs.LIGHTWEIGHT),
        *(Property(name, Form.CALLS) for name in specs.CALLS),
        *(Property(name, Form.DOMAINS) for name in specs.DOMAINS),
    )


PROPERTIES: dict[str, Property] = {
    **{name: Property(name, Form.NONE) for name in (*specs.PROPERTIES, *specs.IN_MEMORY)},
    **{record.name: record for record in _records()},
}
_LARGE = (
    Form.VIEWS,
    Form.POSITIONS,
    Form.RING,
    Form.CAUSAL,
    Form.CONFIRMED,
    Form.REPLICATION,
    Form.GOSSIP,
    Form.LIGHTWEIGHT,
    Form.CALLS,
    Form.DOMAINS,
    Form.NONE,
)
FORMS = tuple(name for name, record in PROPERTIES.items() if record.form not in _LARGE)
"""The properties that are judged on Spark whatever the size of a run; others where memory does not do."""


def named(*forms: Form) -> tuple[str, ...]:
    """The properties that these forms judge."""
    return tuple(name for name, record in PROPERTIES.items() if record.form in forms)


def needs(name: str, *some: Need) -> bool:
    """Whether a property needs any of these."""
    return any(need in some for need in PROPERTIES[name].needs)


def wanted_properties(runs: Mapping[str, RunInfo], properties: Sequence[str] | None) -> dict[str, list[str]]:
    """What to check of each run: what was asked for, or what its stack promises."""
    for name in properties or ():
        if name not in PROPERTIES:
            raise HistoryError(f"no such property: {name}; there are {', '.join(PROPERTIES)}")
    wanted = {}
    for run, info in runs.items():
        try:
            wanted[run] = list(dict.fromkeys(properties)) if properties else specs.properties_for(info.only)
        except ValueError as error:
            raise HistoryError(f"run {run}: {error}; name some with --property") from error
    return wanted


Wanted = Mapping[str, Sequence[str]]
"""By run, the properties to be judged."""

Case = tuple[str, str]
"""A run and a property."""


@dataclass(frozen=True, slots=True)
class Given:
    """Some runs, and what is known of them before any form looks at messages."""

    run_index: RunIndex
    rows: DataFrame
    """As they are stored, by the names of runs."""

    roster: Sequence[Participant]
    positions: DataFrame
    """Where annotated messages stand in the total order: (run, sender, seq, position)."""

    tails: Mapping[Who, int]
    """The last message that is known of senders whose recordings are cut off."""

    circular: set[str]
    """Runs whose obsolescence relation is not an order."""

    untold: set[str]
    """Runs with a message that was sent where the recording of its sender is cut off."""


@dataclass(slots=True)
class Findings:
    """Violations, and what cannot be told."""

    violations: list[DataFrame] = field(default_factory=list)
    """In the columns of `violations`."""

    unknown: dict[Case, str] = field(default_factory=dict)
    """Why it cannot be told."""

    doubts: dict[Case, str] = field(default_factory=dict)
    """Why it is not known to hold, if nothing breaks it."""

    notes: dict[Case, str] = field(default_factory=dict)
    """What was not looked at."""

    verdicts: list[tuple[str, Verdict]] = field(default_factory=list)
    """Runs, and what the checkers in memory said of them or of an excerpt, where that is final."""

    def add(self, other: "Findings") -> None:
        """Both together."""
        self.violations += other.violations
        self.unknown.update(other.unknown)
        self.doubts.update(other.doubts)
        self.notes.update(other.notes)
        self.verdicts += other.verdicts


Judge = Callable[[Given, Wanted], Findings]
"""A form: judges some properties of some runs."""
