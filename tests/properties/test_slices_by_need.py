"""A claim that says what it needs gets no more of a GPU than a claim that names a mechanism."""

import collections
import random  # noqa: TID251 - the same every time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from driver import ids, names
from driver.api import v1alpha1
from driver.resources import quantities
from driver.resources.core import nodes
from driver.resources.dra import claims, device_classes, slices
from driver.resources.publish import slice_builder
from driver.scheduling.allocator import allocation_result, dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import cluster_state, snapshot
from hack.chart import helm
from tests.fakes import simulated_pool
from tests.support import allocation, snapshots
from tests.support.builders import objects

WORLDS, MIXES = 20, 25
CLASSES = [device_classes.parse(entry) for entry in helm.usual("DeviceClass")]
SLICE, MIG, MPS, TURNS, GPU = (
    f"{stem}.ration.dev" for stem in ("gpu-slice", "gpu-mig", "gpu-mps", "gpu-timeslice", "gpu")
)
NOTHING = ""
MECHANISMS: dict[v1alpha1.Isolation, tuple[str, ...]] = {
    "hardware": (MIG,),
    "limits": (MIG, MPS),
    "none": (MIG, MPS, TURNS),
}
MACHINES = ("hgx-h100", "dgx-a100", "a30", "l4", "mixed", "hgx-h200", "rtx-pro-6000", "hgx-b200")


@dataclass(frozen=True)
class Need:
    """Request of a claim; an empty amount is not requested, nor is isolation that is None."""

    memory: str
    compute: str
    isolation: v1alpha1.Isolation | None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return MECHANISMS[self.isolation or "limits"]

    def claim(self, name: str, device_class: str, namespace: str, *selectors: str) -> claims.Claim:
        annotations = {"memory": self.memory, "compute": self.compute}
        requested = {key: amount for key, amount in annotations.items() if amount}
        more = {"capacity": {"requests": requested}} if requested else {}
        request = objects.a_request("part", 1, *selectors, deviceClassName=device_class, **more)
        own = self.isolation if device_class == SLICE else None
        config = [objects.a_config("SliceConfig", isolation=own)] if own else []
        return objects.claim(name, request, config=config, namespace=namespace)


@dataclass
class World:
    """Some nodes, claims that come and go, and the allocator."""

    rng: random.Random
    view: cluster_state.ClusterState = field(
        default_factory=lambda: cluster_state.ClusterState(names.DRIVER)
    )
    running: list[claims.Claim] = field(default_factory=list)
    devices: dict[claims.DeviceId, slices.Device] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        self.allocator = dra_allocator.Allocator(snapshots.DECIDING)
        for device_class in CLASSES:
            self.view.set_device_class(device_class.name, device_class)
        for index in range(self.rng.choice((1, 2, 3))):
            self._add(f"node-{index}", self.rng.choice(MACHINES))

    def _add(self, name: str, machine: str) -> None:
        raw = objects.a_node(name)
        raw["status"]["allocatable"] = {"cpu": "9999", "memory": "9999Gi", "pods": "9999"}
        self.view.set_node(ids.NodeName(name), nodes.parse(raw))
        pool = simulated_pool.of_machine(name, "controller", machine)
        for entry in slice_builder.render(pool, slice_builder.Owner(ids.NodeName(name), "uid"), 1):
            part = slices.parse(entry)
            self.view.set_slice(part.name, part)
            for device in part.devices:
                device_id = claims.DeviceId(names.DRIVER, part.pool, device.name)
                self.devices[device_id] = device

    @property
    def profiles(self) -> list[str]:
        results = {device.attributes.get(names.ATTR_PROFILE) for device in self.devices.values()}
        return sorted(str(result) for result in results - {None})

    def name(self) -> str:
        self.number += 1
        return f"claim-{self.number}"

    def ask(self, claim: claims.Claim) -> allocator_types.Placement | None:
        decision = self.allocator.decide(self.view, allocation.workload(claim))
        return decision if isinstance(decision, allocator_types.Placement) else None

    def give(self, claim: claims.Claim, placement: allocator_types.Placement) -> None:
        workload = allocation.workload(claim)
        allocations = allocation_result.build_allocations(
            self.view, workload, placement, "2026-11-21T09:00:00Z"
        )
        flight = snapshot.InFlight(workload.pod, placement.node, allocations)
        self.view.begin_write(flight)
        self.view.end_write(flight)
        status = {"allocation": claims.render_allocation(allocations[claim.key])}
        held = objects.claim(claim.name, status=status, namespace=claim.namespace)
        self.view.set_claim(held.key, held)
        self.running.append(held)

    def stir(self) -> None:
        """Claims of every class come, and some go."""
        for _ in range(self.rng.randrange(6)):
            device_class = self.rng.choice((GPU, MIG, MIG, MPS, MPS, TURNS))
            namespace = self.rng.choice(("default", "team-b"))
            more = (
                [is_of("profile", self.rng.choice([*self.profiles, "none"]))]
                if device_class == MIG
                else []
            )
            need = Need(
                self.rng.choice(("2Gi", "9Gi")) if device_class in {MPS, TURNS} else "", "", None
            )
            claim = need.claim(self.name(), device_class, namespace, *more)
            placement = self.ask(claim)
            if placement is not None:
                self.give(claim, placement)
        while self.running and self.rng.random() < 0.35:
            gone = self.running.pop(self.rng.randrange(len(self.running)))
            self.view.set_claim(gone.key, None)

    def memory(self, placement: allocator_types.Placement) -> int:
        """The bytes of GPU memory that a placement takes."""
        (pick,) = placement.assignments
        capacity = self.devices[pick.device].capacity[names.CAP_MEMORY].value
        return (pick.result.consumed[names.CAP_MEMORY] if pick.shared else capacity).units

    def rivals(self, need: Need, namespace: str) -> Iterator[int]:
        """Yield the amounts of claims that name a mechanism of the same isolation, and a product.

        Of MIG's profiles the smallest one that does.
        """
        served: set[tuple[str, str]] = set()
        for device_class, product, _, profile in self._named(need.mechanisms):
            if (device_class, product) in served:
                continue
            selectors = [is_of("productName", product)]
            selectors += [is_of("profile", profile)] if profile else []
            placement = self.ask(need.claim(self.name(), device_class, namespace, *selectors))
            if placement is not None:
                served.add((device_class, product))
                yield self.memory(placement)

    def _named(self, mechanisms: Iterable[str]) -> list[tuple[str, str, int, str]]:
        results = {
            (
                kind_of(device),
                str(device.attributes[names.ATTR_PRODUCT]),
                device.capacity[names.CAP_MEMORY].value.units,
                str(device.attributes.get(names.ATTR_PROFILE, "")),
            )
            for device in self.devices.values()
        }
        return sorted(result for result in results if result[0] in mechanisms)


