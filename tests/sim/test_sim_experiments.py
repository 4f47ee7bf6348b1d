"""The papers' experiments, small: the figures go where the papers say."""

import pytest

from semcast.pipeline.sweep.bundled import bundled
from semcast.pipeline.sweep.spec import read_spec
from semcast.sim.experiments import EXPERIMENTS, CellError, Value
from semcast.sim.experiments.replay import _rounds_late
from semcast.sim.traces import TraceRow


def figures(experiment: str, **cell: Value) -> dict[str, float]:
    result = EXPERIMENTS[experiment](cell)
    assert not result.keys() & cell.keys(), "a sweep refuses results with the names of parameters"
    return {name: value for name, value in result.items() if not isinstance(value, str)}


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Forty rounds a second of two players that move, and now and then an event."""
    path = tmp_path_factory.mktemp("traces") / "game.csv"
    lines = ["stream,seq,ts,key,bytes,kind"]
    for position in range(900):
        ts = position // 3 / 40
        key, kind = (("player/0", "update"), ("player/1", "update"), ("", "event"))[position % 3]
        lines.append(f"game,{position},{ts},{key},20,{kind}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


# What an experiment accepts


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_unknown_parameter_is_refused_by_name(name: str) -> None:
    with pytest.raises(CellError, match="sped"):
        EXPERIMENTS[name]({"sped": 1})


def test_a_parameter_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(CellError, match="stack"):
        EXPERIMENTS["f2"]({"stack": "unreliable"})


@pytest.mark.parametrize("name", ["g2", "g3", "g4"])
def test_a_missing_recording_is_named(name: str) -> None:
    with pytest.raises(CellError, match=r"nowhere\.csv"):
        EXPERIMENTS[name]({"trace": "nowhere.csv"})
    with pytest.raises(CellError, match="no trace"):
        EXPERIMENTS[name]({})


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("m3", {"messages": 2000}),
        ("f1", {"amount": 8, "measured_s": 1, "warmup_s": 1}),
        ("f7", {"amount": 8, "measured_s": 1, "warmup_s": 1, "stack": "s-rm"}),
    ],
)
def test_a_result_is_a_function_of_its_cell(name: str, cell: dict[str, Value]) -> None:
    assert EXPERIMENTS[name]({**cell, "seed": 3}) == EXPERIMENTS[name]({**cell, "seed": 3})


# M3, M4 (Pereira 2000, 5.2 and 5.3)


def test_m3_the_stock_model_purges_what_table_2_says() -> None:
    for n, ratio in ((10, 0.11), (20, 0.20), (30, 0.27)):
        found = figures("m3", n=n, messages=20_000)
        assert found["model_ratio"] == pytest.approx(ratio, abs=0.005)
        assert found["simulated_ratio"] == pytest.approx(ratio, abs=0.02)


def test_m4_larger_buffers_tolerate_slower_receivers() -> None:
    tolerated = [figures("m4", n=n, messages=5000)["simulated_tolerated_extra"] for n in (10, 20, 30)]
    assert tolerated == sorted(tolerated)
    assert tolerated[0] == pytest.approx(10, abs=4)
    assert tolerated[2] == pytest.approx(40, abs=8)


# F1 (Pereira 2002, figure 2.6)


def test_f1_a_slow_application_has_its_knee_at_5_ms_whatever_the_group_size() -> None:
    for members in (3, 5):
        found = [figures("f1", amount=amount, members=members)["throughput"] for amount in (4.9, 8)]
        assert found == [pytest.approx(200, rel=0.03), pytest.approx(125, rel=0.03)]


@pytest.mark.parametrize(
    ("perturbation", "amount"), [("process-sleep", 500), ("packet-delay", 160), ("bandwidth", 1000)]
)
def test_f1_one_perturbed_receiver_slows_everybody(perturbation: str, amount: float) -> None:
    assert figures("f1", perturbation=perturbation, amount=amount, measured_s=4)["throughput"] < 190


# F2 to F6 (5.4.1)


def test_f2_half_of_the_messages_obsolete_lets_a_receiver_be_twice_as_slow() -> None:
    reliable = figures("f2", stack="reliable", delay_ms=20, measured_s=5, messages=5000)
    semantic = figures("f2", stack="s-rm", r=0.5, delay_ms=20, measured_s=5, messages=5000)
    for how in ("model", "simulated", "protocol"):
        assert reliable[f"{how}_throughput"] == pytest.approx(50, abs=1)
        assert semantic[f"{how}_throughput"] >= 95
    assert semantic["protocol_purged"] == pytest.approx(0.5, abs=0.03)
    assert semantic["fast_purged"] == pytest.approx(0, abs=0.01)


def test_f3_the_model_is_pessimistic_where_d_limits_and_optimistic_at_the_knee_where_r_does() -> None:
    d_limits = figures("f3", r=1.0, d=20, n=10, messages=10_000)
    assert d_limits["simulated_throughput"] > 1.1 * d_limits["model_throughput"]
    knee = figures("f3", r=0.75, d=5, n=10, messages=10_000)
    assert knee["simulated_throughput"] < knee["model_throughput"] == 100


def test_f3_a_small_bitmap_costs_purging() -> None:
    purged = [figures("f3", r=1.0, d=20, n=40, k=k, messages=10_000)["simulated_purged"] for k in (5, 20, 0)]
    assert purged == sorted(purged)
    assert purged[0] < 0.7 * purged[2]


def test_f4_eager_purging_uses_less_buffer_for_the_same_throughput() -> None:
    eager, lazy = (figures("f4", purging=purging, tr=66.7, messages=10_000) for purging in ("eager", "lazy"))
    assert eager["simulated_throughput"] == pytest.approx(lazy["simulated_throughput"], rel=0.02)
    assert eager["simulated_occupancy"] < 0.8 * lazy["simulated_occupancy"]


def test_f5_a_split_buffer_lies_between_its_half_and_its_sum() -> None:
    half, split, whole = (
        figures("f5", r=1.0, d=20, tr=40, messages=10_000, **sizes)["simulated_throughput"]
        for sizes in ({"n": 10}, {"n": 10, "sender_n": 10}, {"n": 20})
    )
    assert half < split < whole


def test_f6_waiting_for_safety_acts_like_a_smaller_buffer() -> None:
    throughputs = [
        figures("f6", safety_ms=delay, tr=40, messages=10_000)["simulated_throughput"]
        for delay in (0, 100, 400)
    ]
    assert throughputs == sorted(throughputs, reverse=True)
    assert throughputs[2] < 0.95 * throughputs[0]


# F7, F8 (5.4.2, 5.4.3)


def test_f7_semantic_throughput_stays_where_reliable_collapses() -> None:
    reliable, semantic = (
        figures("f7", stack=stack, amount=8, measured_s=4) for stack in ("reliable", "s-rm")
    )
    assert reliable["throughput"] == pytest.approx(125, rel=0.03)
    assert semantic["throughput"] == pytest.approx(200, rel=0.03)
    assert semantic["stability_ms"] < reliable["stability_ms"] / 3
    assert "safety_ms" in semantic
    assert "safety_ms" not in reliable


def test_f8_a_semantic_group_tolerates_slower_receivers_and_longer_stops() -> None:
    reliable, semantic = (
        figures("f8", stack=stack, n=20, trials=2, messages=4000, measured_s=3)
        for stack in ("reliable", "s-rm")
    )
    assert reliable["model_stop_ms"] == pytest.approx(212, abs=2)
    assert semantic["model_stop_ms"] == pytest.approx(377, abs=2)
    assert reliable["simulated_stop_ms"] == pytest.approx(200, abs=15)
    for how in ("model", "simulated", "protocol"):
        assert semantic[f"{how}_stop_ms"] > 1.3 * reliable[f"{how}_stop_ms"]
        assert semantic[f"{how}_rate"] < 0.7 * reliable[f"{how}_rate"]


def test_f8_the_buffers_of_sender_and_receiver_add_up() -> None:
    found = figures("f8", stack="reliable", n=10, trials=2, messages=2000, measured_s=2)
    assert found["protocol_stop_ms"] == pytest.approx(200, abs=30)


def test_f8_virtual_synchrony_tolerates_what_the_paper_estimates() -> None:
    for stack, stop in (("vsync-reliable", 212), ("vsync", 377)):
        found = figures("f8", stack=stack, n=20, trials=1, messages=2000, measured_s=6)
        assert found["estimated_stop_ms"] == pytest.approx(stop, rel=0.15)
    twice = figures("f8", stack="vsync-reliable", n=10, trials=2, messages=2000, measured_s=2)
    assert twice["protocol_stop_ms"] == pytest.approx(212, rel=0.15)


# V1 to V4 (Birman, Schiper and Stephenson 1991)


def test_v1_a_multicast_costs_so_much_for_each_destination_and_abcast_twice_that() -> None:
    cbcast, abcast = (
        {n: figures("v1", primitive=primitive, destinations=n, calls=3) for n in (1, 4, 7)}
        for primitive in ("cbcast", "abcast")
    )
    for n in (1, 4, 7):
        assert cbcast[n]["cpu_ms"] == pytest.approx(n * cbcast[1]["cpu_ms"], rel=0.01)
        assert abcast[n]["cpu_ms"] == pytest.approx(2 * cbcast[n]["cpu_ms"], rel=0.01)
    assert cbcast[7]["call_ms"] == pytest.approx(22.9, rel=0.05)
    assert abcast[1]["call_ms"] > 1.2 * cbcast[1]["call_ms"]


def test_v1_large_messages_cost_wire_time_and_hardware_multicast_saves_copies() -> None:
    null, large = (figures("v1", destinations=3, size=size, calls=3) for size in (0, 7168))
    assert large["bytes"] > 3 * 7168
    assert large["call_ms"] > null["call_ms"] + 2 * 5
    assert figures("v1", destinations=3, hardware=1, calls=3)["cpu_ms"] < 0.7 * null["cpu_ms"]


def test_v2_compares_the_cost_of_causal_and_fifo_multicasts() -> None:
    found = figures("v2", rounds=4, multicasts=20)
    assert min(found["fifo_us"], found["causal_us"]) > 0
    assert found["share"] == pytest.approx(1 - found["fifo_us"] / found["causal_us"])


@pytest.mark.parametrize(("style", "most"), [("peer", 4), ("diffusion", 1), ("client-server", 4)])
def test_v3_a_timestamp_has_a_field_for_each_other_sender_at_most_and_none_inside_a_burst(
    style: str, most: int
) -> None:
    single, burst = (figures("v3", style=style, members=5, burst=n, measured_s=2) for n in (1, 10))
    assert max(single["most"], burst["most"]) <= most < single["bound"]
    assert burst["fields"] < single["fields"] / 4
    assert burst["bare"] >= 0.85


@pytest.mark.parametrize("reason", ["crash", "leave"])
@pytest.mark.parametrize("flush", ["coordinator", "all"])
def test_v4_a_view_of_8_changes_in_8_network_delays(flush: str, reason: str) -> None:
    assert figures("v4", members=8, flush=flush, reason=reason)["delays"] <= 8


def test_v4_frames_are_linear_with_a_coordinator_and_quadratic_without() -> None:
    for n in (5, 10):
        coordinator, everybody = (
            figures("v4", members=n, reason="leave", flush=flush) for flush in ("coordinator", "all")
        )
        assert coordinator["exchange"] == pytest.approx(2 * n, abs=2)
        assert n * (n - 1) <= everybody["exchange"] <= 2 * n * n
        # Who leaves serves the others until the next view stands, so it hears of the decision, too.
        assert max(coordinator["agreement"], everybody["agreement"]) <= 5 * n


def test_v4_and_v3_refuse_groups_that_cannot_be() -> None:
    with pytest.raises(CellError, match="at least 3"):
        EXPERIMENTS["v4"]({"members": 2})
    with pytest.raises(CellError, match="senders"):
        EXPERIMENTS["v3"]({"members": 3, "senders": 5})


# G2 to G4 (chapter 6), on a made-up game: two of three messages are overwritten in the next round


def test_g2_only_the_slow_receiver_skips_and_the_sender_is_not_disturbed(game: str) -> None:
    reliable, semantic = (
        figures("g2", trace=game, skip=0.0, stack=stack, delay_ms=15) for stack in ("reliable", "s-rm")
    )
    assert reliable["trace_rate"] == pytest.approx(120, rel=0.01)
    assert reliable["impact"] > 0.3
    assert semantic["impact"] < 0.02
    assert semantic["purged_slow"] > 0.3
    assert semantic["purged_fast"] == reliable["purged_slow"] == 0


def test_g3_a_semantic_group_tolerates_more_of_the_game(game: str) -> None:
    reliable, semantic = (
        figures("g3", trace=game, skip=0.0, rows=400, n=24, trials=1, stack=stack)
        for stack in ("reliable", "s-rm")
    )
    assert semantic["tolerated_delay_ms"] > 1.5 * reliable["tolerated_delay_ms"]
    assert semantic["tolerated_stop_ms"] > 1.5 * reliable["tolerated_stop_ms"]


def test_g4_a_fast_receiver_is_current_and_a_slow_one_soon(game: str) -> None:
    fast, slow = (figures("g4", trace=game, skip=0.0, delay_ms=delay) for delay in (0.0, 12.0))
    assert fast["within_0"] == 1
    assert slow["within_0"] < 0.8
    assert slow["within_10"] > 0.9


def test_g4_counts_the_rounds_until_a_value_that_replaces_the_purged_one() -> None:
    rows = [
        TraceRow(ts, key, 1, update=True) for ts, key in ((0, "a"), (1, "a"), (1, "b"), (2, "a"), (3, "b"))
    ]
    assert sorted(_rounds_late(rows, [4, 5])) == [0, 0, 1, 2, 2]
    assert _rounds_late(rows, [1, 2, 3, 4, 5]) == [0] * 5


def test_a_recording_shorter_than_what_is_skipped_is_refused(game: str) -> None:
    with pytest.raises(CellError, match="nothing to replay"):
        EXPERIMENTS["g2"]({"trace": game, "skip": 100.0})


def test_every_spec_of_the_repository_names_cells_that_can_run() -> None:
    found = [read_spec(path) for path in bundled().values()]
    assert sorted(spec.experiment for spec in found) == sorted(EXPERIMENTS)
    assert all(spec.title for spec in found)
    ours = {spec.experiment for spec in found if spec.paper is None}
    assert all(name.startswith("x") for name in ours), "all others are of a paper"


def test_w6_answers_to_the_caller_alone_save_datagrams_and_one_call_many_calls() -> None:
    quick = {"destinations": 3, "measured_s": 0.1}
    alone, shared = (figures("w6", answers=answers, **quick) for answers in ("direct", "multicast"))
    assert alone["datagrams"] < shared["datagrams"]
    assert alone["call_ms"] < figures("w6", asked="each", **quick)["call_ms"] / 2
    with pytest.raises(CellError, match="at least 1"):
        figures("w6", destinations=0)


def test_w3_fields_are_those_of_servers_whatever_the_clients() -> None:
    few, many = (figures("w3", style="client-server", clients=clients, measured_s=0.2) for clients in (1, 6))
    assert few["most"] == many["most"] == 3
    assert many["passed"] <= 3
    assert figures("w3", style="diffusion", clients=6, measured_s=0.2)["most"] == 3
    peers = figures("w3", clients=6, active=6, measured_s=0.2)
    assert 3 < peers["most"] <= peers["bound"]
    with pytest.raises(CellError, match="active"):
        figures("w3", clients=2, active=3)


def test_w4_a_client_changes_no_view() -> None:
    client, peer = (figures("w4", style=style, clients=4) for style in ("client-server", "peer"))
    assert (client["views"], peer["views"]) == (0, 1)
    assert client["datagrams"] < peer["datagrams"]


def test_w5_a_gap_takes_more_crashes_than_members_must_have_the_cause() -> None:
    cell: dict[str, Value] = {"size": 5, "runs": 12}
    none, one = (figures("w5", resilience=resilience, crashes=1, **cell) for resilience in ("0", "1"))
    assert none["gaps"] > one["gaps"] == one["broken"] == 0
    assert none["delay_ms"] < one["delay_ms"]
    assert figures("w5", resilience="1", crashes=2, **cell)["broken"] == 0
    with pytest.raises(CellError, match="majority"):
        figures("w5", size=5, crashes=3)
    with pytest.raises(CellError, match="fewer than"):
        figures("w5", size=3, resilience="3")
    with pytest.raises(CellError, match="at least 1"):
        figures("w5", runs=0)


def test_w8_markers_are_for_processes_in_several_groups() -> None:
    cell = {"measured_s": 0.2}
    assert figures("w8", groups=4, **cell)["markers"] == 0
    two, four = (figures("w8", shared=2, groups=groups, **cell) for groups in (2, 4))
    assert 0 < two["markers"] < four["markers"]
    with pytest.raises(CellError):
        figures("w8", groups=1)


def test_w7_one_order_costs_more_with_every_group_that_overlaps() -> None:
    cell: dict[str, Value] = {"shared": 2, "senders": "all", "changes": 0.05, "rate": 20.0, "measured_s": 0.2}
    one, four = (figures("w7", order="domain", groups=groups, **cell) for groups in (1, 4))
    assert figures("w7", groups=4, **cell)["datagrams"] < four["datagrams"]
    assert one["datagrams"] < four["datagrams"]
    assert four["delay_ms"] < 3


def test_w1_in_a_tree_blocks_say_nothing_of_far_groups() -> None:
    cell: dict[str, Value] = {"structure": "tree", "groups": 15, "messages": 800}
    full, blocks = (figures("w1", policy=policy, **cell) for policy in ("full", "blocks"))
    assert blocks["rate_2"] == 0 < full["rate_2"]
    assert blocks["own"] == full["own"]
    assert figures("w1", policy="conservative", **cell)["others"] == 0
    settled = figures("w1", policy="full", settled=100, **cell)
    assert blocks["others"] <= settled["others"] < full["others"]
    with pytest.raises(CellError, match="no square"):
        figures("w1", structure="grid", groups=8)
    with pytest.raises(CellError, match="locality"):
        figures("w1", locality=1.0)


def test_w2_a_change_of_the_group_costs_a_round_and_the_ordered_engine_a_rotation() -> None:
    conservative = figures("w2", engine="conservative")
    assert conservative["rate_s"] == pytest.approx(1000 / 3, rel=0.1)
    assert figures("w2", engine="conservative", run=64)["rate_s"] > 20_000
    quiet: dict[str, Value] = {"senders": "all", "rate": 100.0, "changes": 0.05, "measured_s": 0.3}
    causal = [figures("w2", engine="full", groups=groups, **quiet)["delay_ms"] for groups in (1, 4)]
    ordered = [figures("w2", engine="ordered", groups=groups, **quiet)["delay_ms"] for groups in (1, 4)]
    assert causal[1] == pytest.approx(causal[0], rel=0.2)
    assert ordered[1] > 2 * ordered[0]
    with pytest.raises(CellError, match="shared"):
        figures("w2", shared=4)
    with pytest.raises(CellError, match="nothing was delivered"):
        figures("w2", rate=0.001)
