"""Decisions for Deployments whose pods have rules about other pods, beside some without any."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks import record
from benchmarks.allocator import cases, fixtures, ours
from driver import ids
from driver.resources.core import nodes, pods
from driver.resources.dra import claims

REPLICAS = 50
ZONES = 10
ROUNDS, WARM_UP, COUNT = 5, 2 * REPLICAS, 4 * REPLICAS
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def apart(selector: fixtures.Raw) -> fixtures.Raw:
    """No two replicas on one node."""
    term = {"labelSelector": selector, "topologyKey": HOST}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAntiAffinity": {required: [term]}}}


def together(selector: fixtures.Raw) -> fixtures.Raw:
    """All replicas in one zone."""
    term = {"labelSelector": selector, "topologyKey": ZONE}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAffinity": {required: [term]}}}


def spread(selector: fixtures.Raw) -> fixtures.Raw:
    """Replicas evenly over the zones."""
    rule = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
    }
    return {"topologySpreadConstraints": [rule]}


def free(_selector: fixtures.Raw) -> fixtures.Raw:
    """Replicas anywhere."""
    return {}


Rule = Callable[[fixtures.Raw], fixtures.Raw]
WITHOUT = "with no rule"
RULES: Mapping[str, Rule] = {
    WITHOUT: free,
    "spread over zones": spread,
    "apart on nodes": apart,
    "together in a zone": together,
}


class Replicas(ours.Ours):
    """Decides Deployment after Deployment; pods are bound, and counted by others' rules."""

    def __init__(self, case: cases.Case, rule: Rule) -> None:
        super().__init__(case)
        self._rule = rule
        self._made_pods = 0
        for number in range(case.nodes):
            raw = fixtures.node(number)
            raw["metadata"]["labels"][ZONE] = f"zone-{number % ZONES}"
            self._view.set_node(ids.NodeName(fixtures.node_name(number)), nodes.parse(raw))

    def _workload(self, *, alike: bool) -> tuple[claims.Claim, pods.Pod]:
        del alike
        claim = self._claim(self._case.asks)
        labels = {"app": f"app-{self._made_pods // REPLICAS}"}
        self._made_pods += 1
        raw = fixtures.pod(f"pod-{self._made}", claim.name)
        raw["metadata"]["labels"] = labels
        raw["spec"] |= self._rule({"matchLabels": labels})
        return claim, pods.parse(raw)

    def _hold(self, claim: claims.Claim, pod: pods.Pod | None) -> None:
        if pod is not None and claim.allocation is not None:
            node = ids.NodeName(claim.allocation.results[0].device.pool)
            pod = replace(pod, node=node, phase="Running")
            self._view.set_pod(pod.key, pod)
        super()._hold(claim, pod)


def measure() -> list[record.Figure]:
    """Rates of each rule at 1,000 and 5,000 nodes, all of one size in turn, beside no rule.

    Decisions are counted a second of processor time.
    """
    figures: list[record.Figure] = []
    for size in (1_000, 5_000):
        case = cases.Case("", size, fixtures.gpus(), fixtures.whole, COUNT, 1)
        sides = {name: Replicas(case, rule) for name, rule in RULES.items()}
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for side in sides.values():
            side.run(WARM_UP)
        calibrations = record.Calibrations()
        for _ in calibrations.between(range(ROUNDS)):
            for name, side in sides.items():
                busy = statistics.fmean(taken.busy for taken in side.run(COUNT))
                rates[name].append(1000 / busy)
        refused = {name: side.refused for name, side in sides.items() if side.refused}
        if refused:
            raise RuntimeError(f"at {size} nodes, where all fit: refused {refused}")
        without = rates[WITHOUT]
        measured = (
            record.figure(
                f"1 GPU, {size:,} nodes, {REPLICAS} replicas {name}",
                "decisions/s",
                sample,
                None if name == WITHOUT else without,
                seed=cases.SEED,
                center=statistics.geometric_mean,
            )
            for name, sample in rates.items()
        )
        figures += map(calibrations.add_to, measured)
    return figures
