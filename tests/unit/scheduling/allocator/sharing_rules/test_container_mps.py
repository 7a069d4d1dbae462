from collections.abc import Sequence

import pytest

from driver import reasons
from driver.resources.dra import claims
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.allocation import Answer, counts, decide, devices
from tests.support.builders import objects, shared_claims

Reason = reasons.Reason
OWN = [shared_claims.mps()]
"""A claim's own daemon over its whole GPUs."""


def node(
    *, shares: int = 2, gpus: int = 2, taken: tuple[claims.Claim, ...] = ()
) -> cluster_state.ClusterState:
    share_devices = [
        objects.a_share_device(f"mps-{index}", shared_claims.MPS) for index in range(shares)
    ]
    share_devices += [objects.a_device(f"gpu-{index}") for index in range(gpus)]
    return snapshots.view(objects.a_slice("node-a", share_devices), taken=taken)


def share(name: str, count: int = 1) -> claims.Claim:
    return objects.claim(name, shared_claims.part(count=count))


def whole(name: str, count: int = 1, config: object = None) -> claims.Claim:
    return objects.claim(name, objects.a_request(count=count), config=config)


def in_containers(
    view: cluster_state.ClusterState, used: Sequence[tuple[str, ...]], *results: claims.Claim
) -> Answer:
    return decide(view, *results, containers=shared_claims.containers(*used))


def test_a_container_has_a_share_under_mps_and_no_gpu_beside_it() -> None:
    results = [share("a"), whole("b")]
    assert counts(in_containers(node(), [("a", "b")], *results))[Reason.CONTAINER_DAEMONS] == 2
    assert devices(in_containers(node(), [("a",), ("b",)], *results)) == ["mps-0", "gpu-0"]


def test_a_container_has_one_share_under_mps_only() -> None:
    results = [share("a"), share("b")]
    assert counts(in_containers(node(), [("a", "b")], *results))[Reason.CONTAINER_DAEMONS] >= 1
    assert devices(in_containers(node(), [("a",), ("b",)], *results)) == ["mps-0", "mps-0"]
    twice = share("a", 2)
    assert counts(in_containers(node(), [("a",)], twice))[Reason.CONTAINER_DAEMONS] >= 1


def test_a_container_has_all_gpus_of_its_claim_under_the_claims_own_daemon() -> None:
    assert devices(in_containers(node(), [("a",)], whole("a", 2, OWN))) == ["gpu-0", "gpu-1"]


def test_a_claims_own_daemon_admits_no_gpu_of_another_claim() -> None:
    results = [whole("a", config=OWN), whole("b")]
    assert counts(in_containers(node(), [("a", "b")], *results))[Reason.CONTAINER_DAEMONS] == 2
    both = [whole("a", config=OWN), whole("b", config=OWN)]
    assert counts(in_containers(node(), [("a", "b")], *both))[Reason.CONTAINER_DAEMONS] == 2
    assert devices(in_containers(node(), [("a",), ("b",)], *both)) == ["gpu-0", "gpu-1"]


def test_gpus_without_a_daemon_go_together() -> None:
    results = [whole("a"), whole("b")]
    assert devices(in_containers(node(), [("a", "b")], *results)) == ["gpu-0", "gpu-1"]


def test_a_container_that_names_a_request_has_only_that() -> None:
    claim = objects.claim("a", shared_claims.part("share"), objects.a_request("whole"))
    split = [("a/share",), ("a/whole",)]
    assert devices(in_containers(node(), split, claim)) == ["mps-0", "gpu-0"]
    assert counts(in_containers(node(), [("a",)], claim))[Reason.CONTAINER_DAEMONS] >= 1


def test_time_sliced_shares_have_no_daemon_and_go_with_all() -> None:
    view = snapshots.view(
        objects.a_slice("node-a", [objects.a_share_device("ts"), objects.a_device("gpu-0")])
    )
    assert devices(in_containers(view, [("a", "b")], share("a"), whole("b"))) == ["ts", "gpu-0"]


def test_another_device_is_sought_where_the_first_does_not_go_with_the_container() -> None:
    """Any GPU would do for b: it gets the one without a daemon."""
    results = [objects.a_share_device("ts"), objects.a_share_device("mps", shared_claims.MPS)]
    results += [objects.a_device("gpu-0")]
    view = snapshots.view(objects.a_slice("node-a", results))
    anything = objects.claim("b", objects.a_request(deviceClassName=snapshots.ANY))
    answer = in_containers(view, [("a", "b")], whole("a"), anything)
    assert devices(answer) == ["gpu-0", "ts"]


@pytest.mark.parametrize(
    ("device", "config", "goes"),
    [
        ({"device": "gpu-1"}, [], True),
        ({"device": "gpu-1"}, OWN, False),
        ({"device": "gpu-1", "adminAccess": True}, OWN, True),
        (objects.a_share("mps-0", memory="8Gi"), [], False),
        ({"device": "gone"}, OWN, True),
    ],
)
def test_devices_of_the_pods_allocated_claims_count_too(
    device: objects.Raw, config: list[objects.Raw], *, goes: bool
) -> None:
    status = objects.allocated("node-a", device)
    status["allocation"]["devices"]["config"] = [
        {"source": "FromClaim", **entry} for entry in config
    ]
    settled = objects.claim("settled", status=status)
    pod = objects.pod("pod", "settled", "a", containers=shared_claims.containers(("settled", "a")))
    workload = allocator_types.Workload(pod, (whole("a"),), allocated_claims=(settled,))
    answer = dra_allocator.allocate(node(taken=(settled,)), workload, snapshots.DECIDING)
    if goes:
        assert devices(answer) == ["gpu-0"]
    else:
        assert Reason.CONTAINER_DAEMONS in counts(answer)
