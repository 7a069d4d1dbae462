"""Every face of every machine, on the real API server and under the real scheduler."""

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from driver import ids
from driver.devices import faces, model
from driver.kube import client, gvr
from driver.kubeletplugin.publish import slice_plan
from driver.resources.dra import slices
from driver.resources.publish import slice_builder
from hack.cluster import api
from simulator import machine, profile
from tests.e2e import playground
from tests.fakes import nvml
from tests.oracle import hardware

NODE = "e2e-f"
STEPS = 60
SHARES = 8
ALL = faces.Offering(kinds=frozenset(faces.Kind))


@pytest.mark.smoke
@pytest.mark.parametrize("name", profile.names())
def test_the_api_server_takes_every_machine_and_drops_nothing(
    cluster: api.Cluster, kube: client.KubeClient, name: str
) -> None:
    inventory = nvml.FakeNvml(machine.build(name, seed=name)).inventory()
    driver, (node, *_) = f"{name}.test.ration.dev", cluster.nodes()
    uid = kube.get(gvr.NODES, node)["metadata"]["uid"]
    owner = slice_builder.Owner(ids.NodeName(node), uid)
    terms = slice_builder.PublishTerms(driver, owner.node, "controller", _each(inventory))
    pool, refused = slice_builder.build_pool(inventory, terms, {})
    assert not refused
    expected = slice_builder.render(pool, owner, 1)
    assert expected == slice_builder.render(
        slice_builder.build_pool(inventory, terms, {})[0], owner, 1
    )
    try:
        creates = [kube.create(gvr.RESOURCE_SLICES, dict(entry)) for entry in expected]
    finally:
        for item in kube.list(gvr.RESOURCE_SLICES).items:
            if item["spec"]["driver"] == driver:
                kube.delete(gvr.RESOURCE_SLICES, item["metadata"]["name"])
    for request, answer in zip(expected, creates, strict=True):
        assert slice_plan.dropped_fields(dict(request), answer) == ()
    read = [slices.parse(created) for created in creates]
    assert [d.name for entry in read for d in entry.devices] == [d.name for d in pool.devices]
    assert len(slice_plan.plan_writes(pool, owner, creates)) == 0


def _each(inventory: model.Inventory) -> dict[ids.GpuUuid, faces.Offering]:
    return {gpu.uuid: ALL for gpu in inventory.gpus}


@pytest.fixture(scope="module")
def shared_node(cluster: api.Cluster) -> Iterator[str]:
    """kube-scheduler allocates, shares included."""
    flags = ("--share-domain=cluster",)
    try:
        playground.add_node(cluster, NODE, allocator="scheduler", plugin_flags=flags)
        yield NODE
    finally:
        if NODE in cluster.nodes():
            cluster.remove_node(NODE)


