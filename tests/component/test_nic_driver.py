"""The NIC driver of tests, between a played kubelet and an API server."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver import ids
from driver.kube import client, gvr
from driver.kubeletplugin import ports
from tests.fakes import kubelet as kubelets
from tests.fakes.apiserver import server
from tests.fakes.nic_driver import driver as nic_driver
from tests.fakes.nic_driver import pools, prepared_claims
from tests.support.builders import objects

NICS = (pools.Nic("nic-0"), pools.Nic("nic-1"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A node's folder, short: a socket's path has little room."""
    path = Path(tempfile.mkdtemp(prefix="nic"))
    for name in ("kubelet", "cdi"):
        (path / name).mkdir()
    yield path
    shutil.rmtree(path)


@pytest.fixture
def nics(kube: client.KubeClient, folder: Path) -> Iterator[nic_driver.NicDriver]:
    with nic_driver.NicDriver(kube) as running:
        running.serve("node-a", folder)
        running.publish(pools.Pool("node-a", NICS))
        yield running


@pytest.fixture
def kubelet(folder: Path, nics: nic_driver.NicDriver) -> Iterator[kubelets.Plugin]:
    with kubelets.Kubelet(folder / "kubelet") as running:
        plugin = running.register()
        nics.wait_registered("node-a")
        yield plugin


def allocated(api: server.ApiServer, name: str, device: str = "nic-0") -> ports.ClaimRef:
    """A claim that was given a NIC, and a GPU of another driver's."""
    result = {"driver": pools.DRIVER, "device": device, "request": "nics/first"}
    status = objects.allocated("node-a", result, "gpu-0")
    api.put(gvr.RESOURCE_CLAIMS, objects.a_claim(name, status=status))
    return ports.ClaimRef("default", name, ids.ClaimUid(objects.uid_of(name)))


def test_a_claims_nic_is_prepared_with_its_variable_and_unprepared_again(
    api: server.ApiServer, kubelet: kubelets.Plugin, nics: nic_driver.NicDriver, folder: Path
) -> None:
    claim = allocated(api, "first", "nic-1")
    (device,) = kubelet.prepare(claim)[claim.uid].devices
    assert (device.pool_name, device.device_name) == ("node-a", "nic-1")
    assert list(device.request_names) == ["nics"]
    (path,) = (folder / "cdi").iterdir()
    (edited,) = json.loads(path.read_text())["devices"]
    assert list(device.cdi_device_ids) == [f"nic.example.com/nic={edited['name']}"]
    assert edited["containerEdits"]["env"] == ["NIC_1=nic-1"]
    assert not kubelet.unprepare(claim)[claim.uid].error
    assert list((folder / "cdi").iterdir()) == []
    assert nics.calls == [
        prepared_claims.Call("prepare", "node-a", "default/first", ("node-a/nic-1",)),
        prepared_claims.Call("unprepare", "node-a", "default/first", ("node-a/nic-1",)),
    ]


def test_a_nic_that_two_claims_were_given_is_refused_to_the_second(
    api: server.ApiServer, kubelet: kubelets.Plugin, nics: nic_driver.NicDriver
) -> None:
    first, second = allocated(api, "first"), allocated(api, "second")
    answers = kubelet.prepare(first, second)
    assert not answers[first.uid].error
    assert "node-a/nic-0 still prepared for claim" in answers[second.uid].error
    assert [bool(call.error) for call in nics.calls] == [False, True]


def test_a_claim_that_is_not_allocated_or_gone_is_refused(
    api: server.ApiServer, kubelet: kubelets.Plugin
) -> None:
    api.put(gvr.RESOURCE_CLAIMS, objects.a_claim("pending"))
    pending = ports.ClaimRef("default", "pending", ids.ClaimUid(objects.uid_of("pending")))
    gone = ports.ClaimRef("default", "gone", ids.ClaimUid("1-1"))
    answers = kubelet.prepare(pending, gone)
    assert "not allocated" in answers[pending.uid].error
    assert "gone" in answers[gone.uid].error


def test_a_pool_is_published_anew_as_its_next_generation_and_goes_with_the_driver(
    kube: client.KubeClient, folder: Path
) -> None:
    with nic_driver.NicDriver(kube) as nics:
        nics.serve("node-a", folder)
        for number in (1, 2):
            nics.publish(pools.Pool("node-a", NICS[:number]))
            (entry,) = kube.list(gvr.RESOURCE_SLICES).items
            assert entry["spec"]["pool"]["generation"] == number
            assert len(entry["spec"]["devices"]) == number
        assert len(kube.list(gvr.DEVICE_CLASSES).items) == 1
    assert kube.list(gvr.RESOURCE_SLICES).items == []
    assert kube.list(gvr.DEVICE_CLASSES).items == []
    assert list((folder / "kubelet" / "plugins_registry").iterdir()) == []
