"""Devices of another driver pass between the allocators under load, by each kind of entry.

Kubernetes' own example driver on real nodes. Pods with claims come and go; `managedDrivers` is
changed by driver, by node selector, by a node's label and by pools; each change restarts both
controllers, which are behind proxies that break what passes, and killed meanwhile. The judge is the
API server's history of claims and DeviceTaintRules: no device is given twice, and none by an
allocator whose it was not.

    FLIP_SEED=7 .venv/bin/python -m pytest -q -s -p no:randomly tests/e2e/test_driver_flips.py
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from driver.kube import client, gvr
from driver.resources.dra import slices
from hack.cluster import api, chart, errors, example_driver
from tests.e2e import (
    allocator_chronicle,
    managed_devices,
    other_drivers,
    playground,
    pod_churn,
    release,
    replicas,
    storms,
)
from tests.support.builders import joint_claims as joint

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]
cluster = release.cluster
field = release.field
SEED = int(os.environ.get("FLIP_SEED", "20261126"))
GPUS = example_driver.Installation()
TEAM = "example.com/team"
HELD_S = 8.0
"""Between two changes, once each node's devices are whose they are to be."""
MOST_LATE_S = 25.0
"""By which readers of the rules may be behind: the other allocator begins 5 s after that."""
UPSET_S = 150.0
"""The leader is killed once in it; the next one begins a handover's thirty seconds again."""
ENDLESS = 1_000_000
Entry = dict[str, Any]
NOWHERE: Entry = {"nodeSelector": "ration.dev/no-node"}


@pytest.fixture
def theirs(cluster: api.Cluster) -> Iterator[client.KubeClient]:
    """The example driver on both nodes, and our controllers' right to write rules for it."""
    managed_devices.require_rules(cluster)
    try:
        example_driver.fetch()
    except errors.ClusterError as error:
        pytest.skip(f"the example driver cannot be built here: {error}")
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    cluster.install_example_driver(GPUS, *cluster.nodes()[:2])
    nowhere = (managed_devices.managed(GPUS.name), managed_devices.NOWHERE)
    chart.install(release.WHERE, "--set=controller.replicas=2", *nowhere)
    try:
        yield kube
    finally:
        chart.install(release.WHERE, "--set=controller.replicas=2", *nowhere)
        playground.until(lambda: not owners(kube), 120, "the rules are gone")
        cluster.uninstall_example_driver(GPUS)
        release.install()


class Flips:
    """Changes of the entry, each carried out by both controllers."""

    def __init__(self, kube: client.KubeClient, ours: replicas.Replicas, path: Path) -> None:
        self._kube = kube
        self._ours = ours
        self._path = path
        self.done: list[str] = []

    def change(self, name: str, entry: Entry, expected: dict[str, str]) -> None:
        """Write an entry, restart the controllers, and wait until the rules are as expected."""
        managed_devices.write_document(self._path, {"name": GPUS.name, **entry})
        self._ours.roll()
        self.settled(name, expected)

    def settled(self, name: str, expected: dict[str, str]) -> None:
        """Wait until the rules give these pools, "" for all, the allocator taint, and no others."""

        def are_expected() -> bool:
            self._ours.revive()
            return owners(self._kube) == expected

        playground.until(are_expected, 240, f"{name}: {expected}")
        self.done.append(name)
        time.sleep(HELD_S)


def owners(kube: client.KubeClient) -> dict[str, str]:
    """Return the taint of each rule by its pool, "" for a driver's."""
    rules = kube.list(gvr.DEVICE_TAINT_RULES).items
    specs = [rule["spec"] for rule in rules]
    return {
        spec["deviceSelector"].get("pool", ""): spec["taint"]["key"].rpartition("/")[2]
        for spec in specs
        if spec["deviceSelector"].get("driver") == GPUS.name
    }


