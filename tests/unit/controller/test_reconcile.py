"""The decider over stores, with writes done at once: what it writes, tells and remembers."""

import json
from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import prometheus_client

from driver import errors, ids, names
from driver.controller import (
    commit,
    hold,
    metrics,
    reconcile,
    stores,
    telling,
    triggers,
    writers,
)
from driver.controller.allocation import policies
from driver.kube import client, events, resource, workqueue
from driver.resources import claims, classes, nodes, pods, slices, taint_rules, volumes
from tests import objects
from tests.fakes import clock as clocks
from tests.fakes.apiserver import patches


class Inline(futures.Executor):
    """Runs what is submitted at once, on the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        done: futures.Future[Any] = futures.Future()
        done.set_result(fn(*args, **kwargs))
        return done


@dataclass
class Server:
    """Claims as an API server would keep them, behind the writer's port."""

    claims: dict[str, dict[str, Any]] = field(default_factory=dict)
    written: list[tuple[str, str, str]] = field(default_factory=list)
    conditions: list[dict[str, Any]] = field(default_factory=list)
    refuse: dict[str, errors.ApiError] = field(default_factory=dict)
    lose: set[str] = field(default_factory=set)
    version: int = 100
    annotated: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)

    def create_eviction(
        self, name: str, namespace: str, *, uid: str, grace_s: int | None = None
    ) -> None:
        assert (namespace, uid, grace_s) == ("default", objects.uid_of(name), None)
        if f"evict {name}" in self.refuse:
            raise self.refuse.pop(f"evict {name}")
        self.evicted.append(name)

    def get(
        self, kind_of: resource.Resource, name: str, namespace: str | None = None
    ) -> dict[str, Any]:
        assert kind_of is resource.RESOURCE_CLAIMS
        return json.loads(json.dumps(self.claims[f"{namespace}/{name}"]))  # type: ignore[no-any-return]

    def patch(
        self,
        kind_of: resource.Resource,
        name: str,
        body: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
        subresource: str = "",
        kind: client.PatchType = client.PatchType.MERGE,
    ) -> dict[str, Any]:
        if kind_of is resource.PODS:
            assert not subresource
            self.annotated.append((name, body["metadata"]["annotations"]))
            return dict(body)
        if kind_of is resource.NODES:
            assert (subresource, kind) == ("status", client.PatchType.STRATEGIC)
            (condition,) = body["status"]["conditions"]
            self.conditions.append({"node": name, **condition})
            return dict(body)
        assert kind_of is resource.RESOURCE_CLAIMS
        if subresource and name in self.refuse:
            raise self.refuse.pop(name)
        found = self.claims[f"{namespace}/{name}"]
        wanted = body["metadata"].get("resourceVersion")
        if wanted not in {None, found["metadata"]["resourceVersion"]}:
            raise errors.Conflict(409, "Conflict", "changed")
        strategic = kind is client.PatchType.STRATEGIC
        changed = (patches.strategic if strategic else patches.merge)(found, dict(body))
        self.version += 1
        changed["metadata"]["resourceVersion"] = str(self.version)
        self.claims[f"{namespace}/{name}"] = changed
        self.written.append((name, subresource, kind.name))
        if subresource and name in self.lose:
            self.lose.remove(name)
            raise errors.Unreachable(0, "Unreachable", "the answer is lost")
        return json.loads(json.dumps(changed))  # type: ignore[no-any-return]


@dataclass
class Told:
    """Events, as told."""

    lines: list[tuple[str, str, str]] = field(default_factory=list)

    def event(
        self,
        regarding: events.ObjectRef,
        reason: str,
        message: str,
        *,
        warning: bool,
        related: events.ObjectRef | None = None,
    ) -> None:
        assert related is None
        assert warning is (reason != "Allocated")
        self.lines.append((regarding.kind, reason, message))


