"""The papers' experiments as plain functions: one cell of parameters in, one record of figures out.

A result is a function of its cell, so cells can run anywhere, in any order. Names are those of the
experiments in `docs/experiments.md`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from semcast.sim.experiments.asking import AskCell, w6
from semcast.sim.experiments.buffers import BufferCell, StockCell, StockDelayCell, buffer, m3, m4
from semcast.sim.experiments.causality import CausalityCell, v2
from semcast.sim.experiments.cells import Cell, CellError, Experiment, Parameters, Result, Value
from semcast.sim.experiments.configurations import ExampleCell, SpecificationCell, e1, e2
from semcast.sim.experiments.convergence import ConvergenceCell, c1
from semcast.sim.experiments.crowds import BimodalCell, CrowdCell, x7, x8
from semcast.sim.experiments.domains import StructureCell, w1
from semcast.sim.experiments.flushes import FlushCell, v4
from semcast.sim.experiments.formulas import DistanceCell, ModelCell, m1, m2
from semcast.sim.experiments.gaps import GapCell, w5
from semcast.sim.experiments.gossiping import GossipCell, gossip
from semcast.sim.experiments.logs import AbsenceCell, ItemsCell, LateCell, RegionCell, x1, x3, x5, x6
from semcast.sim.experiments.marking import MarkCell, w8
from semcast.sim.experiments.multicasts import MulticastCell, v1
from semcast.sim.experiments.perturbed import PerturbedCell, SlowCell, f1, f2, f7
from semcast.sim.experiments.relations import RepresentationCell, TrackerCell, o1, o2
from semcast.sim.experiments.replay import ReplayCell, g2, g3, g4
from semcast.sim.experiments.replicas import LevelsCell, ReplicasCell, q1, q2
from semcast.sim.experiments.rings import RingCell, ring_latency, ring_throughput
from semcast.sim.experiments.stamps import StampCell, v3
from semcast.sim.experiments.styles import StyleCell, w3, w4
from semcast.sim.experiments.switching import SwitchCell, w2
from semcast.sim.experiments.thresholds import ThresholdCell, f8

EXPERIMENTS: Mapping[str, Experiment[Any]] = MappingProxyType(
    {
        "c1": Experiment(ConvergenceCell, c1),
        "l1": Experiment(GossipCell, gossip),
        "l2": Experiment(GossipCell, gossip),
        "l3": Experiment(GossipCell, gossip),
        "l4": Experiment(GossipCell, gossip),
        "l5": Experiment(GossipCell, gossip),
        "o1": Experiment(RepresentationCell, o1),
        "o2": Experiment(TrackerCell, o2),
        "e1": Experiment(ExampleCell, e1),
        "e2": Experiment(SpecificationCell, e2),
        "m1": Experiment(ModelCell, m1),
        "m2": Experiment(DistanceCell, m2),
        "m3": Experiment(StockCell, m3),
        "m4": Experiment(StockDelayCell, m4),
        "f1": Experiment(PerturbedCell, f1),
        "f2": Experiment(SlowCell, f2),
        "f3": Experiment(BufferCell, buffer),
        "f4": Experiment(BufferCell, buffer),
        "f5": Experiment(BufferCell, buffer),
        "f6": Experiment(BufferCell, buffer),
        "f7": Experiment(PerturbedCell, f7),
        "f8": Experiment(ThresholdCell, f8),
        "g2": Experiment(ReplayCell, g2),
        "g3": Experiment(ReplayCell, g3),
        "g4": Experiment(ReplayCell, g4),
        "q1": Experiment(ReplicasCell, q1),
        "q2": Experiment(LevelsCell, q2),
        "t1": Experiment(RingCell, ring_throughput),
        "t2": Experiment(RingCell, ring_throughput),
        "t3": Experiment(RingCell, ring_latency),
        "v1": Experiment(MulticastCell, v1),
        "v2": Experiment(CausalityCell, v2),
        "v3": Experiment(StampCell, v3),
        "v4": Experiment(FlushCell, v4),
        "w1": Experiment(StructureCell, w1),
        "w2": Experiment(SwitchCell, w2),
        "w3": Experiment(StyleCell, w3),
        "w4": Experiment(StyleCell, w4),
        "w5": Experiment(GapCell, w5),
        "w6": Experiment(AskCell, w6),
        "w7": Experiment(SwitchCell, w2),
        "w8": Experiment(MarkCell, w8),
        "x1": Experiment(AbsenceCell, x1),
        "x3": Experiment(LateCell, x3),
        "x5": Experiment(ItemsCell, x5),
        "x6": Experiment(RegionCell, x6),
        "x7": Experiment(CrowdCell, x7),
        "x8": Experiment(BimodalCell, x8),
    }
)

__all__ = ["EXPERIMENTS", "Cell", "CellError", "Experiment", "Parameters", "Result", "Value"]
