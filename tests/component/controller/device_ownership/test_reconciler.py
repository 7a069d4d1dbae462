"""Rules at an API server, as the controller's configuration, its nodes and its leaders change."""

from typing import Any

import pytest

from driver import errors, ids, names
from driver.api import managed_drivers
from driver.controller.device_ownership import reconciler, reporter, rule_writer
from driver.controller.informers import stores
from driver.kube import client, fenced_writer, gvr, lease
from driver.kube.events import recorder
from driver.resources.core import nodes
from driver.resources.dra import slices, taint_rules
from driver.scheduling.device_ownership import desired
from tests.fakes import clock, plugin_shell
from tests.fakes.apiserver import faults, server
from tests.support.builders import objects

DRIVER = "gpu.example.com"
RULE = f"ration-driver-{DRIVER}"
FIRST, SECOND = lease.Term("controller-0_x7", 3), lease.Term("controller-1_y2", 4)
ALLOCATOR = {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"}
HANDOVER = {"key": names.HANDOVER_TAINT, "effect": "NoSchedule"}
CHANGING, CHANGED = "AllocatorChanging", "AllocatorChanged"
Raw = dict[str, Any]


def fail(_key: ids.Key, error: errors.BadInput) -> None:
    pytest.fail(str(error))


class World:
    """An API server, and one process of the controller after the other."""

    def __init__(self, api: server.ApiServer, kube: client.KubeClient) -> None:
        self.api, self.kube = api, kube
        self.clock = clock.FakeClock()
        self.events = plugin_shell.Events()
        self.fresh = True
        self.caches = stores.empty()
        self.caches.nodes.set_parser(nodes.parse, fail)
        self.caches.slices.set_parser(slices.parse, fail)
        self.caches.taint_rules.set_parser(taint_rules.parse, fail)

    def lead(self, term: lease.Term, *drivers: Raw) -> reconciler.OwnershipReconciler:
        """Begin a process in a term, with these managed drivers."""
        document = managed_drivers.read({"drivers": list(drivers)}, "managed.yaml")
        fenced = fenced_writer.FencedWriter(self.kube, lambda: term)
        writer = rule_writer.RuleWriter(self.kube, fenced, self.caches.taint_rules.observe)
        ref = recorder.ObjectRef("Lease", "coordination.k8s.io/v1", "ns", "ration-controller", "")
        return reconciler.OwnershipReconciler(
            desired.parse_drivers(document, names.DRIVER, "managed.yaml"),
            reconciler.Caches(
                self.caches.nodes,
                self.caches.slices,
                self.caches.taint_rules,
                lambda: self.fresh,
            ),
            writer,
            reporter.OwnershipReporter(self.events, ref),
            self.clock,
        )

    def watch(self) -> None:
        """Let the stores see what the server has."""
        for kind, store in (
            (gvr.NODES, self.caches.nodes),
            (gvr.RESOURCE_SLICES, self.caches.slices),
            (gvr.DEVICE_TAINT_RULES, self.caches.taint_rules),
        ):
            store.replace(self.api.all(kind), self.api.storage.version)

    def turn(self, leader: reconciler.OwnershipReconciler, seconds: float = 0.0) -> None:
        self.clock.advance(seconds)
        self.watch()
        leader.reconcile()
        self.watch()

    def taints(self) -> dict[str, Raw]:
        """Return the taint of each rule by its name."""
        return {
            rule["metadata"]["name"]: rule["spec"]["taint"]
            for rule in self.api.all(gvr.DEVICE_TAINT_RULES)
        }

    def writes(self) -> list[faults.Request]:
        return [request for request in self.api.requests if faults.writes(request)]


@pytest.fixture
def world(api: server.ApiServer, kube: client.KubeClient) -> World:
    return World(api, kube)


def hand_over(world: World, *drivers: Raw) -> reconciler.OwnershipReconciler:
    """Return a leader whose rules have the allocator taint."""
    leader = world.lead(FIRST, *drivers)
    for seconds in (0.0, 2.0, 30.0):
        world.turn(leader, seconds)
    assert {rule["key"] for rule in world.taints().values()} == {names.ALLOCATOR_TAINT}
    return leader


def test_a_managed_driver_passes_to_the_controller_after_thirty_seconds(world: World) -> None:
    leader = world.lead(FIRST, {"name": DRIVER})
    world.turn(leader)
    assert world.taints() == {RULE: HANDOVER}
    for seconds in (2.0, 29.9):
        world.turn(leader, seconds)
        assert world.taints() == {RULE: HANDOVER}
    world.turn(leader, 0.2)
    assert world.taints() == {RULE: ALLOCATOR}
    (rule,) = world.api.all(gvr.DEVICE_TAINT_RULES)
    assert rule["spec"]["deviceSelector"] == {"driver": DRIVER}
    assert rule["metadata"]["labels"][names.ALLOCATOR_RULE] == "true"
    assert rule["metadata"]["annotations"] == {names.FENCE: FIRST.field_manager}
    assert {request.field_manager for request in world.writes()} == {FIRST.field_manager}
    assert [(name, reason) for _, name, reason, _ in world.events.good_news] == [
        (RULE, CHANGING),
        (RULE, CHANGED),
    ]
    world.turn(leader, 60.0)
    assert len(world.writes()) == 2


def test_a_driver_that_is_no_longer_managed_passes_back_and_its_rule_goes(world: World) -> None:
    hand_over(world, {"name": DRIVER})
    leader = world.lead(SECOND, {"name": "nic.example.com"})
    world.turn(leader)
    assert world.taints()[RULE] == HANDOVER
    world.turn(leader, 2.0)
    world.turn(leader, 29.9)
    assert RULE in world.taints()
    world.turn(leader, 0.2)
    assert RULE not in world.taints()
    deletion = next(request for request in world.writes() if request.method == "DELETE")
    assert deletion.body["preconditions"].keys() == {"uid", "resourceVersion"}
    about = [(reason, text) for _, name, reason, text in world.events.good_news if name == RULE]
    assert [reason for reason, _ in about] == [CHANGING, CHANGED, CHANGING, CHANGED]
    assert "pass from the controller to kube-scheduler" in about[2][1]
    assert "kube-scheduler allocates devices of driver gpu.example.com" in about[3][1]


def delete_fence(world: World, holder: lease.Term) -> None:
    """Apply the admission policy for DELETE, for that holder of the Lease."""

    def policy(request: faults.Request) -> str | None:
        if request.method != "DELETE":
            return None
        rule = world.api.read(gvr.DEVICE_TAINT_RULES, request.path.rpartition("/")[2]) or {}
        stamp = (rule["metadata"].get("annotations") or {}).get(names.FENCE)
        return None if stamp == holder.field_manager else "not the leader"

    world.api.deny_with(policy)


def test_a_new_leader_counts_the_handover_again_and_stamps_before_it_deletes(
    world: World,
) -> None:
    hand_over(world, {"name": DRIVER})
    other = {"name": "nic.example.com"}
    world.turn(world.lead(FIRST, other), 2.0)
    delete_fence(world, SECOND)
    leader = world.lead(SECOND, other)
    world.turn(leader, 29.0)
    world.turn(leader, 29.0)
    assert world.taints()[RULE] == HANDOVER
    world.turn(leader, 2.0)
    assert RULE not in world.taints()
    stamp, deletion = [request for request in world.writes() if request.path.endswith(RULE)][-2:]
    assert stamp.body["metadata"]["annotations"] == {names.FENCE: SECOND.field_manager}
    assert "spec" not in stamp.body
    assert deletion.method == "DELETE"


def test_a_former_leaders_late_delete_changes_nothing(world: World) -> None:
    hand_over(world, {"name": DRIVER})
    other = {"name": "nic.example.com"}
    former = world.lead(FIRST, other)
    world.turn(former, 2.0)
    world.turn(former, 2.0)
    delete_fence(world, SECOND)
    world.turn(former, 40.0)
    assert RULE in world.taints()


def node(name: str, **labels: str) -> Raw:
    result = objects.a_node(name)
    return {**result, "metadata": {**result["metadata"], "labels": labels}}


def rule_pools(world: World) -> set[str]:
    rules = world.api.all(gvr.DEVICE_TAINT_RULES)
    assert all(rule["spec"]["deviceSelector"]["driver"] == DRIVER for rule in rules)
    return {rule["spec"]["deviceSelector"]["pool"] for rule in rules}


def test_pools_follow_the_labels_of_their_nodes(world: World) -> None:
    for name, team in (("node-a", "gpu"), ("node-b", "other")):
        world.api.put(gvr.NODES, node(name, team=team))
        world.api.put(gvr.RESOURCE_SLICES, objects.a_slice(name, 1, DRIVER))
    leader = hand_over(world, {"name": DRIVER, "nodeSelector": "team in (gpu, ml)"})
    assert rule_pools(world) == {"node-a"}
    world.api.put(gvr.NODES, node("node-b", team="ml"))
    world.turn(leader, 2.0)
    assert rule_pools(world) == {"node-a", "node-b"}
    world.api.put(gvr.NODES, node("node-a", team="other"))
    for seconds in (2.0, 2.0, 31.0):
        world.turn(leader, seconds)
    assert rule_pools(world) == {"node-b"}


def test_a_rule_stays_while_its_node_is_there_and_the_pool_is_not(world: World) -> None:
    world.api.put(gvr.NODES, node("node-a", team="gpu"))
    raw = world.api.put(gvr.RESOURCE_SLICES, objects.a_slice("node-a", 1, DRIVER))
    leader = hand_over(world, {"name": DRIVER, "nodeSelector": "team=gpu"})
    taints = world.taints()
    world.api.remove(gvr.RESOURCE_SLICES, raw["metadata"]["name"])
    world.turn(leader, 60.0)
    assert world.taints() == taints
    world.api.remove(gvr.NODES, "node-a")
    for seconds in (2.0, 2.0, 31.0):
        world.turn(leader, seconds)
    assert world.taints() == {}


def test_a_taint_that_was_edited_is_put_right_through_a_handover(world: World) -> None:
    leader = hand_over(world, {"name": DRIVER})
    (rule,) = world.api.all(gvr.DEVICE_TAINT_RULES)
    rule["spec"]["taint"] = {**ALLOCATOR, "effect": "None"}
    world.api.put(gvr.DEVICE_TAINT_RULES, rule)
    world.turn(leader, 2.0)
    assert world.taints() == {RULE: HANDOVER}
    for seconds in (2.0, 31.0):
        world.turn(leader, seconds)
    assert world.taints() == {RULE: ALLOCATOR}


def test_rules_without_our_label_are_left_alone(world: World) -> None:
    cordon = {"metadata": objects.meta("cordon", None), "spec": {"taint": HANDOVER}}
    world.api.put(gvr.DEVICE_TAINT_RULES, cordon)
    leader = world.lead(FIRST, {"name": DRIVER})
    for seconds in (0.0, 2.0, 60.0):
        world.turn(leader, seconds)
    assert world.taints() == {"cordon": HANDOVER, RULE: ALLOCATOR}


def test_without_the_api_it_is_said_once_and_done_once_it_is_served(world: World) -> None:
    world.api.faults.add(faults.Answer(404, "NotFound"), lambda r: "devicetaintrules" in r.path)
    leader = world.lead(FIRST, {"name": DRIVER})
    for _ in range(3):
        world.turn(leader, 60.0)
    ((kind, name, reason, text),) = world.events.told
    assert (kind, name, reason) == ("Lease", "ration-controller", "DeviceTaintRulesDisabled")
    assert "feature gate DRADeviceTaintRules" in text
    assert "resource.k8s.io/v1beta2" in text
    world.api.faults.clear()
    world.turn(leader, 60.0)
    assert world.taints() == {RULE: HANDOVER}


def test_rules_that_kubernetes_does_not_act_on_never_end_their_handover(world: World) -> None:
    world.api.faults.add(faults.Answer(404, "NotFound"), lambda r: "/v1/devicetaint" in r.path)
    leader = world.lead(FIRST, {"name": DRIVER})
    for seconds in (0.0, 2.0, 61.0, 61.0):
        world.turn(leader, seconds)
    assert world.taints() == {RULE: HANDOVER}
    ((kind, name, reason, _),) = world.events.told
    assert (kind, name, reason) == ("DeviceTaintRule", RULE, "DeviceTaintRulesDisabled")
    (rule,) = world.api.all(gvr.DEVICE_TAINT_RULES)
    assert rule["apiVersion"] == "resource.k8s.io/v1beta2"
    rule["status"] = {"conditions": [{"type": "EvictionInProgress", "status": "False"}]}
    world.api.put(gvr.DEVICE_TAINT_RULES, rule)
    world.turn(leader, 2.0)
    assert world.taints() == {RULE: ALLOCATOR}


def test_nothing_is_written_by_stale_caches(world: World) -> None:
    world.fresh = False
    world.turn(world.lead(FIRST, {"name": DRIVER}))
    assert world.writes() == []


def test_after_an_unanswered_write_nothing_else_is_sent(world: World) -> None:
    world.api.faults.add(faults.Drop(), faults.writes)
    leader = world.lead(FIRST, {"name": DRIVER}, {"name": "nic.example.com"})
    world.turn(leader)
    assert {request.body["metadata"]["name"] for request in world.writes()} == {RULE}
    world.api.faults.clear()
    world.turn(leader, 2.0)
    assert len(world.taints()) == 2


def test_a_rule_that_another_has_named_so_is_not_taken_over(world: World) -> None:
    theirs = {"metadata": objects.meta(RULE, None), "spec": {"taint": HANDOVER}}
    world.api.put(gvr.DEVICE_TAINT_RULES, theirs)
    leader = world.lead(FIRST, {"name": DRIVER}, {"name": "nic.example.com"})
    world.turn(leader)
    assert world.taints().keys() == {RULE, "ration-driver-nic.example.com"}
    assert "labels" not in (world.api.read(gvr.DEVICE_TAINT_RULES, RULE) or {})["metadata"]