class World:
    """A controller's inside, without threads: stores, queue, decider."""

    def __init__(self, *gpus_by_node: int, evict_over_share: bool = False) -> None:
        self.clock = clocks.FakeClock()
        self.server = Server()
        self.told = Told()
        self.stores = stores.empty()
        self.items: workqueue.WorkQueue[writers.Item] = workqueue.WorkQueue(self.clock, lambda: 0.0)
        self._read()
        triggers.Triggers(self.items).attach(self.stores)
        tools = writers.Tools(
            commit.Commit(self.server, self.stores.observe_claim),
            Inline(),
            telling.Teller(self.told),
            metrics.Metrics(prometheus_client.CollectorRegistry()),
        )
        settings = reconcile.Settings(
            names.DRIVER, policies.POLICIES["pack"], evict_over_share=evict_over_share
        )
        self.decider = reconcile.Reconciler(self.stores, self.items, tools, settings, self.clock)
        self.stores.classes.apply(objects.a_class())
        for index, count in enumerate(gpus_by_node or (2,)):
            self.stores.nodes.apply(objects.a_node(f"node-{index}"))
            self.stores.slices.apply(objects.a_slice(f"node-{index}", count))

    def _read(self) -> None:
        found = self.stores
        found.nodes.read_with(nodes.parse, _bad)
        found.slices.read_with(slices.parse, _bad)
        found.classes.read_with(classes.parse, _bad)
        found.claims.read_with(claims.parse, _bad)
        found.pods.read_with(pods.parse, _bad)
        found.bound_volumes.read_with(volumes.parse_claim, _bad)
        found.volumes.read_with(volumes.parse_volume, _bad)
        found.rules.read_with(taint_rules.parse, _bad)

    def add(self, *raw: dict[str, Any]) -> None:
        for one in raw:
            if "containers" in one["spec"]:
                self.stores.pods.apply(self._newer(one))
            else:
                key = f"default/{one['metadata']['name']}"
                self.server.claims[key] = self._newer(one)
                self.stores.claims.apply(self.server.claims[key])

    def _newer(self, one: dict[str, Any]) -> dict[str, Any]:
        self.server.version += 1
        return {**one, "metadata": {**one["metadata"], "resourceVersion": str(self.server.version)}}

    def remove_pod(self, name: str) -> None:
        self.stores.pods.apply(self._newer(objects.a_pod(name)), deleted=True)

    def settle(self, seconds: float = 1.0) -> None:
        """Let time pass and the decider work until it has nothing more to do."""
        self.clock.advance(seconds)
        for _ in range(50):
            batch = []
            while len(self.items):
                item = self.items.get(0.0)
                assert item is not None
                batch.append(item)
            if not batch:
                return
            self.decider.take(batch)
            self.clock.advance(0.1)
        raise AssertionError("the decider never comes to rest")

    def claim(self, name: str = "claim") -> claims.Claim:
        return claims.parse(self.server.claims[f"default/{name}"])

    def device(self, name: str = "claim") -> str | None:
        allocation = self.claim(name).allocation
        return allocation.results[0].device.device if allocation else None


def _bad(key: ids.Key, error: errors.BadInput) -> None:
    raise AssertionError(f"{key}: {error}")


def test_a_claim_is_written_finalizer_first_then_one_status_patch_with_the_hold() -> None:
    world = World()
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    assert world.server.written == [("claim", "", "STRATEGIC"), ("claim", "status", "STRATEGIC")]
    claim = world.claim()
    assert claim.finalizers == (names.CLAIM_FINALIZER,)
    assert claim.allocation is not None
    assert claim.allocation.stamped
    pod = objects.pod()
    assert claim.consumers == (hold.pod_entry(pod), hold.of_pod(pod))


def test_pod_and_claim_are_told_what_was_allocated_and_why() -> None:
    world = World()
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    assert {(kind, reason) for kind, reason, _ in world.told.lines} == {
        ("Pod", "Allocated"),
        ("ResourceClaim", "Allocated"),
    }
    assert world.told.lines[0][2].startswith("Allocated gpu-0 on node-0: the fullest node")


def test_two_pods_get_different_gpus_although_the_watch_is_behind() -> None:
    world = World()
    for name in ("one", "two"):
        world.add(objects.a_claim(name), objects.a_pod(name, name))
    world.settle()
    assert {world.device("one"), world.device("two")} == {"gpu-0", "gpu-1"}