def sequence(flips: Flips, cluster: api.Cluster) -> Iterator[Callable[[], None]]:
    """Yield the changes: by driver, by node selector, by a node's label, by pools, and back."""
    first, second = cluster.nodes()[:2]
    mine = "allocator"

    def label(node: str, value: str) -> None:
        cluster.kubectl("label", "node", node, f"{TEAM}{value}", "--overwrite")

    yield lambda: flips.change("by driver", {}, {"": mine})
    label(first, "=gpu")
    yield lambda: flips.change("by node selector", {"nodeSelector": f"{TEAM}=gpu"}, {first: mine})
    label(second, "=gpu")
    yield lambda: flips.settled("a node's label came", {first: mine, second: mine})
    label(first, "-")
    yield lambda: flips.settled("a node's label went", {second: mine})
    yield lambda: flips.change("by pools", {"pools": [first]}, {first: mine})
    label(second, "-")
    yield lambda: flips.change("back", NOWHERE, {})


def test_drivers_devices_change_allocator_under_load_and_the_two_never_overlap(
    theirs: client.KubeClient, field: playground.Playground, tmp_path: Path
) -> None:
    kube, nodes = theirs, field.cluster.nodes()[:2]
    published = [slices.parse(entry) for entry in other_drivers.published(kube, GPUS.name)]
    chronicle = allocator_chronicle.AllocatorChronicle(kube, published)
    field.create(
        joint.a_template("single", joint.only(GPUS.name)),
        joint.a_template("double", joint.only(GPUS.name, 2)),
    )
    kinds = [
        *(pod_churn.Kind("single", 1, node, at_once=5) for node in nodes),
        pod_churn.Kind("double", 1, at_once=4),
    ]
    churn = pod_churn.PodChurn(field, kinds, SEED)
    config = tmp_path / "managed-drivers.yaml"
    managed_devices.write_document(config, {"name": GPUS.name, **NOWHERE})
    choosers = (storms.storm(SEED), storms.storm(SEED + 1))
    flags = ("--relist-seconds=20", f"--managed-drivers={config}")
    with replicas.Replicas(field.cluster, kube, tmp_path, choosers, flags) as ours:
        flips = Flips(kube, ours, config)
        stop = threading.Event()
        threads = [
            threading.Thread(target=churn.run, args=(ENDLESS, stop)),
            threading.Thread(target=storms.upset, args=(ours, stop, UPSET_S)),
        ]
        chronicle.start()
        for thread in threads:
            thread.start()
        try:
            for change in sequence(flips, field.cluster):
                change()
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)
            tell(chronicle, churn, ours, flips)
        ours.calm()
        ours.revive()
        churn.drain(240)
        chronicle.complete(field)
        chronicle.stop()
    history = chronicle.owners
    assert chronicle.gap is None
    assert history.breaches == []
    assert history.wrong() == []
    assert max((entry.after_s for entry in history.late()), default=0.0) < MOST_LATE_S
    assert min(history.by("controller"), history.by("scheduler")) >= 30
    assert ours.kills >= 2
    assert churn.ended["Failed"] == 0
    assert churn.refused() == []


def tell(
    chronicle: allocator_chronicle.AllocatorChronicle,
    churn: pod_churn.PodChurn,
    ours: replicas.Replicas,
    flips: Flips,
) -> None:
    history = chronicle.owners
    late = sorted((entry.after_s for entry in history.late()), reverse=True)[:5]
    sys.stdout.write(
        f"\nflips: seed {SEED}, {flips.done}\n"
        f"  claims {churn.created}, prepared {churn.prepared}, pods {dict(churn.ended)}\n"
        f"  history {dict(history.counts)}, breaches {len(history.breaches)}\n"
        f"  by controller {history.by('controller')}, scheduler {history.by('scheduler')}, "
        f"wrong {len(history.wrong())}, late {late}\n"
        f"  leaders killed {ours.kills}, starts {ours.starts}, faults {ours.faults()}\n"
    )
