import pytest

from driver import ids, names, reasons
from driver.scheduling.allocator import candidates
from driver.scheduling.snapshot import snapshot
from tests.support import snapshots
from tests.support.allocation import NODE, OURS, offered, wants
from tests.support.builders import objects

Reason = reasons.Reason
SHARE = objects.a_share_device("ts-0")
FAILING = 'device.attributes["gpu.ration.dev"].nope == "x"'


def offer_of(
    view: snapshot.Snapshot, *selectors: str, judge: candidates.DeviceFilter = OURS, **body: object
) -> candidates.RequestCandidates:
    request = objects.a_request("gpu", 1, *selectors, **{"deviceClassName": snapshots.ANY, **body})
    (want,) = wants(view, objects.claim("c", request))
    return offered(view, want.subrequests[0], judge)


def devices(view: snapshot.Snapshot, request_candidates: candidates.RequestCandidates) -> list[str]:
    spots = candidates.node_devices(view, view.nodes[NODE])
    return [spots[index].id.device for index in request_candidates.indexes]


def only(device: objects.Raw, *taken: objects.Raw | str) -> snapshot.Snapshot:
    """A node of one device that claims have, or shares of it."""
    held = [snapshots.holding(f"x-{index}", "node-a", entry) for index, entry in enumerate(taken)]
    return snapshots.view(objects.a_slice("node-a", [device]), taken=held)


def test_devices_stand_in_the_order_of_pools_slices_and_devices() -> None:
    view = snapshots.view(
        objects.a_slice("node-a", [objects.a_device("d")], resourceSliceCount=2, part=1),
        objects.a_slice(
            "node-a", [objects.a_device("z"), objects.a_device("b")], resourceSliceCount=2
        ),
        objects.a_far_slice([objects.a_device("a")], pool="a-fabric"),
    )
    spots = candidates.node_devices(view, view.nodes[NODE])
    assert [spot.id.device for spot in spots] == ["a", "z", "b", "d"]


def test_a_device_in_use_is_not_offered_but_to_administrators() -> None:
    view = only(objects.a_device("gpu-0"), "gpu-0")
    assert offer_of(view).rejection_counts == ((Reason.DEVICE_TAKEN, 1),)
    assert offer_of(view).indexes == []
    assert offer_of(view, adminAccess=True).indexes == [0]


def test_a_device_on_which_a_selector_fails_is_for_the_search_to_meet() -> None:
    request_candidates = offer_of(only(objects.a_device("gpu-0")), FAILING)
    assert request_candidates.rejection_counts == ((Reason.SELECTOR_FAILED, 1),)
    assert [*request_candidates.selector_errors] == request_candidates.indexes == [0]


def test_a_device_in_use_fails_nobody() -> None:
    request_candidates = offer_of(only(objects.a_device("gpu-0"), "gpu-0"), FAILING)
    assert request_candidates.rejection_counts == ((Reason.SELECTOR_FAILED, 1),)
    assert request_candidates.selector_errors == {}


@pytest.mark.parametrize(
    ("effect", "kept_away"), [("NoSchedule", True), ("NoExecute", True), ("None", False)]
)
def test_a_taint_keeps_requests_away_by_its_effect(effect: str, *, kept_away: bool) -> None:
    view = only(objects.a_device("gpu-0", taints=[{"key": "sick", "value": "y", "effect": effect}]))
    assert offer_of(view).rejections[Reason.DEVICE_TAINTED] == kept_away
    for tolerant in (
        {"key": "sick", "value": "y"},
        {"key": "sick", "operator": "Exists"},
        {"operator": "Exists", "effect": effect},
    ):
        assert offer_of(view, tolerations=[tolerant]).indexes == [0]
    for other in ({"key": "sick", "value": "n"}, {"key": "other", "operator": "Exists"}):
        assert offer_of(view, tolerations=[other]).rejections[Reason.DEVICE_TAINTED] == kept_away


def test_a_cordon_is_told_as_one_unless_something_else_is_wrong_too() -> None:
    cordoned = {"key": "ration.dev/cordoned", "effect": "NoSchedule"}
    view = only(objects.a_device("gpu-0", taints=[objects.ALLOCATOR_TAINT, cordoned]))
    assert offer_of(view).rejections == {Reason.DEVICE_CORDONED: 1}
    sick = {"key": "ration.dev/xid", "value": "79", "effect": "NoSchedule"}
    view = only(objects.a_device("gpu-0", taints=[objects.ALLOCATOR_TAINT, cordoned, sick]))
    assert offer_of(view).rejections == {Reason.DEVICE_TAINTED: 1}


def test_the_allocators_taint_is_nothing_to_the_allocator_that_it_names() -> None:
    view = only(objects.a_device("gpu-0"))
    assert offer_of(view).indexes == [0]
    assert offer_of(view, judge=candidates.DeviceFilter()).rejections == {Reason.DEVICE_TAINTED: 1}


def test_a_device_or_slice_that_says_more_than_is_weighed_is_left_alone() -> None:
    assert offer_of(
        only(objects.a_device("gpu-0", nodeAllocatable={"cpu": "1"}))
    ).rejection_counts == ((Reason.DEVICE_BEYOND, 1),)
    raw = objects.a_slice("node-a", 2)
    raw["spec"]["mixins"] = [{"name": "x"}]
    assert offer_of(snapshots.view(raw)).rejection_counts == ((Reason.DEVICE_BEYOND, 2),)


