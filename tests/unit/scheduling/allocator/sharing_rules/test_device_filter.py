import pytest

from driver import reasons
from driver.resources.dra import claims
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.allocation import counts, decide, devices, refusal
from tests.support.builders import objects, shared_claims

Reason = reasons.Reason


def node(*results: objects.Raw, taken: tuple[claims.Claim, ...] = ()) -> cluster_state.ClusterState:
    """node-a with these devices, and a class that lets namespaces meet."""
    opened = objects.device_class("open", "true", config=[shared_claims.OPEN])
    return snapshots.view(
        objects.a_slice("node-a", [*results]), taken=taken, found_classes=[opened]
    )


def shared(sharing: str = shared_claims.TURNS, *taken: claims.Claim) -> cluster_state.ClusterState:
    return node(objects.a_share_device("share", sharing), taken=taken)


def asking(*configs: objects.Raw, device_class: str = snapshots.ANY) -> claims.Claim:
    return objects.claim("mine", shared_claims.part(device_class=device_class), config=configs)


def test_an_untainted_device_of_another_driver_is_not_ours() -> None:
    view = snapshots.view(
        objects.a_slice("node-a", [objects.a_device("gpu-0")]),
        objects.a_slice("node-a", [objects.a_device("nic-0", taints=[])], "nic.example.com"),
    )
    claim = objects.claim("c", objects.a_request(count=2, deviceClassName=snapshots.ANY))
    assert counts(decide(view, claim)) == {Reason.DEVICE_NOT_MANAGED: 1}


def test_a_device_that_is_handed_to_another_allocator_is_not_ours() -> None:
    taint = {**objects.ALLOCATOR_TAINT, "value": "scheduler"}
    view = node(objects.a_device("gpu-0", taints=[taint]))
    assert counts(decide(view, objects.claim())) == {Reason.DEVICE_NOT_MANAGED: 1}


def test_configuration_of_another_kind_than_the_devices_is_not_allocated() -> None:
    config = [objects.a_config("MigDeviceConfig", "gpu")]
    view = node(objects.a_device("gpu-0"))
    assert counts(decide(view, objects.claim("c", config=config))) == {Reason.CONFIG_INVALID: 1}
    for_all = [objects.a_config("MigDeviceConfig")]
    assert devices(decide(view, objects.claim("c", config=for_all))) == ["gpu-0"]


def test_a_share_is_not_given_with_configuration_of_another_way_of_sharing() -> None:
    claim = asking(shared_claims.turns("Long"))
    assert devices(decide(shared(), claim)) == ["share"]
    assert counts(decide(shared(shared_claims.MPS), claim)) == {Reason.CONFIG_INVALID: 1}


def test_a_limit_of_a_claims_own_daemon_is_not_for_a_share() -> None:
    claim = asking(shared_claims.mps(pinnedMemory="4Gi"))
    assert counts(decide(shared(shared_claims.MPS), claim)) == {Reason.CONFIG_INVALID: 1}


@pytest.mark.parametrize(
    ("mine", "theirs", "agree"),
    [("Long", "Long", True), ("Long", "Short", False), (None, "Default", True)],
)
def test_claims_that_share_a_gpu_agree_on_its_time_slice(
    mine: str | None, theirs: str, *, agree: bool
) -> None:
    view = shared(
        shared_claims.TURNS, shared_claims.holder("x", "share", shared_claims.turns(theirs))
    )
    claim = asking(*([shared_claims.turns(mine)] if mine else []))
    if agree:
        assert devices(decide(view, claim)) == ["share"]
    else:
        assert counts(decide(view, claim)) == {Reason.SHARING_CONFLICT: 1}


def test_claims_that_share_a_gpu_agree_on_whose_processes_its_daemon_serves() -> None:
    view = shared(
        shared_claims.MPS, shared_claims.holder("x", "share", shared_claims.mps(multiUser=True))
    )
    apart = asking(shared_claims.mps(multiUser=False))
    assert counts(decide(view, apart)) == {Reason.SHARING_CONFLICT: 1}
    assert devices(decide(view, asking(shared_claims.mps(multiUser=True)))) == ["share"]
    assert devices(decide(view, asking())) == ["share"]


def test_several_users_at_once_are_not_given_a_gpu_whose_driver_serves_one() -> None:
    def of_driver(version: str, *, shared: bool) -> cluster_state.ClusterState:
        share_device = (
            objects.a_share_device("a", shared_claims.MPS) if shared else objects.a_device("a")
        )
        share_device["attributes"]["driverVersion"] = {"version": version}
        return node(share_device)

    config = [shared_claims.mps(multiUser=True)]
    for shared_face in (True, False):
        claim = asking(*config) if shared_face else objects.claim("c", config=config)
        assert devices(decide(of_driver("580.65.6", shared=shared_face), claim)) == ["a"]
        answer = decide(of_driver("550.54.14", shared=shared_face), claim)
        reported = counts(answer) if shared_face else {refusal(answer).node_reason: 1}
        assert reported == {Reason.CONFIG_INVALID: 1}


def test_a_gpu_that_disagrees_is_passed_over_for_one_that_does_not() -> None:
    held = shared_claims.holder("x", "one", shared_claims.turns("Long"))
    view = node(objects.a_share_device("one"), objects.a_share_device("two"), taken=(held,))
    assert devices(decide(view, asking())) == ["two"]
    assert devices(decide(view, asking(shared_claims.turns("Long")))) == ["one"]


