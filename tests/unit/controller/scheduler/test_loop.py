"""The decider over stores, with writes done at once: what it writes, tells and remembers."""

from typing import Any

import pytest

from driver import errors, ids, names
from driver.controller.commit import write_pool
from driver.resources.dra import claims
from driver.scheduling.explain import explainer
from driver.scheduling.lifecycle import released_claims
from driver.scheduling.snapshot import allocation_hold
from tests.fakes.deciding import World
from tests.support.builders import objects


class Always(dict[str, errors.ApiError]):
    """Refuses every time, not once."""

    def pop(self, key: str, default: Any = None) -> Any:
        return self.get(key, default)


def test_a_claim_is_written_finalizer_first_then_one_status_patch_with_the_hold() -> None:
    world = World()
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    assert world.server.written == [("claim", "", "STRATEGIC"), ("claim", "status", "STRATEGIC")]
    claim = world.claim()
    assert claim.finalizers == (names.CLAIM_FINALIZER,)
    assert claim.allocation is not None
    assert claim.allocation.stamped
    assert claim.consumers == (allocation_hold.pod_hold(objects.pod()),)


def test_a_claim_without_a_possible_patch_gets_its_finalizer_byte_for_byte() -> None:
    world = World()
    world.server.unpatchable.add("claim")
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    assert world.server.written == [("claim", "", "PUT"), ("claim", "status", "STRATEGIC")]
    assert world.claim().finalizers == (names.CLAIM_FINALIZER,)
    assert world.claim().allocation is not None


def test_pod_and_claim_are_told_what_was_allocated_and_why() -> None:
    world = World()
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    assert {(kind, reason) for kind, reason, _ in world.told.lines} == {
        ("Pod", "Allocated"),
        ("ResourceClaim", "Allocated"),
    }
    assert world.told.lines[0][2].startswith("Allocated gpu-0 on node-0: the only node that fits")


def test_the_whole_of_why_is_kept_as_long_as_the_pod_is_there() -> None:
    world = World(1)
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle()
    world.add(objects.a_claim("two"), objects.a_pod("two", "two"))
    world.settle()
    placed = world.decider.explain_queries.last_explanation(ids.Key("default/one"))
    refused = world.decider.explain_queries.last_explanation(ids.Key("default/two"))
    assert placed is not None
    assert refused is not None
    assert [one["node"] for one in placed.document()["considered"]] == ["node-0"]
    assert refused.document()["refusals"][0]["nodes"] == ["node-0"]
    assert refused.document()["nearest"]["leaving"] == ["default/one"]
    world.remove_pod("two")
    world.settle()
    assert world.decider.explain_queries.last_explanation(ids.Key("default/two")) is None


def test_two_pods_get_different_gpus_although_the_watch_is_behind() -> None:
    world = World()
    for name in ("one", "two"):
        world.add(objects.a_claim(name), objects.a_pod(name, name))
    world.settle()
    assert {world.device("one"), world.device("two")} == {"gpu-0", "gpu-1"}


def test_an_unschedulable_pod_is_reported_once_and_placed_when_a_claim_is_freed() -> None:
    world = World(1)
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle()
    world.add(objects.a_claim("two"), objects.a_pod("two", "two"))
    world.settle()
    world.settle()
    no_fits = [line for line in world.told.lines if line[1] == "NoFit"]
    assert [kind for kind, _, _ in no_fits] == ["Pod", "ResourceClaim"]
    assert "node-0: 0 of 1 devices fit, 1 lacking (1 DeviceInUse)" in no_fits[0][2]
    world.stores.claims.apply(world._newer(objects.a_claim("one")), deleted=True)
    world.settle()
    assert world.device("two") == "gpu-0"


def test_an_unschedulable_pod_names_its_blocker() -> None:
    world = World(1)
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle()
    world.add(objects.a_claim("two"), objects.a_pod("two", "two"))
    world.settle()
    told = [line[2] for line in world.told.lines if line[1] == "NoFit"]
    assert told[0].endswith(
        ". Needs 1 GPU of one node; best is node-0: 0 free; freeing pod default/one would suffice"
    )


def test_a_postponed_explanation_is_reported_later_and_once() -> None:
    world = World(1)
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(explainer.FitExplainer, "can_explain", lambda *_: False)
        world.add(objects.a_claim("two"), objects.a_pod("two", "two"))
        world.settle()
    for _ in range(2):
        world.items.add(write_pool.WorkItem("pod", ids.Key("default/two")))
        world.settle()
    told = [line[2] for line in world.told.lines if line[:2] == ("Pod", "NoFit")]
    assert ["freeing pod" in one for one in told] == [False, True]