def is_of(attribute: str, value: str) -> str:
    return f'device.attributes["{names.DRIVER}"].?{attribute}.orValue("") == "{value}"'


def a_need(rng: random.Random) -> Need:
    return Need(
        rng.choice(("", "1Gi", "4Gi", "9Gi", "12Gi", "20Gi", "30Gi", "45Gi", "100Gi")),
        rng.choice(("", "", "5", "14", "40", "60", "95")),
        rng.choice((None, "hardware", "limits", "none")),
    )


def kind_of(device: slices.Device) -> str:
    shown = device.attributes
    if shown[names.ATTR_TYPE] == names.TYPE_SHARE:
        return MPS if shown[names.ATTR_SHARING] == names.SHARING_MPS else TURNS
    return {names.TYPE_MIG: MIG, names.TYPE_GPU: GPU}[str(shown[names.ATTR_TYPE])]


@pytest.mark.slow
def test_a_claim_by_need_takes_no_more_memory_than_one_that_names_a_mechanism() -> None:
    seen: collections.Counter[tuple[str, str]] = collections.Counter()
    for seed in range(WORLDS):
        world = World(random.Random(seed))  # noqa: S311 - a seed, no secret
        for _ in range(MIXES):
            world.stir()
            seen[asked(world)] += 1
    met = {("hardware", MIG), ("limits", MIG), ("limits", MPS), ("none", MPS), ("none", TURNS)}
    unmet = {(isolation, NOTHING) for isolation in MECHANISMS}
    assert min(seen[entry] for entry in met | unmet) >= 5, seen


def asked(world: World) -> tuple[str, str]:
    """Ask for a part by need, and by every mechanism; what isolation it was, and what was had."""
    need, namespace = a_need(world.rng), world.rng.choice(("default", "team-b"))
    isolation = need.isolation or "limits"
    claim = need.claim(world.name(), SLICE, namespace)
    placement = world.ask(claim)
    rivals = [*world.rivals(need, namespace)]
    assert (placement is not None) == bool(rivals), (need, rivals)
    if placement is None:
        return isolation, NOTHING
    assert world.memory(placement) == min(rivals), (need, placement)
    satisfied(world, need, placement)
    if world.rng.random() < 0.5:
        world.give(claim, placement)
    return isolation, kind_of(world.devices[placement.assignments[0].device])


def satisfied(world: World, need: Need, placement: allocator_types.Placement) -> None:
    """The face is of a mechanism that isolates enough, and the claim has of it what it asks."""
    (pick,) = placement.assignments
    device = world.devices[pick.device]
    assert kind_of(device) in need.mechanisms
    had = {name: capacity.value for name, capacity in device.capacity.items()}
    had |= pick.result.consumed
    for name, amount in (("memory", need.memory), ("compute", need.compute)):
        if amount:
            assert had[name].nanos >= quantities.parse(amount).nanos
