"""What is measured: a cluster at half fill, and what every claim asks of it."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from benchmarks.allocator import fixtures

SEED = 20261121
_FEWEST, _LEAST_PERCENT = 100, 5

Device = tuple[str, str, str]


@dataclass(frozen=True)
class Case:
    """`count` are our decisions a round, `theirs` the reference's.

    Half of the devices that `takes` names (a profile, "" for whole GPUs) are in use, or those that
    are `in_use`.
    """

    name: str
    nodes: int
    asks: fixtures.Raw
    shape: Callable[[str], str]
    count: int
    theirs: int
    takes: str = ""
    in_use: tuple[Device, ...] = ()

    @cached_property
    def taken(self) -> tuple[Device, ...]:
        """The devices in use at first, drawn by lot."""
        if self.in_use:
            return self.in_use
        draw = random.Random(SEED)  # noqa: S311 - no secret
        named = self._eligible()
        devices = [
            (driver, fixtures.node_name(number), device)
            for number in range(self.nodes)
            for driver, device in named
        ]
        return tuple(sorted(draw.sample(devices, len(devices) // 2)))

    def _eligible(self) -> list[tuple[str, str]]:
        eligible: list[tuple[str, str]] = []
        for published in json.loads(self.shape("controller")):
            for device in published["spec"].get("devices", ()):
                attributes = device["attributes"]
                profile = attributes.get("profile", {}).get("string", "")
                is_it = (
                    profile == self.takes if self.takes else attributes["type"] == {"string": "gpu"}
                )
                if is_it:
                    eligible.append((published["spec"]["driver"], device["name"]))
        return eligible

    @property
    def sample(self) -> int:
        """How many nodes that do are enough for kube-scheduler (numFeasibleNodesToFind)."""
        if self.nodes <= _FEWEST:
            return self.nodes
        percent = max(50 - self.nodes // 125, _LEAST_PERCENT)
        return max(self.nodes * percent // 100, _FEWEST)


def _gpu(nodes: int, count: int, theirs: int) -> Case:
    name = f"1 GPU, {nodes:,} nodes"
    return Case(name, nodes, fixtures.gpus(), fixtures.whole, count, theirs)


def _aligned(nodes: int, theirs: int) -> Case:
    asks = fixtures.gpus(4, aligned=True)
    name = f"4 GPUs of one NUMA node, {nodes:,} nodes"
    return Case(name, nodes, asks, fixtures.whole, 800, theirs)


def _pair(nodes: int, count: int, theirs: int) -> Case:
    name = f"1 GPU and 1 NIC of one PCIe root, {nodes:,} nodes"
    return Case(name, nodes, fixtures.pair(), fixtures.whole_beside_nics, count, theirs)


def _mig(nodes: int, count: int, theirs: int) -> Case:
    asks = fixtures.instance("1g.10gb")
    name = f"MIG 1g.10gb, {nodes:,} nodes, every face"
    return Case(name, nodes, asks, fixtures.every_face, count, theirs, takes="1g.10gb")


CASES = (
    _gpu(10, 1_500, 1_500),
    _gpu(30, 1_500, 800),
    _gpu(100, 1_500, 400),
    _gpu(300, 1_500, 150),
    _gpu(1_000, 1_500, 80),
    _gpu(3_000, 1_500, 50),
    _gpu(5_000, 1_500, 50),
    _aligned(1_000, 30),
    _aligned(5_000, 8),
    _mig(10, 400, 60),
    _mig(30, 400, 30),
    _mig(100, 400, 30),
    _mig(300, 400, 30),
    _mig(1_000, 400, 24),
    _pair(100, 800, 100),
    _pair(1_000, 800, 20),
)
QUICK = (_gpu(100, 300, 200), _gpu(1_000, 300, 30), _mig(100, 100, 15), _pair(100, 100, 30))
