import dataclasses
from typing import Any

import pytest

from driver import errors, ids
from driver.api import v1alpha1
from driver.devices import faces, mig
from driver.kubeletplugin.plan import claim_mps, steps
from driver.resources.sharing import claim_mps as sharing_claim_mps
from tests.support.builders.mig_grants import a_gpu, a_part

PART = mig.Profile(19, "1g.10gb", 1, 9984, 1, (mig.Placement(0, 1),))


def a_whole(**changes: Any) -> steps.Grant:
    gpu = dataclasses.replace(a_gpu(), **{"memory_bytes": 80 << 30, **changes})
    return steps.Grant("gpu", "node-1", faces.WholeFace(gpu))


def own(grant: steps.Grant, **settings: Any) -> sharing_claim_mps.ClaimMpsServer | None:
    sharing = v1alpha1.MpsSharing(mps=v1alpha1.Mps(**settings))
    return claim_mps.claim_daemon([(grant, v1alpha1.GpuConfig(sharing=sharing))])


def test_a_claim_without_mps_has_no_daemon() -> None:
    assert claim_mps.claim_daemon([(a_whole(), v1alpha1.GpuConfig())]) is None


def test_a_limit_is_cut_to_whole_mebibytes() -> None:
    mps_server = own(a_whole(), pinnedMemory="1.9Mi")
    assert mps_server is not None
    assert mps_server.limits == {0: 1 << 20}


def test_a_device_without_a_limit_has_the_whole_mebibytes_of_its_memory() -> None:
    mps_server = own(a_whole(memory_bytes=(80 << 30) + 5))
    assert mps_server is not None
    assert claim_mps.step_arguments(mps_server)[claim_mps.MEMORY] == str(80 << 30)


def test_a_gpu_that_does_not_tell_its_memory_needs_a_limit() -> None:
    with pytest.raises(errors.BadInput, match="does not tell its memory; expected a limit"):
        own(a_whole(memory_bytes=None))
    mps_server = own(a_whole(memory_bytes=None), pinnedMemory="4Gi")
    assert mps_server is not None
    assert claim_mps.step_arguments(mps_server)[claim_mps.MEMORY] == str(4 << 30)


def test_several_users_at_once_need_volta() -> None:
    pascal = a_whole(cuda_capability=(6, 1))
    assert own(pascal) is not None
    with pytest.raises(errors.BadInput, match=r"has compute capability 6\.1; expected 7\.0"):
        own(pascal, multiUser=True)


def test_no_limit_can_name_a_mig_device_that_is_not_made_yet() -> None:
    part = a_part(PART, 0)
    settings = v1alpha1.Mps(pinnedMemoryPerDevice={"MIG-1": "1Gi"})
    config = v1alpha1.MigDeviceConfig(sharing=v1alpha1.MpsSharing(mps=settings))
    with pytest.raises(errors.BadInput, match="MIG-1 is no device of the claim"):
        claim_mps.claim_daemon([(part, config)])


def test_a_step_says_which_device_it_is_for() -> None:
    fields = {"profile": 19, "start": 0, "size": 1}
    of_part = steps.Step(claim_mps.SERVE, claim_mps.LEAVE, ids.GpuUuid("GPU-1"), fields)
    assert claim_mps.step_instance(of_part) == mig.InstanceRef(
        ids.GpuUuid("GPU-1"), 19, mig.Placement(0, 1)
    )
    of_whole = dataclasses.replace(of_part, arguments={claim_mps.DEVICES: "GPU-1,GPU-2"})
    assert claim_mps.step_instance(of_whole) is None
    assert claim_mps.step_devices(of_whole) == ("GPU-1", "GPU-2")