def test_the_higher_priority_goes_first() -> None:
    world = World(1)
    for name, priority in (("low", 1), ("high", 10)):
        world.add(objects.a_claim(name), objects.a_pod(name, name, priority=priority))
    world.settle()
    assert (world.device("high"), world.device("low")) == ("gpu-0", None)


def test_both_claims_of_a_pod_are_written_or_none() -> None:
    world = World(2)
    world.server.refuse["two"] = errors.Forbidden(403, "Forbidden", "no")
    world.add(objects.a_claim("one"), objects.a_claim("two"), objects.a_pod("pod", "one", "two"))
    world.settle(0.0)
    assert ("one", "status", "MERGE") in world.server.written
    world.settle(5.0)
    assert {world.device("one"), world.device("two")} == {"gpu-0", "gpu-1"}


def test_a_claim_that_a_pod_has_under_two_names_is_allocated_once() -> None:
    world = World(2)
    world.add(objects.a_claim("one"), objects.a_pod("pod", "one", "one"))
    world.settle(0.0)
    assert [entry for entry in world.server.written if entry[1] == "status"] == [
        ("one", "status", "STRATEGIC")
    ]
    world.remove_pod("pod")
    world.settle(0.0)


def test_a_write_that_failed_for_long_succeeds_ten_seconds_after_the_recovery() -> None:
    world = World(1)
    world.server.refuse = Always({"claim": errors.Forbidden(403, "Forbidden", "no")})
    world.add(objects.a_claim(), objects.a_pod())
    for _ in range(20):
        world.settle(60)
    world.server.refuse = {}
    world.settle(10)
    assert world.node_of() == "node-0"


def test_a_dead_leaders_half_decision_is_completed_on_the_same_node() -> None:
    world = World(1, 2)
    pod = objects.pod("pod", "one", "two")
    entries = [
        claims.render_consumer(e)
        for e in (allocation_hold.pod_entry(pod), allocation_hold.pod_hold(pod))
    ]
    status = objects.allocated("node-1", "gpu-0", reserved=entries)
    world.add(objects.a_claim("one", status=status), objects.a_claim("two"))
    world.add(objects.a_pod("pod", "one", "two"))
    world.settle()
    assert world.device("two") == "gpu-1"


def test_a_half_decision_that_cannot_be_completed_is_freed_and_decided_anew() -> None:
    world = World(1, 2)
    pod = objects.pod("pod", "one", "two")
    entries = [
        claims.render_consumer(e)
        for e in (allocation_hold.pod_entry(pod), allocation_hold.pod_hold(pod))
    ]
    status = objects.allocated("node-0", "gpu-0", reserved=entries)
    world.add(objects.a_claim("one", status=status), objects.a_claim("two"))
    world.add(objects.a_pod("pod", "one", "two"))
    world.settle()
    world.settle(released_claims.SETTLE_S)
    nodes_now = {world.claim(name).allocation.selector for name in ("one", "two")}  # type: ignore[union-attr]
    assert nodes_now == {claims.parse(_on("node-1")).allocation.selector}  # type: ignore[union-attr]


def _on(node: str) -> dict[str, Any]:
    return objects.a_claim(status=objects.allocated(node, "gpu-0"))


def test_the_hold_goes_when_the_pod_is_bound() -> None:
    world = World()
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    world.scheduled()
    world.settle()
    assert world.claim().consumers == (allocation_hold.pod_entry(objects.pod()),)


def test_the_hold_of_a_bound_pod_stays_until_the_pod_has_reserved_the_claim() -> None:
    world = World()
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    world.add(objects.a_pod(nodeName="node-0"))
    world.settle(60)
    assert world.device() == "gpu-0"
    assert world.claim().consumers == (allocation_hold.pod_hold(objects.pod()),)


def test_a_refused_pod_frees_its_gpu_and_is_placed_elsewhere_with_an_event() -> None:
    world = World(1, 1)
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    assert world.device() == "gpu-0"
    world.add(objects.a_pod(status=objects.refused("0/2 nodes are available: mystery")))
    world.settle()
    world.settle(40)
    world.settle(released_claims.SETTLE_S)
    cleared = [message for _, reason, message in world.told.lines if reason == "AllocationCleared"]
    assert '"0/2 nodes are available: mystery"' in cleared[0]
    allocation = world.claim().allocation
    assert allocation is not None
    assert allocation.results[0].device.pool == "node-1"


