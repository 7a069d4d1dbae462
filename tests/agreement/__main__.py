"""Run the campaign on the cluster of this checkout, or on one brought up for it.

    python -m tests.agreement --rounds 200 --seed 7 --busy --delay --faults

Each round applies one to three Deployments, StatefulSets or Jobs with claims (spread,
anti-affinity, affinity, host ports, volumes), scales them up, moves what others are near, rolls
some over, scales some down and up, waits until all run, and deletes them. Judged all the while:
pods bound away from their claims for more than 15 s, pods that wait for more than 60 s, devices
given twice, and devices held for nobody once a round is over.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver import clock
from driver.kube import client
from hack.cluster import api, errors
from tests.agreement import ground, judge, lanes, rounds

ROOT = Path(__file__).parents[2]
NODES = 3
"""Nodes of a lane."""
_FAULTY = 3
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
            own = ends.enter_context(_lanes(scene, options.lanes))
            if options.busy:
                ends.enter_context(_busy())
            Campaign(scene, options, tally).run(own)
    finally:
        result = _result(options, judged, tally, time.monotonic() - begun)
        print(json.dumps(result, indent=2))
        if options.keep:
            options.keep.write_text(json.dumps(result, indent=2) + "\n")
        print(_summary(options.rounds, result))
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
    parser.add_argument("--lanes", type=int, default=1, help="rounds at the same time (1)")
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
        size = ("--nodes", "1", "--controllers", "2")
        subprocess.run([*command, "up", *size], cwd=ROOT, check=True)
        cluster, ours = api.Cluster.load(ROOT), True
    try:
        yield cluster
    finally:
        if ours:
            subprocess.run([*command, "down"], cwd=ROOT, check=True)


def _warmed(scene: ground.Ground) -> None:
    """Wait until kube-scheduler binds a pod and the node has its image."""
    namespace = f"{ground.PREFIX}{os.getpid()}-warm"
    scene.cluster.kubectl("create", "namespace", namespace)
    work = rounds.Workload("warm", rounds.DEPLOYMENT, 1, 1, "one", "near", 0)
    scene.apply(namespace, rounds.companion(work))
    selector = ("-l", "companion=warm", "-n", namespace, "--timeout=120s")
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


class Campaign:
    """Rounds in the order of the seed; each lane plays the next one when its last is over."""

    def __init__(self, scene: ground.Ground, options: argparse.Namespace, tally: Tally) -> None:
        self._scene = scene
        self._options = options
        self._tally = tally
        self._rounds = rounds.drawn(options.seed, options.rounds, NODES)
        self._faults = random.Random(options.seed)
        self._ends = time.monotonic() + options.minutes * 60
        self._turn = threading.Lock()

    def run(self, own: Sequence[lanes.Lane]) -> None:
        """Play all rounds, or those of the minutes; an error of a lane ends it, and is raised."""
        with futures.ThreadPoolExecutor(len(own)) as pool:
            for ended in [pool.submit(self._play, lane) for lane in own]:
                ended.result()

    def _play(self, lane: lanes.Lane) -> None:
        while True:
            with self._turn:
                drawn = next(self._rounds, None)
            if drawn is None or time.monotonic() > self._ends:
                return
            begun = time.monotonic()
            broken = self._options.faults and drawn.number % _FAULTY == _FAULTY - 1
            lane.play(drawn, self._faults if broken else None)
            with self._turn:
                self._tally.rounds += 1
                self._print(drawn, time.monotonic() - begun)

    def _print(self, drawn: rounds.Round, seconds: float) -> None:
        breaches = self._scene.judge.breaches
        words = ", ".join(
            f"{work.kind} {work.replicas}->{work.scaled} {work.device} {work.rule}"
            f"{' update' * work.updated}{' bounce' * work.bounced}"
            for work in drawn.workloads
        )
        print(
            f"{self._tally.rounds:4} of {self._options.rounds}: {seconds:5.1f} s,"
            f" {len(breaches)} breaches: {words}",
            flush=True,
        )
        for breach in [*breaches.values()][-3:]:
            print(f"     {breach.kind}: {breach.key}: {breach.words}", flush=True)


@contextlib.contextmanager
def _lanes(scene: ground.Ground, count: int) -> Iterator[list[lanes.Lane]]:
    """Give each lane nodes of its own, which go with the run."""
    with contextlib.ExitStack() as ends:
        own = []
        for number in range(count):
            name = f"lane{number}"  # short, as paths of the nodes' sockets have to be
            nodes = tuple(f"{name}-{index}" for index in range(NODES))
            for node in nodes:
                scene.cluster.add_node(node, labels={rounds.LANE_LABEL: name})
                ends.callback(scene.cluster.remove_node, node)
            own.append(lanes.Lane(scene, name, nodes))
        yield own


def _result(
    options: argparse.Namespace, judged: judge.Judge, tally: Tally, seconds: float
) -> dict[str, Any]:
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


def _summary(rounds: int, result: dict[str, Any]) -> str:
    """Closing line, for those who read no JSON."""
    waits = ", ".join(f"{name} {seconds} s" for name, seconds in result["bound_after_s"].items())
    return (
        f"{result['rounds']} of {rounds} rounds, {result['pods']} pods, "
        f"{len(result['breaches'])} breaches; created to bound: {waits}"
    )


def vars_of(breach: judge.Breach) -> dict[str, str]:
    """A breach as JSON."""
    return {"kind": breach.kind, "key": breach.key, "words": breach.words}


if __name__ == "__main__":
    sys.exit(main())