class Walk:
    """Claims for faces of one GPU, one after another, and the hardware that judges them."""

    def __init__(self, field: playground.Playground, node: str) -> None:
        self.field = field
        self.node = node
        built = machine.build("hgx-h100", seed="judge")
        (self.judge,) = (hardware.Gpu(built, gpu) for gpu in built.gpus[:1])
        self.profiles = nvml.FakeNvml(built).inventory().gpus[0].mig
        self.uuid = self._first_uuid()
        self.held: set[str] = set()

    def _first_uuid(self) -> str:
        items = self.field.kube.list(gvr.RESOURCE_SLICES).items
        uuids: Iterable[tuple[str, str]] = (
            (device["name"], device["attributes"]["uuid"]["string"])
            for item in items
            for device in item["spec"].get("devices", ())
            if item["spec"]["nodeName"] == self.node
            and device["attributes"]["type"]["string"] == "gpu"
        )
        return min(uuids)[1]

    def try_for(self, name: str, terms: dict[str, str], capacity: Any = None) -> str | None:
        """The device the scheduler gave, or None once it has refused the pod."""
        words = " && ".join(
            f'device.attributes["gpu.ration.dev"].{key} == "{value}"'
            for key, value in terms.items()
        )
        more: dict[str, Any] = {"capacity": {"requests": capacity}} if capacity else {}
        claim = playground.a_claim(
            name, deviceClassName="e2e-any", selectors=[{"cel": {"expression": words}}], **more
        )
        self.field.create(
            claim, playground.a_pod(name, claims=(name,), nodeSelector=playground.on(self.node))
        )
        playground.until(lambda: self._answered(name), 30, f"an answer for {name}")
        device = self.field.device_of(name)
        if device is None:
            self._delete(name)
            return None
        self.held.add(name)
        return device[1]

    def _answered(self, name: str) -> bool:
        if self.field.device_of(name) is not None:
            return True
        conditions = self.field.pod(name)["status"].get("conditions", ())
        return any(condition.get("reason") == "Unschedulable" for condition in conditions)

    def _delete(self, name: str) -> None:
        self.field.delete_pod(name)
        kind, namespace = gvr.RESOURCE_CLAIMS, self.field.namespace
        self.field.kube.delete(kind, name, namespace)
        names = {name}
        playground.until(
            lambda: names.isdisjoint(c["metadata"]["name"] for c in self.field.claims()),
            60,
            f"claim {name} is gone",
        )

    def release(self, name: str) -> None:
        self._delete(name)
        self.held.discard(name)
        self.judge.release(name)

    def whole(self, name: str, _chance: random.Random) -> None:
        fits = self.judge.fits_whole()
        outcome = self.try_for(name, {"type": "gpu", "uuid": self.uuid})
        assert (outcome is not None) is fits
        if fits:
            self.judge.whole = name

    def share(self, name: str, chance: random.Random) -> None:
        sharing = chance.choice(list(faces.Sharing))
        gib, compute = chance.randint(1, 60), chance.randint(1, 60)
        share = hardware.Share(gib << 30, compute)
        fits = self.judge.fits_share(sharing, share, SHARES)
        outcome = self.try_for(
            name,
            {"type": "gpu-share", "sharing": sharing, "uuid": self.uuid},
            {"memory": f"{gib}Gi", "compute": str(compute)},
        )
        assert (outcome is not None) is fits
        if fits:
            self.judge.sharing = sharing
            self.judge.shares[name] = share

    def part(self, name: str, chance: random.Random) -> None:
        assert self.profiles is not None
        choice = chance.choice(self.profiles.profiles)
        fits = self.judge.fits_profile(choice.id)
        outcome = self.try_for(
            name, {"type": "mig", "profile": choice.name, "parentUUID": self.uuid}
        )
        assert (outcome is not None) is fits, choice.name
        if outcome is not None:
            assert self.judge.make(name, choice.id, int(outcome.rpartition("-")[2]))


def test_the_real_scheduler_gives_what_the_hardware_takes(
    field: playground.Playground, kube: client.KubeClient, shared_node: str
) -> None:
    classes = gvr.DEVICE_CLASSES
    selector = {"cel": {"expression": 'device.driver == "gpu.ration.dev"'}}
    kube.create(classes, {"metadata": {"name": "e2e-any"}, "spec": {"selectors": [selector]}})
    try:
        walk = Walk(field, shared_node)
        chance = random.Random(NODE)  # noqa: S311 - a seed, no secret
        met: set[tuple[str, bool]] = set()
        for step in range(STEPS):
            if walk.held and chance.random() < 0.4:
                walk.release(chance.choice(sorted(walk.held)))
                continue
            kind = chance.choice([walk.whole, walk.share, walk.share, walk.part, walk.part])
            kind(f"step-{step}", chance)
            met.add((kind.__name__, f"step-{step}" in walk.held))
        assert {(kind, fits) for kind in ("share", "part") for fits in (True, False)} <= met
    finally:
        kube.delete(classes, "e2e-any")
