"""Claims churned over NVIDIA's own driver, with our controllers alone behind broken connections.

Whole GPUs, MIG devices on demand and fixed ones, on three simulated machines. Two controllers are
behind proxies that break what passes, and whoever leads is killed now and then. At no version of
any claim may more be given out than there is, and the driver may refuse no claim for our choice.

    NVIDIA_CLAIMS=1000 .venv/bin/python -m pytest -q -s tests/e2e/test_nvidia_churn.py

The driver comes from the folder that RATION_NVIDIA_DRIVER names; without it the test is skipped.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.resources.dra import slices
from hack.cluster import api
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
from tests.e2e import nvidia_nodes as nvidia

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]
field = release.field
SEED = int(os.environ.get("NVIDIA_SEED", "20261126"))
CLAIMS = int(os.environ.get("NVIDIA_CLAIMS", "100"))
PER_CLAIM_S = 1.1
"""On two busy cores."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[api.Cluster]:
    """Three nodes that NVIDIA's driver serves."""
    source = nvidia.folder()
    with release.a_cluster() as loaded:
        managed_devices.require_rules(loaded)
        with nvidia.served(loaded, source):
            yield loaded


TEMPLATES = (
    nvidia.template("gpu", nvidia.request()),
    nvidia.template("pair", nvidia.request(count=2)),
    nvidia.template("cut", nvidia.request("mig", profile="1g.10gb")),
    nvidia.template("part", nvidia.request("mig", profile="1g.5gb")),
    nvidia.template("large", nvidia.request("mig", profile="3g.20gb")),
)
KINDS = (
    pod_churn.Kind("gpu", 2, nvidia.WHOLE, at_once=3),
    pod_churn.Kind("pair", 1, nvidia.WHOLE, at_once=1),
    pod_churn.Kind("cut", 4, nvidia.DYNAMIC, at_once=4),
    pod_churn.Kind("part", 4, nvidia.STATIC, at_once=2),
    pod_churn.Kind("large", 2, nvidia.STATIC, at_once=2),
)


def test_claims_of_nvidias_driver_come_and_go_and_nothing_is_given_twice(
    field: playground.Playground, tmp_path: Path
) -> None:
    kube = field.kube
    published = [slices.parse(entry) for entry in other_drivers.published(kube, nvidia.DRIVER)]
    chronicle = allocator_chronicle.AllocatorChronicle(kube, published)
    field.create(*TEMPLATES)
    churn = pod_churn.PodChurn(field, KINDS, SEED)
    config = tmp_path / "managed-drivers.yaml"
    managed_devices.write_document(config, {"name": nvidia.DRIVER})
    choosers = (storms.storm(SEED), storms.storm(SEED + 1))
    flags = ("--relist-seconds=20", f"--managed-drivers={config}")
    began = time.monotonic()
    with replicas.Replicas(field.cluster, kube, tmp_path, choosers, flags) as ours:
        try:
            with storms.around(ours, every_s=60.0) as stop:
                chronicle.start()
                guard = threading.Timer(60 + PER_CLAIM_S * CLAIMS, stop.set)
                guard.daemon = True
                guard.start()
                churn.run(CLAIMS, stop)
                guard.cancel()
                churn.drain(240)
                chronicle.complete(field)
        finally:
            chronicle.stop()
            tell(chronicle, churn, ours, time.monotonic() - began)
            refused = churn.refused()
            sys.stdout.write(f"  refused prepares: {len(refused)} {refused[:5]}\n")
    history = chronicle.owners
    assert chronicle.gap is None
    assert history.breaches == []
    assert history.wrong() == []
    assert history.by("controller") >= CLAIMS
    assert (churn.prepared >= CLAIMS, churn.ended["Failed"]) == (True, 0)
    assert [note for note in refused if nvidia.LOCK_TIMEOUT not in note] == []


def tell(
    chronicle: allocator_chronicle.AllocatorChronicle,
    churn: pod_churn.PodChurn,
    ours: replicas.Replicas,
    seconds: float,
) -> None:
    history = chronicle.owners
    sys.stdout.write(
        f"\nNVIDIA's driver: seed {SEED}, {seconds:.0f} s\n"
        f"  claims {churn.created}, prepared {churn.prepared}, pods {dict(churn.ended)}\n"
        f"  history {dict(history.counts)}, breaches {len(history.breaches)}\n"
        f"  by controller {history.by('controller')}, scheduler {history.by('scheduler')}\n"
        f"  leaders killed {ours.kills}, starts {ours.starts}, rotations {ours.rotations}\n"
        f"  faults {ours.faults()}\n  requests {ours.requests()}\n"
    )