def test_a_claim_with_the_finalizer_of_admission_is_allocated_by_one_write() -> None:
    world = World()
    claim = objects.a_claim()
    claim["metadata"]["finalizers"] = [names.CLAIM_FINALIZER]
    world.add(claim, objects.a_pod())
    world.settle()
    assert world.device() == "gpu-0"
    assert world.server.written == [("claim", "status", "STRATEGIC")]


def test_a_new_leader_knows_of_its_predecessors_release() -> None:
    world = World(1, 1)
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    world.add(objects.a_pod(status=objects.refused("0/2 nodes are available: mystery")))
    world.settle()
    world.settle(40)
    assert world.claim().released
    world.decider = world.make_decider()
    world.settle()
    assert world.claim().allocation is None
    world.settle(released_claims.SETTLE_S)
    assert world.claim().allocation is not None


def test_a_claim_of_which_no_patch_can_be_made_is_released() -> None:
    world = World(1, 1)
    world.server.unpatchable.add("claim")
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    world.add(objects.a_pod(status=objects.refused("0/2 nodes are available: mystery")))
    world.settle()
    world.settle(40)
    assert world.claim().allocation is None
    assert not world.claim().released


def test_with_one_node_the_gpu_is_free_again_until_the_back_off_ends() -> None:
    world = World(1)
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    world.add(objects.a_pod(status=objects.refused("mystery")))
    world.settle()
    world.settle(40)
    assert world.device() is None
    world.settle(70)
    assert world.device() == "gpu-0"


def test_a_pod_without_claims_of_ours_is_left_alone() -> None:
    world = World()
    foreign = 'device.driver == "nic.example.com"'
    world.stores.classes.apply(objects.a_class("nic", foreign))
    world.add(objects.a_claim("claim", objects.a_request(deviceClassName="nic")), objects.a_pod())
    world.settle()
    assert (world.server.written, world.told.lines) == ([], [])


def test_a_claim_mixing_ours_and_foreign_devices_is_refused_with_the_reason() -> None:
    world = World()
    world.stores.classes.apply(objects.a_class("nic", 'device.driver == "nic.example.com"'))
    nic = objects.a_device("nic-0", taints=[])
    world.stores.slices.apply(objects.a_slice("node-0", [nic], "nic.example.com"))
    both = (objects.a_request("gpu"), objects.a_request("nic", deviceClassName="nic"))
    world.add(objects.a_claim("claim", *both), objects.a_pod())
    world.settle()
    assert world.server.written == []
    assert "FOREIGN_DEVICES" in world.told.lines[0][2] or "ForeignDevices" in world.told.lines[0][2]


def test_a_claim_that_untainted_devices_satisfy_is_left_until_the_scheduler_refuses() -> None:
    world = World(1)
    free = objects.a_device("gpu-0", taints=[])
    world.stores.nodes.apply(objects.a_node("node-9"))
    world.stores.slices.apply(objects.a_slice("node-9", [free]))
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    assert world.device() is None
    world.add(objects.a_pod(status=objects.refused()))
    world.settle()
    assert world.device() == "gpu-0"


def test_an_allocation_nobody_reserves_is_freed_in_time() -> None:
    world = World()
    world.add(objects.a_claim(status=objects.allocated("node-0", "gpu-0")))
    world.settle()
    world.settle(20)
    assert world.device() == "gpu-0"
    world.settle(20)
    assert world.device() is None


def test_a_device_taint_rule_shows_in_the_nodes_condition_until_it_is_deleted() -> None:
    world = World(1)
    world.settle()
    assert [one["status"] for one in world.server.conditions] == ["True"]
    rule = {
        "metadata": objects.meta("hot", None),
        "spec": {
            "deviceSelector": {"device": "gpu-0"},
            "taint": {"key": "example.com/hot", "effect": "NoSchedule"},
        },
    }
    world.stores.taint_rules.apply(rule)
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    last = world.server.conditions[-1]
    assert (last["node"], last["type"], last["status"]) == (
        "node-0",
        "ration.dev/GPUsHealthy",
        "False",
    )
    assert "example.com/hot" in last["message"]
    assert world.device() is None
    world.stores.taint_rules.apply(
        {**rule, "metadata": objects.meta("hot", None, resourceVersion="9")}, deleted=True
    )
    world.settle()
    assert world.server.conditions[-1]["status"] == "True"
    assert world.device() == "gpu-0"


def test_a_condition_that_already_says_it_is_not_written_again() -> None:
    world = World(1)
    world.settle()
    (condition,) = world.server.conditions
    node = objects.a_node("node-0")
    node["metadata"]["resourceVersion"] = "7"
    node["status"]["conditions"].append(condition)
    world.stores.nodes.apply(node)
    world.settle()
    assert len(world.server.conditions) == 1
