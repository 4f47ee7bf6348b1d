"""Extended virtual synchrony: one checker per specification of Amir 1995, 4.1, and the pairwise rules."""

from collections.abc import Callable

from semcast.history.events import History
from semcast.specs.evs.agreed import (
    evs_5_causal,
    evs_6_1_order_respects_precedence,
    evs_6_2_same_moment,
    evs_6_3_agreed,
)
from semcast.specs.evs.basic import (
    evs_1_3_sent_before_in_same_configuration,
    evs_1_4_once,
    evs_2_1_installed_by_all,
    evs_2_2_inside_configuration,
)
from semcast.specs.evs.delivery import evs_3_self_delivery, evs_4_failure_atomicity
from semcast.specs.evs.pairs import (
    pair_same_members,
    pair_transitional,
    pair_transitional_then_regular,
)
from semcast.specs.evs.precedence import (
    evs_1_1_precedence,
    evs_1_2_local_order,
    evs_2_3_cut_after,
    evs_2_4_cut_before,
)
from semcast.specs.evs.purges import evs_purge_within_configuration
from semcast.specs.evs.safe import evs_7_1_safe, evs_7_2_safe_configuration_installed
from semcast.specs.verdict import Verdict

__all__ = ["EVS"]

EVS: dict[str, Callable[[History], Verdict]] = {
    checker.__name__: checker
    for checker in (
        evs_1_1_precedence,
        evs_1_2_local_order,
        evs_1_3_sent_before_in_same_configuration,
        evs_1_4_once,
        evs_2_1_installed_by_all,
        evs_2_2_inside_configuration,
        evs_2_3_cut_after,
        evs_2_4_cut_before,
        evs_3_self_delivery,
        evs_4_failure_atomicity,
        evs_5_causal,
        evs_6_1_order_respects_precedence,
        evs_6_2_same_moment,
        evs_6_3_agreed,
        evs_7_1_safe,
        evs_7_2_safe_configuration_installed,
        pair_same_members,
        pair_transitional,
        pair_transitional_then_regular,
        evs_purge_within_configuration,
    )
}
