"""The faces of a GPU exclude each other as D1 says, in the eyes of kube-scheduler's allocator.

Claims come and go at random. What the allocator gives, the simulated hardware must take; what it
refuses, the hardware must refuse too.
"""

import random  # noqa: TID251 - walks that are the same every time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from driver import ids
from driver.devices import faces, mig, model
from driver.resources.publish import slice_builder
from simulator import machine
from tests.fakes import nvml
from tests.oracle import hardware, oracle
from tests.support.builders import objects

NODE = ids.NodeName("node-a")
STEPS = 2000
MACHINES = [
    "hgx-h100",
    "hgx-b200",
    "gb200-tray",
    "dgx-a100",
    "dgx-a100 in MIG mode",
    "a30 in MIG mode",
    "l40s",
]
SHARES = 8
_STEP = 128 << 20


@dataclass
class World:
    """One GPU, published, and the claims on it."""

    asked: oracle.Oracle
    gpu: model.Gpu
    real: hardware.Gpu
    slices: list[objects.Raw]
    held: dict[str, objects.Raw] = field(default_factory=dict)

    def try_for(
        self, name: str, expression: str, capacity: objects.Raw | None = None
    ) -> str | None:
        """Ask for one device; its name, and from now on the claim holds it."""
        more = {"capacity": {"requests": capacity}} if capacity else {}
        claim = objects.a_claim(
            name, objects.a_request("gpu", 1, expression, deviceClassName="any", **more)
        )
        allocated = self.asked.allocate(
            oracle.Scenario(
                slices=self.slices,
                classes=[objects.a_class("any", 'device.driver == "gpu.ration.dev"')],
                claims=[claim],
                node=NODE,
                allocated=tuple(self.held.values()),
            )
        )
        if isinstance(allocated, oracle.Unallocated):
            return None
        (self.held[name],) = allocated.settle([claim])
        return allocated.devices[0][0].device

    def release(self, name: str) -> None:
        del self.held[name]
        self.real.release(name)


def a_world(request: oracle.Oracle, name: str) -> World:
    profile, _, in_mig = name.partition(" ")
    built = machine.build(profile, seed="faces")
    if in_mig:
        for item in built.gpus:
            built.board(item).mig = built.board(item).mig_pending = True
    gpu = nvml.FakeNvml(built).inventory().gpus[0]
    terms = slice_builder.PublishTerms("gpu.ration.dev", NODE, "scheduler", {})
    pool, refused = slice_builder.build_pool(model.Inventory((gpu,)), terms, {})
    assert not refused
    written = slice_builder.render(pool, slice_builder.Owner(NODE, "uid"), 1)
    return World(request, gpu, hardware.Gpu(built, built.find(gpu.uuid)), written)


def attribute(name: str, value: str) -> str:
    return f'device.attributes["gpu.ration.dev"].{name} == "{value}"'


def whole(world: World, name: str, _chance: random.Random) -> None:
    fits = world.real.fits_whole()
    outcome = world.try_for(name, attribute("type", "gpu"))
    assert (outcome is not None) is fits
    if outcome is not None:
        world.real.whole = name


def share(world: World, name: str, chance: random.Random) -> None:
    sharing = chance.choice(list(faces.Sharing))
    gib, compute = chance.randint(1, 60), chance.randint(1, 60)
    request = hardware.Share(memory=gib << 30, compute=compute)
    fits = world.real.fits_share(sharing, request, SHARES)
    amounts = {"memory": f"{gib}Gi", "compute": str(compute)}
    expression = f"{attribute('type', 'gpu-share')} && {attribute('sharing', sharing)}"
    outcome = world.try_for(name, expression, amounts)
    assert (outcome is not None) is fits
    if outcome is not None:
        world.real.sharing = sharing
        world.real.shares[name] = request


def a_default_share(world: World, name: str, chance: random.Random) -> None:
    sharing = chance.choice(list(faces.Sharing))
    assert world.gpu.memory_bytes is not None
    request = hardware.Share(
        memory=world.gpu.memory_bytes // SHARES // _STEP * _STEP, compute=100 // SHARES
    )
    fits = world.real.fits_share(sharing, request, SHARES)
    expression = f"{attribute('type', 'gpu-share')} && {attribute('sharing', sharing)}"
    outcome = world.try_for(name, expression)
    assert (outcome is not None) is fits
    if outcome is not None:
        world.real.sharing = sharing
        world.real.shares[name] = request


def part(world: World, name: str, chance: random.Random) -> None:
    profiles: tuple[mig.Profile, ...] = world.gpu.mig.profiles if world.gpu.mig else ()
    if not profiles:
        return
    profile = chance.choice(profiles)
    fits = world.real.fits_profile(profile.id)
    expression = f"{attribute('type', 'mig')} && {attribute('profile', profile.name)}"
    outcome = world.try_for(name, expression)
    assert (outcome is not None) is fits, profile.name
    if outcome is not None:
        start = int(outcome.rpartition("-")[2])
        assert world.real.make(name, profile.id, start), outcome


KINDS: list[Callable[[World, str, random.Random], None]] = [
    whole,
    share,
    a_default_share,
    part,
    part,
]


@pytest.mark.parametrize("name", MACHINES)
def test_the_allocator_accepts_exactly_what_the_hardware_takes(
    running_oracle: oracle.Oracle, name: str
) -> None:
    world = a_world(running_oracle, name)
    chance = random.Random(name)  # noqa: S311 - a seed, no secret
    steps = STEPS // len(MACHINES) + 1
    met: set[str] = set()
    for step in range(steps):
        if world.held and chance.random() < 0.45:
            world.release(chance.choice(sorted(world.held)))
            continue
        previous = len(world.held)
        kind = chance.choice(KINDS)
        kind(world, f"claim-{step}", chance)
        met.add(f"{kind.__name__} {'fits' if len(world.held) > previous else 'is refused'}")
    assert {"a_default_share is refused", "whole is refused"} <= met
    if world.gpu.mig is not None and (world.gpu.mig.resetless or world.gpu.mig.enabled):
        assert {"part fits", "part is refused"} <= met


@pytest.mark.parametrize("profile", ["hgx-h100", "hgx-b200", "t4", "mixed"])
def test_nvidias_expression_for_a_gpu_yields_whole_gpus_only_and_all_of_them(
    running_oracle: oracle.Oracle, profile: str
) -> None:
    inventory = nvml.FakeNvml(machine.build(profile, seed="all")).inventory()
    every = {gpu.uuid: faces.Offering(kinds=frozenset(faces.Kind)) for gpu in inventory.gpus}
    terms = slice_builder.PublishTerms("gpu.nvidia.com", NODE, "scheduler", every)
    pool, _ = slice_builder.build_pool(inventory, terms, {})
    expression = (
        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    )
    request = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}
    allocated = running_oracle.allocate(
        oracle.Scenario(
            slices=slice_builder.render(pool, slice_builder.Owner(NODE, "uid"), 1),
            classes=[objects.a_class("gpu.nvidia.com", expression)],
            claims=[objects.a_claim("all", {"name": "gpus", "exactly": request})],
            node=NODE,
        )
    )
    assert isinstance(allocated, oracle.Allocated)
    devices = {device.device for device in allocated.devices[0]}
    assert devices == {faces.device_name(gpu.pci) for gpu in inventory.gpus}