def test_a_pod_that_finds_no_room_is_told_once_and_placed_when_a_claim_goes() -> None:
    world = World(1)
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle()
    world.add(objects.a_claim("two"), objects.a_pod("two", "two"))
    world.settle()
    world.settle()
    no_fits = [line for line in world.told.lines if line[1] == "NoFit"]
    assert [kind for kind, _, _ in no_fits] == ["Pod", "ResourceClaim"]
    assert "node-0: 0 of 1 devices fit, 1 lacking (1 DeviceTaken)" in no_fits[0][2]
    world.stores.claims.apply(world._newer(objects.a_claim("one")), deleted=True)
    world.settle()
    assert world.device("two") == "gpu-0"


def test_the_higher_priority_goes_first() -> None:
    world = World(1)
    for name, priority in (("low", 1), ("high", 10)):
        world.add(objects.a_claim(name), objects.a_pod(name, name, priority=priority))
    world.settle()
    assert (world.device("high"), world.device("low")) == ("gpu-0", None)


def test_of_two_claims_both_are_written_or_none() -> None:
    world = World(2)
    world.server.refuse["two"] = errors.Forbidden(403, "Forbidden", "no")
    world.add(objects.a_claim("one"), objects.a_claim("two"), objects.a_pod("pod", "one", "two"))
    world.settle(0.0)
    assert ("one", "status", "MERGE") in world.server.written
    world.settle(5.0)
    assert {world.device("one"), world.device("two")} == {"gpu-0", "gpu-1"}


def test_a_gpu_whose_write_got_no_answer_is_given_to_nobody_else_meanwhile() -> None:
    """The write may have happened, and the watch may tell of it late."""
    world = World(1)
    world.server.lose.add("one")
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle(0.0)
    world.add(objects.a_claim("two"), objects.a_pod("two", "two"))
    world.settle()
    world.settle(5.0)
    assert (world.device("one"), world.device("two")) == ("gpu-0", None)
    status_writes = [name for name, of, _ in world.server.written if of == "status"]
    assert status_writes == ["one"]
    assert [reason for _, reason, _ in world.told.lines].count("Allocated") == 2


def flipped(world: World, version: str = "500") -> None:
    """Node 0 is kube-scheduler's from now on."""
    free = objects.a_slice("node-0", [objects.a_device("gpu-0", taints=[])], generation=2)
    free["metadata"]["resourceVersion"] = version
    world.stores.slices.apply(free)


def test_a_write_without_an_answer_is_not_repeated_once_the_gpu_is_the_schedulers() -> None:
    world = World(1)
    world.server.refuse["one"] = errors.Unreachable(0, "Unreachable", "reset")
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.decider.take([writers.Item("pod", ids.Key("default/one"))])
    flipped(world)
    world.settle(5.0)
    assert world.device("one") is None
    assert [of for _, of, _ in world.server.written] == [""]


def test_what_was_written_without_an_answer_is_taken_back_once_the_gpu_is_the_schedulers() -> None:
    world = World(1)
    world.server.lose.add("one")
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.decider.take([writers.Item("pod", ids.Key("default/one"))])
    assert world.device("one") == "gpu-0"
    flipped(world)
    world.settle(5.0)
    assert world.device("one") is None


def test_a_refusal_of_the_second_try_does_not_end_the_doubt_about_the_first() -> None:
    world = World(1)
    world.server.lose.add("one")
    world.add(objects.a_claim("one"), objects.a_pod("one", "one"))
    world.settle(0.0)
    world.server.refuse["one"] = errors.TooManyRequests(429, "TooManyRequests", "busy")
    world.add(objects.a_claim("two"), objects.a_pod("two", "two"))
    world.settle(5.0)
    assert (world.device("one"), world.device("two")) == ("gpu-0", None)