def test_more_reasons_may_be_given_by_the_driver() -> None:
    judge = candidates.DeviceFilter(OURS.ignored_taints, lambda _spot, _way: Reason.DEVICE_NOT_OURS)
    assert offer_of(only(objects.a_device("gpu-0")), judge=judge).rejection_counts == (
        (Reason.DEVICE_NOT_OURS, 1),
    )


def test_a_share_takes_the_default_or_what_is_asked_rounded_up() -> None:
    default = offer_of(only(SHARE)).consumption[0]
    assert {name: quantity.text for name, quantity in default.items()} == {"memory": "8Gi"}
    asking = {"requests": {"memory": "1500Mi"}}
    rounded = offer_of(only(SHARE), capacity=asking).consumption[0]
    assert {name: quantity.text for name, quantity in rounded.items()} == {"memory": "2Gi"}


def test_amounts_used_by_others_of_a_shared_device_are_unavailable() -> None:
    view = only(
        SHARE, objects.a_share("ts-0", 1, memory="30Gi"), objects.a_share("ts-0", 2, memory="30Gi")
    )
    assert offer_of(view, capacity={"requests": {"memory": "20Gi"}}).indexes == [0]
    short = offer_of(view, capacity={"requests": {"memory": "21Gi"}})
    assert short.rejection_counts == ((Reason.CAPACITY_SHORT, 1),)


def test_a_shared_device_that_a_claim_has_for_itself_is_not_offered() -> None:
    assert offer_of(only(SHARE, "ts-0")).rejection_counts == ((Reason.DEVICE_TAKEN, 1),)


def test_a_capacity_that_a_device_has_not_is_short() -> None:
    asking = {"requests": {"bandwidth": "1"}}
    for device in (SHARE, objects.a_device("gpu-0")):
        assert offer_of(only(device), capacity=asking).rejection_counts == (
            (Reason.CAPACITY_SHORT, 1),
        )


def test_an_exclusive_device_consumes_no_capacity() -> None:
    request_candidates = offer_of(
        only(objects.a_device("gpu-0")), capacity={"requests": {"memory": "1Gi"}}
    )
    assert request_candidates.indexes == [0]
    assert request_candidates.consumption == {0: {}}


def test_all_is_every_device_that_matches() -> None:
    zero = f'device.attributes["{names.DRIVER}"].numa == 0'
    look = [objects.with_values(objects.a_device(f"gpu-{n}"), numa=n % 2) for n in range(4)]
    view = snapshots.view(objects.a_slice("node-a", look))
    request_candidates = offer_of(view, zero, allocationMode="All")
    assert devices(view, request_candidates) == ["gpu-0", "gpu-2"]
    assert (request_candidates.count, request_candidates.unavailable, request_candidates.error) == (
        2,
        set(),
        "",
    )


def test_all_of_none_needs_one() -> None:
    assert offer_of(only(objects.a_device("gpu-0")), "false", allocationMode="All").count == 1


def test_all_is_barred_by_one_that_cannot_be_had() -> None:
    view = snapshots.fleet({"node-a": 3}, snapshots.holding("x", "node-a", "gpu-1"))
    request_candidates = candidates.find_candidates(
        wants(view, objects.claim("c", objects.a_request(allocationMode="All")))[0].subrequests[0],
        candidates.node_devices(view, view.nodes[NODE]),
        view.reachable_pools(NODE),
        OURS,
    )
    assert (request_candidates.indexes, request_candidates.unavailable) == ([0, 1, 2], {1})
    assert request_candidates.rejection_counts == ((Reason.DEVICE_TAKEN, 1),)


def test_all_leaves_out_a_device_that_could_never_have_what_is_asked() -> None:
    """Capacity is part of what matches; what others have of it is not."""
    shares = [SHARE, objects.a_device("gpu-0", capacity={"memory": {"value": "10Gi"}})]
    taken = snapshots.holding("x", "node-a", objects.a_share("ts-0", 1, memory="70Gi"))
    view = snapshots.view(objects.a_slice("node-a", shares), taken=[taken])
    asking = {"requests": {"memory": "20Gi"}}
    request_candidates = offer_of(view, allocationMode="All", capacity=asking)
    assert devices(view, request_candidates) == ["ts-0"]
    assert request_candidates.unavailable == set()


def test_an_incomplete_pool_breaks_all_and_is_no_more_than_a_loss_to_others() -> None:
    view = snapshots.view(
        objects.a_slice("node-a", 1, resourceSliceCount=2),
        objects.a_far_slice([objects.a_device("far-0")]),
    )
    assert offer_of(view).rejection_counts == ((Reason.POOL_INCOMPLETE, 1),)
    assert devices(view, offer_of(view)) == ["far-0"]
    assert offer_of(view, allocationMode="All").error == "pool node-a shows 1 of 2 slices"


def test_a_failing_selector_breaks_all() -> None:
    request_candidates = offer_of(only(objects.a_device("gpu-0")), FAILING, allocationMode="All")
    assert request_candidates.error.startswith("a selector fails on gpu-0: ")


def test_a_share_is_held_by_name_of_the_capacity() -> None:
    view = only(SHARE, objects.a_share("ts-0", 1, memory="30Gi"))
    (spot,) = candidates.node_devices(view, view.nodes[ids.NodeName("node-a")])
    assert candidates.held_capacity(spot, "memory") == 30 * 2**30 * 10**9
    assert candidates.held_capacity(spot, "compute") == 0
