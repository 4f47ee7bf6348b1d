"""What must hold of the groups of a causal domain together (seed I, sections 4, 6 and 7)."""

from collections.abc import Callable

from semcast.history.events import History
from semcast.specs.domains.causal import domain_causal_completeness, domain_causal_delivery, no_causal_gap
from semcast.specs.domains.clients import client_agreement, client_completeness, client_views
from semcast.specs.domains.fate import domain_one_fate
from semcast.specs.domains.flush import domain_flush
from semcast.specs.domains.groups import domain_groups
from semcast.specs.domains.stamps import stamp_bound
from semcast.specs.domains.total import domain_total_order
from semcast.specs.verdict import Verdict

DOMAINS: dict[str, Callable[[History], Verdict]] = {
    "domain_groups": domain_groups,
    "domain_causal_delivery": domain_causal_delivery,
    "domain_causal_completeness": domain_causal_completeness,
    "no_causal_gap": no_causal_gap,
    "domain_total_order": domain_total_order,
    "domain_flush": domain_flush,
    "domain_one_fate": domain_one_fate,
    "stamp_bound": stamp_bound,
    "client_views": client_views,
    "client_agreement": client_agreement,
    "client_completeness": client_completeness,
}