def test_of_two_claims_the_one_without_an_answer_stays_with_the_other() -> None:
    world = World(2)
    world.server.lose.add("two")
    world.add(objects.a_claim("one"), objects.a_claim("two"), objects.a_pod("pod", "one", "two"))
    world.settle(0.0)
    world.settle(5.0)
    assert {world.device("one"), world.device("two")} == {"gpu-0", "gpu-1"}
    assert [kind for _, _, kind in world.server.written] == ["STRATEGIC"] * 4


def test_a_claim_that_somebody_labelled_meanwhile_is_written_all_the_same() -> None:
    world = World(1)
    world.add(objects.a_claim("one"))
    behind = world.server.claims["default/one"]
    world.server.claims["default/one"] = world._newer(
        {**behind, "metadata": {**behind["metadata"], "labels": {"a": "b"}}}
    )
    world.add(objects.a_pod("one", "one"))
    world.settle(0.0)
    assert world.device("one") == "gpu-0"
    assert world.server.claims["default/one"]["metadata"]["labels"] == {"a": "b"}


def test_a_claim_that_was_allocated_meanwhile_keeps_that_allocation() -> None:
    world = World(2)
    world.add(objects.a_claim("one"))
    status = objects.allocated("node-0", "gpu-1")
    theirs = world._newer(objects.a_claim("one", status=status))
    world.server.claims["default/one"] = theirs
    world.add(objects.a_pod("one", "one"))
    world.settle(0.0)
    assert world.server.claims["default/one"] == theirs
    found = world.stores.claims.get(ids.Key("default/one"))
    assert found is not None
    assert found.allocation is not None


def test_a_dead_leaders_half_decision_is_completed_on_the_same_node() -> None:
    world = World(1, 2)
    pod = objects.pod("pod", "one", "two")
    entries = [claims.render_consumer(e) for e in (hold.pod_entry(pod), hold.of_pod(pod))]
    status = objects.allocated("node-1", "gpu-0", reserved=entries)
    world.add(objects.a_claim("one", status=status), objects.a_claim("two"))
    world.add(objects.a_pod("pod", "one", "two"))
    world.settle()
    assert world.device("two") == "gpu-1"


def test_a_half_decision_that_cannot_be_completed_is_freed_and_decided_anew() -> None:
    world = World(1, 2)
    pod = objects.pod("pod", "one", "two")
    entries = [claims.render_consumer(e) for e in (hold.pod_entry(pod), hold.of_pod(pod))]
    status = objects.allocated("node-0", "gpu-0", reserved=entries)
    world.add(objects.a_claim("one", status=status), objects.a_claim("two"))
    world.add(objects.a_pod("pod", "one", "two"))
    world.settle()
    nodes_now = {world.claim(name).allocation.selector for name in ("one", "two")}  # type: ignore[union-attr]
    assert nodes_now == {claims.parse(_on("node-1")).allocation.selector}  # type: ignore[union-attr]


def _on(node: str) -> dict[str, Any]:
    return objects.a_claim(status=objects.allocated(node, "gpu-0"))


def test_the_hold_goes_when_the_pod_is_bound() -> None:
    world = World()
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    world.add(objects.a_pod(nodeName="node-0"))
    world.settle()
    assert [one.is_hold for one in world.claim().consumers] == [False]


def test_a_refused_pod_gives_its_gpu_back_and_is_placed_elsewhere_with_the_words_told() -> None:
    world = World(1, 1)
    world.add(objects.a_claim(), objects.a_pod())
    world.settle()
    assert world.device() == "gpu-0"
    world.add(objects.a_pod(status=objects.refused("0/2 nodes are available: mystery")))
    world.settle()
    world.settle(40)
    world.settle(1)
    cleared = [message for _, reason, message in world.told.lines if reason == "AllocationCleared"]
    assert '"0/2 nodes are available: mystery"' in cleared[0]
    allocation = world.claim().allocation
    assert allocation is not None
    assert allocation.results[0].device.pool == "node-1"


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


def test_a_rule_from_outside_taints_a_device_and_the_node_says_so_until_it_goes() -> None:
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
    world.stores.rules.apply(rule)
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
    world.stores.rules.apply(
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
