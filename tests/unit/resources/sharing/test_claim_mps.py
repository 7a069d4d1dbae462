import pytest

from driver import errors
from driver.api import v1alpha1
from driver.resources.sharing import claim_mps, multi_user

GIB = 1 << 30
GPUS = [
    claim_mps.Device(f"gpu-{index}", f"GPU-{index}", 80 * GIB, is_mig=False) for index in range(2)
]
MIG = claim_mps.Device("mig-0", "MIG-0", 10 * GIB, is_mig=True)
OTHER_MIG = claim_mps.Device("mig-1", "MIG-1", 10 * GIB, is_mig=True)
UNKNOWN = claim_mps.Device("gpu-9", "GPU-9", 0, is_mig=False)


def own(*devices: claim_mps.Device, **settings: object) -> claim_mps.ClaimMpsServer:
    mps = v1alpha1.Mps.model_validate(settings)
    mps_server = claim_mps.claim_mps_server([(device, mps) for device in devices])
    assert mps_server is not None
    return mps_server


def refused(*devices: claim_mps.Device, **settings: object) -> str:
    with pytest.raises(errors.BadInput) as caught:
        own(*devices, **settings)
    return str(caught.value)


def test_without_devices_there_is_no_daemon() -> None:
    assert claim_mps.claim_mps_server([]) is None


def test_devices_stand_in_the_order_of_their_uuids() -> None:
    mps_server = own(GPUS[1], GPUS[0])
    assert (mps_server.devices, mps_server.sizes) == (("GPU-0", "GPU-1"), (80 * GIB, 80 * GIB))
    assert mps_server.environment == {}


def test_a_limit_by_device_index_or_uuid_overrides_the_default_limit() -> None:
    each = {"1": "10Gi"}
    mps_server = own(
        *GPUS, pinnedMemory="4Gi", pinnedMemoryPerDevice=each, activeThreadPercentage=50
    )
    assert mps_server.limits == {0: 4 * GIB, 1: 10 * GIB}
    assert mps_server.environment == {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"}
    assert own(*GPUS, pinnedMemoryPerDevice={"GPU-1": "10Gi"}).limits == {1: 10 * GIB}


def test_clients_are_told_the_limit_of_a_device_that_is_the_only_one() -> None:
    limit = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
    assert own(GPUS[0], pinnedMemory="4Gi").environment == {limit: "0=4096M"}


def test_clients_of_several_devices_get_no_limit_variable() -> None:
    for settings in ({"pinnedMemory": "4Gi"}, {"pinnedMemoryPerDevice": {"1": "4Gi"}}):
        assert own(*GPUS, **settings).environment == {}


def test_limits_are_cut_off_to_whole_mebibytes() -> None:
    assert own(GPUS[0], pinnedMemory="2M").limits == {0: 1 << 20}


def test_a_limit_for_a_device_that_is_not_there_is_refused() -> None:
    assert "2 is no device of the claim" in refused(*GPUS, pinnedMemoryPerDevice={"2": "1Gi"})


def test_two_limits_for_one_device_are_refused() -> None:
    both = {"0": "1Gi", "GPU-0": "2Gi"}
    assert "0 and GPU-0 are one device" in refused(*GPUS, pinnedMemoryPerDevice=both)


@pytest.mark.parametrize("amount", ["0", "1Ki", "81Gi"])
def test_a_limit_of_nothing_or_of_more_than_there_is_is_refused(amount: str) -> None:
    assert "1Mi at least, 81920Mi at most" in refused(GPUS[0], pinnedMemory=amount)


def test_a_device_that_tells_no_memory_needs_a_limit() -> None:
    assert "GPU-9 does not tell its memory" in refused(UNKNOWN)
    assert own(UNKNOWN, pinnedMemory="500Gi").limits == {0: 500 * GIB}


def test_a_mig_device_is_alone_under_its_daemon() -> None:
    assert own(MIG).devices == ("MIG-0",)
    assert "a MIG device alone" in refused(MIG, OTHER_MIG)
    assert "a MIG device alone" in refused(GPUS[0], MIG)


def test_devices_of_one_daemon_have_the_same_settings() -> None:
    with pytest.raises(errors.BadInput, match="gpu-0 and gpu-1 are to have different settings"):
        claim_mps.claim_mps_server(
            [(GPUS[0], v1alpha1.Mps()), (GPUS[1], v1alpha1.Mps(multiUser=True))]
        )


def test_several_users_need_volta() -> None:
    old = claim_mps.Device(
        "old", "GPU-0", GIB, is_mig=False, server=multi_user.MpsServer(580, (6, 1))
    )
    assert "old has compute capability 6.1" in refused(old, multiUser=True)
    assert not own(old).multi_user
    assert own(*GPUS, multiUser=True).multi_user


def test_several_users_need_a_driver_whose_control_program_knows_the_mode() -> None:
    old = claim_mps.Device(
        "old", "GPU-0", GIB, is_mig=False, server=multi_user.MpsServer(550, (9, 0))
    )
    assert "old has driver 550; expected 580 at least" in refused(old, multiUser=True)
    assert not own(old).multi_user
    assert not own(*GPUS, multiUser=False).multi_user
    assert own(*GPUS).multi_user
