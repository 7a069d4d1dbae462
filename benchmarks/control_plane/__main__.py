"""Measure the whole control plane on the cluster that is up: `python -m benchmarks.control_plane`.

1,000 static nodes of 8 GPUs; pods with one named claim of one GPU each, made by 16 threads. In one
run kube-scheduler allocates (plain devices, our controllers stopped), in the next ours does
(tainted devices), and with --gate in a third behind the scheduling gate; rounds alternate.
Everything shares the machine, our controller's CPU and the client's included. kube-scheduler and
kube-controller-manager run with their client limits raised to 2,000/s and without the node
lifecycle controller, and are put back afterwards.
"""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import record
from benchmarks.allocator import fixtures
from benchmarks.control_plane import fixture
from driver.kube import client
from hack.cluster import api

ROOT = Path(__file__).parents[2]
NODES = 1_000
PODS = 1_000
ROUNDS = 3
_WITHIN_S = 240.0
_SETTLE_S = 20.0
_LIMITS = ("--kube-api-qps=2000", "--kube-api-burst=4000")
_QUICKER = {
    "kube-scheduler": _LIMITS,
    "kube-controller-manager": (*_LIMITS, "--controllers=*,-node-lifecycle-controller"),
}
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Round:
    """Pods bound a second, and milliseconds of CPU a pod of kube-scheduler and our controller."""

    rate: float
    scheduler_ms: float
    controller_ms: float


def main() -> None:
    """Measure, print, store."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=ROUNDS, help="of each side")
    arguments.add_argument("--pods", type=int, default=PODS, help="of a round")
    arguments.add_argument("--gate", action="store_true", help="measure ours with the gate too")
    chosen = arguments.parse_args()
    cluster = api.Cluster.load(ROOT)
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-bench")
    with ExitStack() as meanwhile:
        for component, flags in _QUICKER.items():
            meanwhile.enter_context(cluster.with_flags(component, *flags))
        meanwhile.enter_context(fixture.namespace(kube))
        try:
            fixture.fill(kube, NODES, fixtures.whole("scheduler"))
            rounds = [
                _sides(cluster, kube, number, chosen.pods, gate=chosen.gate)
                for number in range(chosen.rounds)
            ]
        finally:
            fixture.clear(kube)
            fixture.empty(kube, NODES)
    theirs, ours, *gated = [list(side) for side in zip(*rounds, strict=True)]
    figures = _figures(ours, theirs)
    for side in gated:
        figures += _figures(side, theirs, " behind the scheduling gate")
    record.write("control_plane", figures)


def _sides(
    cluster: api.Cluster, kube: client.KubeClient, number: int, pods: int, *, gate: bool
) -> list[Round]:
    """A round of theirs, one of ours, and one of ours with the gate, on the same nodes."""
    with _stopped(cluster):
        theirs = _round(cluster, kube, f"theirs-{number}", pods)
    fixture.hand_over(kube, NODES, fixtures.whole("controller"))
    rounds = [theirs, _round(cluster, kube, f"ours-{number}", pods)]
    if gate:
        with fixture.gated(kube):
            rounds.append(_round(cluster, kube, f"gated-{number}", pods))
    fixture.hand_over(kube, NODES, fixtures.whole("scheduler"))
    return rounds


def _figures(ours: list[Round], theirs: list[Round], how: str = "") -> list[record.Figure]:
    name = f"whole control plane, {NODES:,} nodes{how}"
    return [
        record.figure(
            f"{name}: pods bound",
            "pods/s",
            [one.rate for one in ours],
            [one.rate for one in theirs],
        ),
        record.figure(
            f"{name}: CPU of kube-scheduler",
            "ms/pod",
            [one.scheduler_ms for one in ours],
            [one.scheduler_ms for one in theirs],
        ),
        record.figure(
            f"{name}: CPU of our controllers", "ms/pod", [one.controller_ms for one in ours]
        ),
    ]


def _round(cluster: api.Cluster, kube: client.KubeClient, name: str, pods: int) -> Round:
    """Create pods, wait until the last is bound, take them away again."""
    time.sleep(_SETTLE_S)
    bound = fixture.Bound(kube)
    try:
        before = _cpu_ms(cluster, "kube-scheduler"), _controllers_ms(cluster)
        begun = time.monotonic()
        fixture.ask(kube, [f"{name}-{number}" for number in range(pods)])
        bound.wait(pods, _WITHIN_S)
        after = _cpu_ms(cluster, "kube-scheduler"), _controllers_ms(cluster)
    finally:
        bound.close()
    fixture.clear(kube)
    spent = [(late - early) / pods for early, late in zip(before, after, strict=True)]
    made = Round(pods / (bound.last - begun), *spent)
    print(f"{name}: {made.rate:.1f} pods/s, CPU a pod: kube-scheduler {made.scheduler_ms:.1f} ms, "
          f"our controllers {made.controller_ms:.1f} ms", flush=True)  # fmt: skip
    return made


def _cpu_ms(cluster: api.Cluster, component: str) -> float:
    """CPU a component has used; 0 while it does not run."""
    pid = cluster.pid(component)
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / _TICKS


def _controllers_ms(cluster: api.Cluster) -> float:
    return sum(_cpu_ms(cluster, name) for name in cluster.controllers())


@contextmanager
def _stopped(cluster: api.Cluster) -> Iterator[None]:
    """Our controllers do not run."""
    for name in cluster.controllers():
        cluster.stop(name)
    try:
        yield
    finally:
        for name in cluster.controllers():
            cluster.start(name)


if __name__ == "__main__":
    main()
