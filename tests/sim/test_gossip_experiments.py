"""L1 to L5 and what is ours of gossip, small: the figures go where the paper and the models say."""

import pytest

from semcast.sim.experiments import EXPERIMENTS, CellError, Value

SMALL: dict[str, Value] = {"seconds": 0.6, "linger_s": 2.0}


def figures(experiment: str, **cell: Value) -> dict[str, float]:
    result = EXPERIMENTS[experiment](cell)
    return {name: value for name, value in result.items() if not isinstance(value, str)}


@pytest.fixture(scope="module")
def protocols() -> dict[str, dict[str, float]]:
    """The same second with all three."""
    return {name: figures("l1", protocol=name, **SMALL) for name in ("lbrm", "pbcast", "rpbcast")}


def test_l1_the_logger_makes_all_repairs_of_lbrm_and_few_of_rpbcast(
    protocols: dict[str, dict[str, float]],
) -> None:
    lbrm, rpbcast = protocols["lbrm"], protocols["rpbcast"]
    assert lbrm["repairs_logger"] > 50 * lbrm["repairs_mean"]
    assert rpbcast["repairs_logger"] < lbrm["repairs_logger"] / 2
    assert rpbcast["link_repairs_most"] < lbrm["link_repairs_most"] / 2


def test_l2_rpbcast_is_faster_than_pbcast(protocols: dict[str, dict[str, float]]) -> None:
    assert 0 < protocols["rpbcast"]["latency_s"] < protocols["pbcast"]["latency_s"]


def test_l3_with_a_logger_everybody_gets_everything(protocols: dict[str, dict[str, float]]) -> None:
    for name in ("lbrm", "rpbcast"):
        assert protocols[name]["not_everywhere"] == 0
        assert protocols[name]["sent"] == protocols["pbcast"]["sent"] > 150


def test_l4_digests_grow_with_the_senders() -> None:
    one, many = (
        figures("l4", protocol="pbcast", senders=senders, seconds=1.0, linger_s=0.0)["overhead_bytes"]
        for senders in (1, 18)
    )
    assert many > 1.5 * one


@pytest.mark.parametrize(
    "cell",
    [
        {"choice": "quadratic", "weights": "difference"},
        {"choice": "uniform", "asks": "tick"},
        {"choice": "linear", "loss_at": "receiver", "loss": 0.05},
    ],
)
def test_l5_every_reading_delivers_everything(cell: dict[str, Value]) -> None:
    found = figures("l5", seconds=0.6, linger_s=4.0, **cell)
    assert found["not_everywhere"] == 0
    assert found["latency_s"] > 0.02


def test_a_topology_that_is_not_there_is_named() -> None:
    with pytest.raises(CellError, match=r"Digex in nowhere\.csv"):
        EXPERIMENTS["l1"]({"topology": "Digex", "trace": "nowhere.csv"})


def test_x1_who_was_away_is_sent_less_where_messages_replace_each_other() -> None:
    full, live = (figures("x1", absent_s=2.0, r=r, d=5) for r in (0.0, 1.0))
    assert full["missed"] == live["missed"] > 300
    assert live["catch_up_bytes"] < full["catch_up_bytes"] / 2
    assert live["catch_up_s"] <= full["catch_up_s"] < 10


def test_x3_a_late_joiner_is_sent_less_by_a_compacted_log() -> None:
    full, compacted = (figures("x3", compact=compact, seconds=2.0, d=5) for compact in (0, 1))
    assert compacted["join_bytes"] < full["join_bytes"] / 2


def test_x5_what_is_replaced_is_not_repaired() -> None:
    none, everything = (figures("x5", r=r, loss=0.05, seconds=1.0, linger_s=6.0) for r in (0.0, 1.0))
    assert none["receipts"] == 0 < everything["receipts"]
    assert everything["repairs"] < none["repairs"]
    assert everything["not_everywhere"] == 0


def test_x6_a_region_that_is_cut_off_costs_nobody_else_anything() -> None:
    found = figures("x6", cut_s=4.0, rate=20.0, loss=0.0)
    assert found["cut_off"] > 0
    assert found["blocked_ms"] == 0
    assert found["others_during_s"] == pytest.approx(found["others_before_s"], rel=0.1)
    assert found["catch_up_s"] < 10


def test_x7_a_crowd_takes_as_many_rounds_as_the_model_says() -> None:
    found = figures("x7", n=100, reach=0.2)
    assert 15 <= found["reached"] <= 25
    assert found["rounds"] == pytest.approx(found["model_rounds"], rel=0.4)


def test_x8_pbcast_is_bimodal() -> None:
    found = figures("x8", runs=5, rounds=2)
    assert found["partial_share"] <= found["model_bound"]
    assert found["within"] == 1
    assert found["alone_share"] == 0
