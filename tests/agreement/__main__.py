"""Run the campaign on the cluster of this checkout, or on one brought up for it.

    python -m tests.agreement --rounds 200 --seed 7 --busy --delay --faults

Each round applies one to three Deployments with claims (spread, anti-affinity, affinity, host
ports, volumes), scales them up, rolls some over, waits until all run, and deletes them. Judged all
the while: pods bound away from their claims for more than 15 s, pods that wait for more than 60 s,
devices given twice, and devices held for nobody once a round is over.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from driver import clock
from driver.kube import client
from hack.cluster import api, errors
from tests.agreement import ground, judge, rounds

ROOT = Path(__file__).parents[2]
NODES = 3
_RUNS_S, _GONE_S = 150.0, 45.0
_BUSY = "while True: pass"


def main() -> int:
    """Run and judge; the exit status is 1 where anything was breached."""
    options = _arguments()
    judged = judge.Judge()
    tally = Tally()
    begun = time.monotonic()
    try:
        with _cluster() as cluster, contextlib.ExitStack() as ends:
            kube = client.KubeClient.connect(cluster.kubeconfig, "ration-agreement")
            scene = ground.Ground(cluster, kube, judged)
            folder = Path(ends.enter_context(tempfile.TemporaryDirectory()))
            if options.delay:
                ends.enter_context(ground.delayed(scene, folder, options.seed))
            _warmed(scene)
            if options.busy:
                ends.enter_context(_busy())
            _campaign(scene, options, tally)
    finally:
        result = _result(options, judged, tally, time.monotonic() - begun)
        print(json.dumps(result, indent=2))
        if options.keep:
            options.keep.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if tally.rounds and not judged.breaches else 1


@dataclass(slots=True)
class Tally:
    """Counts the rounds that are over."""

    rounds: int = 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.agreement",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=200, help="how many rounds (200)")
    parser.add_argument("--seed", type=int, default=29, help="draws the rounds and the faults (29)")
    parser.add_argument("--busy", action="store_true", help="keep each core busy meanwhile")
    parser.add_argument(
        "--delay", action="store_true", help="delay requests of kube-scheduler and controllers"
    )
    parser.add_argument(
        "--faults", action="store_true", help="kill or freeze the leader in every third round"
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no round after it (60)")
    parser.add_argument("--keep", type=Path, help="write the result to this file, too")
    return parser.parse_args()


@contextlib.contextmanager
def _cluster() -> Iterator[api.Cluster]:
    """The cluster that is up, or one for this run."""
    command = (sys.executable, "-m", "hack.cluster")
    try:
        cluster, ours = api.Cluster.load(ROOT), False
    except errors.ClusterError:
        size = ("--nodes", str(NODES), "--controllers", "2")
        subprocess.run([*command, "up", *size], cwd=ROOT, check=True)
        cluster, ours = api.Cluster.load(ROOT), True
    try:
        yield cluster
    finally:
        if ours:
            subprocess.run([*command, "down"], cwd=ROOT, check=True)


def _warmed(scene: ground.Ground) -> None:
    """Wait until kube-scheduler binds a pod: behind a proxy its first lists take minutes."""
    namespace = f"{ground.PREFIX}{os.getpid()}-warm"
    scene.cluster.kubectl("create", "namespace", namespace)
    work = rounds.Workload("warm", 1, "one", "near", 0, 1, updated=False)
    scene.apply(namespace, rounds.companion(work))
    selector = ("-l", "companion=warm", "-n", namespace, "--timeout=300s")
    scene.cluster.kubectl("wait", "--for=create", "pod", *selector)
    scene.cluster.kubectl("wait", "--for=condition=Ready", "pod", *selector)
    scene.cluster.kubectl("delete", "namespace", namespace, "--wait=false")


@contextlib.contextmanager
def _busy() -> Iterator[None]:
    """Keep two cores busy; the processes end with the run."""
    loops = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(2)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _campaign(scene: ground.Ground, options: argparse.Namespace, tally: Tally) -> None:
    """Run the rounds, until they or the minutes are over."""
    source = random.Random(options.seed)
    ends = time.monotonic() + options.minutes * 60
    nodes = scene.cluster.nodes()
    for each in rounds.drawn(options.seed, options.rounds, len(nodes)):
        if time.monotonic() > ends:
            break
        begun = time.monotonic()
        _round(scene, each, nodes, source if options.faults and each.number % 3 == 2 else None)
        tally.rounds += 1
        words = ", ".join(
            f"{work.replicas}->{work.scaled} {work.device} {work.rule}{' update' * work.updated}"
            for work in each.workloads
        )
        print(
            f"{tally.rounds:4} of {options.rounds}: {time.monotonic() - begun:5.1f} s,"
            f" {len(scene.judge.breaches)} breaches: {words}",
            flush=True,
        )
        for breach in [*scene.judge.breaches.values()][-3:]:
            print(f"     {breach.kind}: {breach.key}: {breach.words}", flush=True)


def _round(
    scene: ground.Ground,
    each: rounds.Round,
    nodes: tuple[str, ...],
    faults: random.Random | None,
) -> None:
    namespace = f"{ground.PREFIX}{os.getpid()}-{each.number}"
    scene.cluster.kubectl("create", "namespace", namespace)
    classes = [work for work in each.workloads if work.rule == "volume"]
    try:
        for work in each.workloads:
            more = [rounds.storage_class(work)] if work in classes else []
            scene.apply(namespace, *more, *rounds.objects(work, nodes))
        scene.pause(0.5)
        if faults is not None:
            _fault(scene, faults)
        for work in each.workloads:
            scene.apply(namespace, rounds.deployment(work, work.scaled))
        scene.pause(0.5)
        _moved(scene, namespace, each)
        for work in each.workloads:
            if work.updated:
                scene.apply(namespace, rounds.deployment(work, work.scaled, revision=2))
        _all_run(scene, namespace, each)
    finally:
        _end(scene, namespace, classes, nodes)


def _moved(scene: ground.Ground, namespace: str, each: rounds.Round) -> None:
    """Delete the pods that others are near: they come back on whichever node."""
    for work in each.workloads:
        if work.rule == "near":
            scene.cluster.kubectl(
                *("delete", "pod", "-n", namespace, "--wait=false"),
                *("-l", f"companion={work.name}"),
            )


def _all_run(scene: ground.Ground, namespace: str, each: rounds.Round) -> None:
    """Wait until every pod runs; the judge tells of those that do not."""
    ends = time.monotonic() + _RUNS_S
    for work in each.workloads:
        revision = 2 if work.updated else 1
        while scene.running(namespace, work.name, revision) < work.scaled:
            if time.monotonic() > ends:
                key = ("does not run", f"{namespace}/{work.name}")
                scene.judge.breaches[key] = judge.Breach(*key, f"not within {_RUNS_S:.0f} s")
                return
            scene.revive()
            time.sleep(0.25)


def _end(
    scene: ground.Ground,
    namespace: str,
    classes: list[rounds.Workload],
    nodes: tuple[str, ...],
) -> None:
    """Delete all of a round, and judge what stays."""
    scene.cluster.kubectl("delete", "deployment", "--all", "-n", namespace, "--wait=false")
    ends = time.monotonic() + _GONE_S
    while not scene.is_empty(namespace) and time.monotonic() < ends:
        time.sleep(0.25)
    _, held = scene.look()
    scene.judge.end_round(claim for claim in held.values() if claim.namespace == namespace)
    scene.cluster.kubectl("delete", "namespace", namespace, "--wait=false")
    for work in classes:
        names = [f"pv/agreement-{work.name}-{node}" for node in nodes]
        more = [*names, f"storageclass/agreement-{work.name}"]
        scene.cluster.kubectl("delete", *more, "--ignore-not-found", "--wait=true", "--timeout=60s")


def _fault(scene: ground.Ground, source: random.Random) -> None:
    """Kill the leader, or freeze it for a while."""
    leader = scene.leader()
    if leader is None or scene.cluster.pid(leader) is None:
        return
    if source.random() < 0.5:
        scene.cluster.kill(leader)
        scene.pause(1.0)
        scene.cluster.start(leader)
        return
    scene.cluster.freeze(leader)
    try:
        scene.pause(source.uniform(5.0, 20.0))
    finally:
        scene.cluster.thaw(leader)


def _result(
    options: argparse.Namespace, judged: judge.Judge, tally: Tally, seconds: float
) -> dict[str, object]:
    waits = [*judged.bound_after.values()]
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {
        "at": clock.rfc3339(clock.SystemClock().now()),
        "rounds": tally.rounds,
        "seed": options.seed,
        "with": [name for name in ("busy", "delay", "faults") if getattr(options, name)],
        "seconds": round(seconds),
        "pods": len(waits),
        "never_bound": judged.never_bound,
        "bound_after_s": {
            name: round(judge.percentile(waits, share), 2) for name, share in shares.items()
        },
        "histogram_s": judge.histogram(waits),
        "ever_bound_away": len(judged.away_seconds),
        "longest_bound_away_s": round(max(judged.away_seconds.values(), default=0.0), 2),
        "breaches": [vars_of(breach) for breach in judged.breaches.values()],
    }


def vars_of(breach: judge.Breach) -> dict[str, str]:
    """A breach as JSON."""
    return {"kind": breach.kind, "key": breach.key, "words": breach.words}


if __name__ == "__main__":
    sys.exit(main())