def test_claims_of_two_namespaces_meet_only_where_both_classes_let_them() -> None:
    closed = shared_claims.holder("x", "share", namespace="team-b")
    opened = shared_claims.holder(
        "x", "share", shared_claims.OPEN, namespace="team-b", from_class=True
    )
    view = shared(shared_claims.TURNS, closed)
    assert counts(decide(view, asking(device_class="open"))) == {Reason.CROSS_NAMESPACE_SHARING: 1}
    view = shared(shared_claims.TURNS, opened)
    assert counts(decide(view, asking())) == {Reason.CROSS_NAMESPACE_SHARING: 1}
    assert devices(decide(view, asking(device_class="open"))) == ["share"]


def test_a_neighbour_whose_configuration_cannot_be_read_any_more_keeps_nobody_away() -> None:
    view = shared(
        shared_claims.TURNS, shared_claims.holder("x", "share", objects.a_config(shape="old"))
    )
    assert devices(decide(view, asking())) == ["share"]


def test_the_order_in_which_neighbours_came_changes_no_reason() -> None:
    """One disagrees on the time slice, the other is of another namespace."""
    holder = shared_claims.holder("x", "share", shared_claims.OPEN, from_class=True)
    two = shared_claims.holder(
        "y", "share", shared_claims.OPEN, namespace="team-b", from_class=True
    )
    claim = asking(shared_claims.turns("Long"))
    for order in ((holder, two), (two, holder)):
        answer = decide(shared(shared_claims.TURNS, *order), claim)
        assert counts(answer) == {Reason.SHARING_CONFLICT: 1}


def test_a_limit_beyond_a_gpus_memory_is_refused_with_its_words() -> None:
    config = [shared_claims.mps(pinnedMemory="100Gi")]
    node_rejection = refusal(
        decide(node(objects.a_device("gpu-0")), objects.claim("c", config=config))
    )
    assert node_rejection.node_reason is Reason.CONFIG_INVALID
    assert (
        node_rejection.detail
        == "MPS memory limit of GPU-gpu-0: is 100Gi; expected 1Mi at least, 81920Mi at most"
    )


def test_settings_of_one_daemon_that_differ_are_refused_with_their_words() -> None:
    config = [shared_claims.mps("a"), shared_claims.mps("b", multiUser=True)]
    claim = objects.claim("c", objects.a_request("a"), objects.a_request("b"), config=config)
    view = node(objects.a_device("gpu-0"), objects.a_device("gpu-1"))
    node_rejection = refusal(decide(view, claim))
    assert node_rejection.node_reason is Reason.CONFIG_INVALID
    assert "gpu-0 and gpu-1 are to have different settings" in node_rejection.detail


def test_an_old_gpu_has_no_daemon_for_several_users() -> None:
    def of_capability(version: str) -> cluster_state.ClusterState:
        device = objects.a_device("gpu-0")
        device["attributes"]["cudaComputeCapability"] = {"version": version}
        return node(device)

    claim = objects.claim("c", config=[shared_claims.mps(multiUser=True)])
    assert devices(decide(of_capability("7.0.0"), claim)) == ["gpu-0"]
    node_rejection = refusal(decide(of_capability("6.1.0"), claim))
    assert node_rejection.node_reason is Reason.CONFIG_INVALID
    assert "gpu-0 has compute capability 6.1" in node_rejection.detail


@pytest.mark.parametrize(
    ("isolation", "names"),
    [("hardware", ["mig"]), ("limits", ["mig", "mps"]), ("none", ["mig", "mps", "turns"])],
)
def test_a_part_by_need_is_isolated_as_much_as_is_asked(isolation: str, names: list[str]) -> None:
    view = node(
        objects.with_values(objects.a_device("mig"), type="mig"),
        objects.a_share_device("mps", shared_claims.MPS),
        objects.a_share_device("turns", shared_claims.TURNS),
    )
    config = [objects.a_config("SliceConfig", isolation=isolation)]
    part = objects.a_request("part", len(names), deviceClassName=snapshots.ANY)
    assert sorted(devices(decide(view, objects.claim("c", part, config=config)))) == names
    more = objects.a_request("part", len(names) + 1, deviceClassName=snapshots.ANY)
    answer = decide(view, objects.claim("c", more, config=config))
    assert counts(answer).get(Reason.ISOLATION_TOO_WEAK, 0) == 3 - len(names)


def test_namespaces_meet_on_parts_by_need_where_both_classes_let_them() -> None:
    """The need of a claim does not undo what its class says of shares."""
    need = objects.a_config("SliceConfig", isolation="none")
    held = shared_claims.holder(
        "x", "share", shared_claims.OPEN, namespace="team-b", from_class=True
    )
    view = shared(shared_claims.TURNS, held)
    assert devices(decide(view, asking(need, device_class="open"))) == ["share"]
    assert counts(decide(view, asking(need))) == {Reason.CROSS_NAMESPACE_SHARING: 1}


def test_a_class_by_need_may_set_up_shares_and_have_parts_all_the_same() -> None:
    need = objects.a_config("SliceConfig")
    by_need = objects.device_class("by-need", "true", config=[need, shared_claims.OPEN])
    part = objects.with_values(objects.a_device("mig"), type="mig")
    view = snapshots.view(objects.a_slice("node-a", [part]), found_classes=[by_need])
    request = objects.a_request("part", deviceClassName="by-need")
    assert devices(decide(view, objects.claim("c", request))) == ["mig"]


def test_a_whole_gpu_is_not_given_to_a_request_for_a_part_by_need() -> None:
    claim = objects.claim("c", config=[objects.a_config("SliceConfig", "gpu")])
    assert counts(decide(node(objects.a_device("gpu-0")), claim)) == {Reason.CONFIG_INVALID: 1}
