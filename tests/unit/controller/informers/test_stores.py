"""Tests of who uses a claim, by the controller's caches."""

from driver import errors, ids, names
from driver.controller.informers import stores
from driver.resources.core import pods
from driver.resources.dra import claims, slices, taint_rules
from driver.scheduling.snapshot import allocation_hold
from tests.support.builders import objects

GROUP = claims.Consumer(names.SCHEDULING_GROUP, "podgroups", "train", "group-uid")


def refuse(key: ids.Key, error: errors.BadInput) -> None:
    raise AssertionError(f"{key}: {error}")


def caches(*raw_pods: objects.Raw) -> stores.Stores:
    result = stores.empty()
    result.pods.set_parser(pods.parse, refuse)
    result.pods.subscribe(lambda _key, old, new: result.pods_by_claim.update(old, new))
    for raw in raw_pods:
        result.pods.apply(raw)
    return result


def grouped(name: str, group: str = "train", **more: object) -> objects.Raw:
    return objects.a_pod(name, "shared", schedulingGroup={"podGroupName": group}, **more)


def users(every: stores.Stores, *entries: claims.Consumer) -> list[str]:
    rendered = [claims.render_consumer(entry) for entry in entries]
    status = objects.allocated("node-a", "gpu-0", reserved=rendered)
    claim = objects.claim("shared", status=status)
    return [pod.name for pod in stores.consumer_pods(every, claim)]


def test_a_claim_of_a_pod_group_is_used_by_its_pods_that_name_it() -> None:
    every = caches(
        grouped("a"),
        grouped("b"),
        grouped("stranger", "other"),
        grouped("done", status={"phase": "Succeeded"}),
        objects.a_pod("alone", "shared"),
        objects.a_pod("elsewhere", "own", schedulingGroup={"podGroupName": "train"}),
    )
    assert users(every, GROUP) == ["a", "b"]


def test_a_pod_with_a_hold_and_its_group_s_entry_counts_once() -> None:
    every = caches(grouped("a"), grouped("b"))
    hold = allocation_hold.pod_hold(pods.parse(grouped("b")))
    assert users(every, hold, GROUP) == ["b", "a"]
    assert users(every, hold) == ["b"]


def slice_names(caches: stores.NodeSlices, node: str) -> list[str]:
    return [entry.name for entry in caches.get(ids.NodeName(node))]


def test_the_slices_of_a_node_are_its_own_of_the_driver_and_follow_changes() -> None:
    every = stores.empty()
    every.slices.set_parser(slices.parse, refuse)
    grouped_slices = stores.NodeSlices(every, names.DRIVER)
    assert slice_names(grouped_slices, "node-a") == []
    every.slices.apply(objects.a_slice("node-a"))
    every.slices.apply(objects.a_slice("node-b"))
    every.slices.apply(objects.a_slice("node-a", driver="nic.example.com"))
    assert slice_names(grouped_slices, "node-a") == [f"node-a-{names.DRIVER}-00000"]
    gone = objects.a_slice("node-a")
    gone["metadata"]["resourceVersion"] = "1000000"
    every.slices.apply(gone, deleted=True)
    assert slice_names(grouped_slices, "node-a") == []


def test_the_slices_of_a_node_have_the_taints_of_rules() -> None:
    every = stores.empty()
    every.slices.set_parser(slices.parse, refuse)
    every.taint_rules.set_parser(taint_rules.parse, refuse)
    every.slices.apply(objects.a_slice("node-a", 1))
    grouped_slices = stores.NodeSlices(every, names.DRIVER)
    spec = {
        "deviceSelector": {"driver": names.DRIVER},
        "taint": {"key": "maintenance", "effect": "NoSchedule"},
    }
    every.taint_rules.apply({"metadata": objects.meta("rule", None), "spec": spec})
    (entry,) = grouped_slices.get(ids.NodeName("node-a"))
    assert "maintenance" in {taint.key for taint in entry.devices[0].taints}
