"""Plays rounds on the nodes of one lane: applies, scales, moves, rolls over, waits and deletes."""

import contextlib
import dataclasses
import os
import random
import time

from tests.agreement import ground, judge, rounds

_RUNS_S, _GONE_S = 150.0, 45.0
_STEP_S = 0.5


class Lane:
    """Nodes of its own, on which rounds follow each other; `nodes` are their names."""

    def __init__(self, scene: ground.Ground, name: str, nodes: tuple[str, ...]) -> None:
        self._scene = scene
        self._name = name
        self._nodes = nodes

    def play(self, drawn: rounds.Round, faults: random.Random | None = None) -> None:
        """Play a round to its end; with `faults` the leading controller is killed or frozen."""
        scene = self._scene
        works = [dataclasses.replace(work, lane=self._name) for work in drawn.workloads]
        namespace = f"{ground.PREFIX}{os.getpid()}-{drawn.number}"
        scene.cluster.kubectl("create", "namespace", namespace)
        try:
            with contextlib.nullcontext() if faults is None else scene.fault():
                for work in works:
                    first = [rounds.storage_class(work)] if work.rule == "volume" else []
                    scene.apply(namespace, *first, *rounds.objects(work, self._nodes))
                scene.pause(_STEP_S)
                if faults is not None:
                    scene.break_leader(faults)
            self._change(namespace, works)
            self._all_run(namespace, works)
        finally:
            self._end(namespace, works)

    def _change(self, namespace: str, works: list[rounds.Workload]) -> None:
        """Scale up, move what others are near, roll over, and scale down and up again."""
        lasting = [work for work in works if work.runs_on]
        for work in lasting:
            self._apply(namespace, work, work.scaled)
        self._scene.pause(_STEP_S)
        for work in works:
            if work.rule == "near":
                self._move(namespace, work)
        for work in lasting:
            if work.updated:
                self._apply(namespace, work, work.scaled, revision=2)
        bounced = [work for work in lasting if work.bounced]
        for replicas in (1, None) if bounced else ():
            self._scene.pause(_STEP_S)
            for work in bounced:
                self._apply(namespace, work, replicas or work.scaled, _revision(work))

    def _apply(
        self, namespace: str, work: rounds.Workload, replicas: int, revision: int = 1
    ) -> None:
        self._scene.apply(namespace, rounds.workload_object(work, replicas, revision))

    def _move(self, namespace: str, work: rounds.Workload) -> None:
        """Send the pod that others are near to another node, and wait until it is there."""
        scene = self._scene
        previous = scene.node_of_companion(namespace, work.name)
        if previous is None:
            return
        scene.apply(namespace, rounds.companion(work, away_from=previous))
        ends = time.monotonic() + _RUNS_S
        while time.monotonic() < ends:
            if scene.node_of_companion(namespace, work.name) not in {None, previous}:
                return
            time.sleep(_STEP_S / 2)

    def _all_run(self, namespace: str, works: list[rounds.Workload]) -> None:
        """Wait until every pod runs, or ran; the judge tells of those that do not."""
        ends = time.monotonic() + _RUNS_S
        for work in works:
            while self._scene.running(namespace, work.name, _revision(work)) < work.scaled:
                if time.monotonic() > ends:
                    key = ("does not run", f"{namespace}/{work.name}")
                    words = f"not within {_RUNS_S:.0f} s"
                    self._scene.judge.breaches[key] = judge.Breach(*key, words)
                    return
                self._scene.revive()
                time.sleep(_STEP_S / 2)

    def _end(self, namespace: str, works: list[rounds.Workload]) -> None:
        """Delete all of a round, and judge what stays."""
        scene = self._scene
        kinds = "deployment,statefulset,job"
        scene.cluster.kubectl("delete", kinds, "--all", "-n", namespace, "--wait=false")
        ends = time.monotonic() + _GONE_S
        while not scene.is_empty(namespace) and time.monotonic() < ends:
            time.sleep(_STEP_S / 2)
        _, held = scene.look()
        scene.judge.end_round(claim for claim in held.values() if claim.namespace == namespace)
        scene.cluster.kubectl("delete", "namespace", namespace, "--wait=false")
        for work in works:
            if work.rule == "volume":
                self._delete_volumes(work)

    def _delete_volumes(self, work: rounds.Workload) -> None:
        names = [f"pv/{rounds.volume_name(work, node)}" for node in self._nodes]
        more = [*names, f"storageclass/agreement-{work.name}"]
        flags = ("--ignore-not-found", "--wait=true", "--timeout=60s")
        self._scene.cluster.kubectl("delete", *more, *flags)


def _revision(work: rounds.Workload) -> int:
    """The revision of the template that a workload has in the end."""
    return 2 if work.updated else 1
