"""A fleet of eight-GPU nodes as our plugin publishes them, with jobs that run on it."""

import datetime as dt
import json
import random
from dataclasses import replace
from typing import NamedTuple

from benchmarks.allocator import fixtures
from driver import ids, names
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes, slices
from driver.scheduling.allocator import policies, settings
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.preemption import victims
from driver.scheduling.snapshot import cluster_state

SEED = 20261122
NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
GPUS_A_NODE = 8
_LONGEST_S = 86_400
OWNER = pods.Owner("Job", "batch", "u")


def deciding() -> settings.Settings:
    """As the controller decides by default."""
    return settings.Settings(
        ranking.parse_policies(",".join(policies.DEFAULT)),
        device_filter.ControllerRules(names.DRIVER),
    )


class _Job(NamedTuple):
    pod: ids.Key
    claim: ids.Key
    node: ids.NodeName
    devices: tuple[str, ...]


class Fleet:
    """So many nodes; jobs of a GPU each come to run on it, and a book of them is kept."""

    def __init__(self, count: int) -> None:
        self.view = cluster_state.ClusterState(names.DRIVER)
        self.book = victims.VictimIndex()
        self._dice = random.Random(SEED)  # noqa: S311 - no secret
        self._free: list[tuple[ids.NodeName, str]] = []
        self._made = 0
        self._running: list[_Job] = []
        for raw in fixtures.classes():
            self.view.set_device_class(raw["metadata"]["name"], device_classes.parse(raw))
        template = fixtures.every_face("controller")
        for number in range(count):
            self._add(number, json.loads(fixtures.filled(template, number)))

    def _add(self, number: int, raw: list[fixtures.Raw]) -> None:
        node = nodes.parse(fixtures.node(number))
        self.view.set_node(node.name, node)
        for one in raw:
            found = slices.parse(one)
            self.view.set_slice(one["metadata"]["name"], found)
            self._free += [
                (node.name, device["name"])
                for device in one["spec"].get("devices", ())
                if device["attributes"]["type"] == {"string": names.TYPE_GPU}
            ]

    def fill(self, jobs: int) -> None:
        """So many jobs of one GPU, somewhere; they began within the last day."""
        chosen = self._dice.sample(self._free, jobs)
        for node, device in chosen:
            self.run(node, device)
        gone = {*chosen}
        self._free = [one for one in self._free if one not in gone]

    def change(self, jobs: int) -> None:
        """So many jobs end, and others begin in their place."""
        for _ in range(jobs):
            ended = self._running.pop(self._dice.randrange(len(self._running)))
            for kept in (self.view, self.book):
                kept.set_pod(ended.pod, None)
                kept.set_claim(ended.claim, None)
            self.run(ended.node, *ended.devices)

    def run(self, node: ids.NodeName, *devices: str) -> None:
        """A job with devices of a node."""
        self._made += 1
        name = f"job-{self._made}"
        started = NOW - dt.timedelta(seconds=self._dice.randrange(_LONGEST_S))
        raw = fixtures.allocated(
            fixtures.claim(name, fixtures.gpus(len(devices))),
            (names.DRIVER, node, devices[0]),
            node,
        )
        pod = replace(
            pods.parse(fixtures.pod(name, name)),
            node=node,
            phase="Running",
            started=started.isoformat(),
            owner=OWNER,
        )
        result = raw["status"]["allocation"]["devices"]["results"][0]
        raw["status"]["allocation"]["devices"]["results"] = [
            {**result, "device": device} for device in devices
        ]
        raw["status"]["reservedFor"] = [{"resource": "pods", "name": name, "uid": pod.uid}]
        claim = claims.parse(raw)
        for kept in (self.view, self.book):
            kept.set_pod(pod.key, pod)
            kept.set_claim(claim.key, claim)
        self._running.append(_Job(pod.key, claim.key, node, devices))


def asks(name: str, gpus: int = 1) -> allocator_types.Workload:
    """A pod that waits for so many GPUs."""
    claim = claims.parse(fixtures.claim(name, fixtures.gpus(gpus)))
    return allocator_types.Workload(pods.parse(fixtures.pod(name, name)), (claim,))


def gang(count: int, gpus: int = 1) -> list[allocator_types.Workload]:
    """So many pods that wait together."""
    return [asks(f"worker-{number:04d}", gpus) for number in range(count)]
