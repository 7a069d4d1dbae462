import gc

from driver import names, reasons
from driver.resources.dra import claims
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.sharing_rules import device_config, shared_settings
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.support import snapshots
from tests.support.allocation import NODE, counts, decide, devices, wants, workload
from tests.support.builders import objects, shared_claims


def shared(*sharing: str, taken: tuple[claims.Claim, ...] = ()) -> cluster_state.ClusterState:
    share_devices = [
        objects.a_share_device(f"share-{index}", name) for index, name in enumerate(sharing)
    ]
    return snapshots.view(objects.a_slice("node-a", share_devices), taken=taken)


def spot(view: snapshot.Snapshot) -> candidates.NodeDevice:
    return candidates.node_devices(view, view.nodes[NODE])[0]


def test_the_terms_of_a_share_are_those_of_its_allocation() -> None:
    held = shared_claims.holder("x", "share-0", shared_claims.turns("Long"), namespace="team-a")
    node_device = spot(shared(shared_claims.TURNS, taken=(held,)))
    terms = shared_settings.ShareTerms(names.DRIVER).get(node_device.holders[0], node_device.device)
    assert terms is not None
    assert (terms.sharing, terms.namespace) == (names.SHARING_TIME_SLICING, "team-a")
    assert (terms.interval, terms.memory_bytes) == ("Long", 8 << 30)


def test_terms_are_read_once_an_allocation() -> None:
    held = shared_claims.holder("x", "share-0")
    node_device = spot(shared(shared_claims.TURNS, taken=(held,)))
    share_terms = shared_settings.ShareTerms(names.DRIVER)
    first = share_terms.get(node_device.holders[0], node_device.device)
    assert share_terms.get(node_device.holders[0], node_device.device) is first


def test_a_claim_that_was_allocated_anew_has_new_terms() -> None:
    share_terms = shared_settings.ShareTerms(names.DRIVER)
    intervals = []
    for interval in ("Long", "Short"):
        held = shared_claims.holder("x", "share-0", shared_claims.turns(interval))
        node_device = spot(shared(shared_claims.TURNS, taken=(held,)))
        terms = share_terms.get(node_device.holders[0], node_device.device)
        intervals.append(terms.interval if terms else None)
    assert intervals == ["Long", "Short"]


def test_unreadable_configuration_has_no_terms() -> None:
    for config in (objects.a_config(shape="old"), shared_claims.mps()):
        held = shared_claims.holder("x", "share-0", config)
        node_device = spot(shared(shared_claims.TURNS, taken=(held,)))
        assert (
            shared_settings.ShareTerms(names.DRIVER).get(node_device.holders[0], node_device.device)
            is None
        )


def test_the_terms_of_a_share_are_forgotten_with_it() -> None:
    share_terms = shared_settings.ShareTerms(names.DRIVER)

    def allocations() -> int:
        gc.collect()
        return sum(type(obj) is claims.Allocation for obj in gc.get_objects())

    previous = allocations()
    for name in ("x", "y", "z"):
        node_device = spot(
            shared(shared_claims.TURNS, taken=(shared_claims.holder(name, "share-0"),))
        )
        assert share_terms.get(node_device.holders[0], node_device.device) is not None
        del node_device
    assert allocations() == previous


def two_claims(first: str, second: str) -> list[claims.Claim]:
    """Return the two claims of one pod, each with a time slice."""
    return [
        objects.claim(f"c-{index}", shared_claims.part(), config=[shared_claims.turns(interval)])
        for index, interval in enumerate((first, second))
    ]


def test_claims_of_one_pod_that_agree_have_one_gpu() -> None:
    answer = decide(shared(shared_claims.TURNS), *two_claims("Long", "Long"))
    assert devices(answer) == ["share-0", "share-0"]


def test_claims_of_one_pod_that_do_not_agree_have_two_gpus() -> None:
    answer = decide(shared(shared_claims.TURNS, shared_claims.TURNS), *two_claims("Long", "Short"))
    assert devices(answer) == ["share-0", "share-1"]


def test_with_a_single_gpu_the_settings_conflict_is_reported() -> None:
    answer = decide(shared(shared_claims.TURNS), *two_claims("Long", "Short"))
    assert counts(answer) == {reasons.Reason.SHARING_DISAGREES: 1}


def test_without_shared_devices_or_a_second_request_nothing_is_kept() -> None:
    claim = objects.claim("c", shared_claims.part())
    for view, results in (
        (shared(shared_claims.TURNS), [claim]),
        (snapshots.view(objects.a_slice("node-a", 2)), [claim, objects.claim("d")]),
    ):
        read = device_config.DeviceConfigs(view, workload(*results))
        spots = candidates.node_devices(view, view.nodes[NODE])
        assert [*shared_settings.constraints(wants(view, *results), spots, read)] == []
