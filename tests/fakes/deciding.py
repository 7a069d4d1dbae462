"""A controller's inside without threads: stores, queue and decider over claims in memory."""

import json
from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import prometheus_client

from driver import clock, errors, ids, names
from driver.controller import commit, metrics, reconcile, saying, stores, telling, triggers, writers
from driver.controller import view as cluster
from driver.kube import client, events, resource, workqueue
from driver.resources import (
    budgets,
    claims,
    classes,
    nodes,
    pod_groups,
    pods,
    queues,
    reservations,
    slices,
    taint_rules,
    volumes,
)
from tests import objects, worlds
from tests.fakes import clock as clocks
from tests.fakes.apiserver import applying, patches, rules


class Inline(futures.Executor):
    """Runs what is submitted at once, on the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        done: futures.Future[Any] = futures.Future()
        done.set_result(fn(*args, **kwargs))
        return done


def a_reservation_of(body: dict[str, Any], namespace: str | None, stamp: str) -> dict[str, Any]:
    """What was sent, as a server keeps it."""
    name = body["metadata"]["name"]
    meta = {**objects.meta(name, namespace, creationTimestamp=stamp), **body["metadata"]}
    return {**body, "metadata": meta}


def a_pod_of(body: dict[str, Any], stamp: str) -> dict[str, Any]:
    """What was sent, as a server with the chart's PriorityClasses keeps it."""
    made = {
        "uid": objects.uid_of(f"{body['metadata']['name']} {stamp}"),
        "creationTimestamp": stamp,
    }
    placeholder = body["spec"].get("priorityClassName") == names.PLACEHOLDER_PRIORITY
    spec = {
        **body["spec"],
        **({"priority": -10, "preemptionPolicy": "Never"} if placeholder else {}),
    }
    meta = {**body["metadata"], **made}
    return {**body, "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


@dataclass
class Server:
    """Claims as an API server would keep them, behind the writer's port."""

    claims: dict[str, dict[str, Any]] = field(default_factory=dict)
    written: list[tuple[str, str, str]] = field(default_factory=list)
    conditions: list[dict[str, Any]] = field(default_factory=list)
    refuse: dict[str, errors.ApiError] = field(default_factory=dict)
    lose: set[str] = field(default_factory=set)
    unpatchable: set[str] = field(default_factory=set)
    version: int = 100
    annotated: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    ungated: list[str] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)
    owners: applying.Owners = field(default_factory=dict)
    own: dict[str, dict[str, Any]] = field(default_factory=dict)
    now: Callable[[], str] = lambda: "2026-11-21T09:00:00Z"
    show: Callable[..., None] = lambda _obj, deleted: None  # noqa: ARG005
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    node_owners: dict[str, applying.Owners] = field(default_factory=dict)
    applied: list[tuple[str, str]] = field(default_factory=list)
    show_node: Callable[[dict[str, Any]], None] = lambda _obj: None
    show_pod: Callable[..., None] = lambda _obj, deleted: None  # noqa: ARG005
    said_of_pods: Callable[[str, dict[str, Any]], None] = lambda _name, _body: None

    def create(
        self, kind_of: resource.Resource, body: dict[str, Any], namespace: str | None = None
    ) -> dict[str, Any]:
        name = body["metadata"]["name"]
        if "create" in self.refuse:
            raise self.refuse.pop("create")
        if kind_of is resource.PODS:
            return self._create_pod(name, body, namespace)
        assert kind_of is resource.RESERVATIONS
        if f"{namespace}/{name}" in self.own:
            raise errors.AlreadyExists(409, "AlreadyExists", name)
        return self._keep_own(f"{namespace}/{name}", a_reservation_of(body, namespace, self.now()))

    def delete(
        self, kind_of: resource.Resource, name: str, namespace: str | None = None, *, uid: str
    ) -> None:
        if kind_of is resource.PODS:
            self._delete_pod(name, namespace, uid)
            return
        assert kind_of is resource.RESERVATIONS
        gone = self.own.pop(f"{namespace}/{name}")
        assert gone["metadata"]["uid"] == uid
        self.version += 1
        self.show(
            {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}},
            deleted=True,
        )

    def _create_pod(self, name: str, body: dict[str, Any], namespace: str | None) -> dict[str, Any]:
        assert body["metadata"]["namespace"] == namespace
        key = f"{namespace}/{name}"
        if key in self.pods:
            raise errors.AlreadyExists(409, "AlreadyExists", name)
        return self._keep_pod(key, a_pod_of(body, self.now()))

    def _delete_pod(self, name: str, namespace: str | None, uid: str) -> None:
        """Gone at once, as one of no grace is."""
        key = f"{namespace}/{name}"
        if "delete" in self.refuse:
            raise self.refuse.pop("delete")
        found = self.pods.get(key)
        if found is None:
            raise errors.NotFound(404, "NotFound", name)
        if found["metadata"]["uid"] != uid:
            raise errors.Conflict(409, "Conflict", "another of that name")
        self.show_pod(self.newer(self.pods.pop(key)), deleted=True)

    def _keep_pod(self, key: str, changed: dict[str, Any]) -> dict[str, Any]:
        self.pods[key] = self.newer(changed)
        self.show_pod(self.pods[key], deleted=False)
        return json.loads(json.dumps(self.pods[key]))  # type: ignore[no-any-return]

    def change_pod(self, key: str, node: str = "", **status: Any) -> None:
        """What others write of a pod that was created here: where it is bound, its status."""
        pod = self.pods[key]
        spec = {**pod["spec"], **({"nodeName": node} if node else {})}
        self._keep_pod(key, {**pod, "spec": spec, "status": {**pod["status"], **status}})

    def newer(self, one: dict[str, Any]) -> dict[str, Any]:
        """An object of the next version."""
        self.version += 1
        return {**one, "metadata": {**one["metadata"], "resourceVersion": str(self.version)}}

    def _keep_own(self, key: str, changed: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        changed["metadata"]["resourceVersion"] = str(self.version)
        self.own[key] = changed
        self.show(changed, deleted=False)
        return json.loads(json.dumps(changed))  # type: ignore[no-any-return]

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
        force: bool = False,
    ) -> dict[str, Any]:
        if kind_of is resource.PODS:
            return self._patch_pod(name, body, subresource, kind)
        if kind_of in {resource.RESERVATIONS, resource.QUEUES}:
            assert subresource == "status"
            key = f"{namespace}/{name}" if namespace else name
            found = self.own[key]
            assert body["metadata"]["uid"] == found["metadata"]["uid"]
            return self._keep_own(key, patches.merge(found, dict(body)))
        if kind_of is resource.NODES:
            assert (subresource, kind) == ("status", client.PatchType.STRATEGIC)
            (condition,) = body["status"]["conditions"]
            self.conditions.append({"node": name, **condition})
            return dict(body)
        assert kind_of is resource.RESOURCE_CLAIMS
        if subresource and name in self.refuse:
            raise self.refuse.pop(name)
        if not subresource and name in self.unpatchable:
            raise errors.Invalid(422, "Invalid", "spec: Invalid value: field is immutable")
        found = self.claims[f"{namespace}/{name}"]
        wanted = body["metadata"].get("resourceVersion")
        if wanted not in {None, found["metadata"]["resourceVersion"]}:
            raise errors.Conflict(409, "Conflict", "changed")
        if kind is client.PatchType.APPLY:
            assert force
            applied, self.owners = applying.apply(
                found, dict(body), "controller", self.owners, force=force
            )
            self.said.append((name, body["status"]["devices"][0]["conditions"][0]["type"]))
            return self._keep(f"{namespace}/{name}", applied)
        strategic = kind is client.PatchType.STRATEGIC
        changed = (patches.strategic if strategic else patches.merge)(found, dict(body))
        answer = self._keep(f"{namespace}/{name}", changed)
        self.written.append((name, subresource, kind.name))
        if subresource and name in self.lose:
            self.lose.remove(name)
            raise errors.Unreachable(0, "Unreachable", "the answer is lost")
        return answer

    def _patch_pod(
        self, name: str, body: Mapping[str, Any], subresource: str, kind: client.PatchType
    ) -> dict[str, Any]:
        if subresource:
            assert (subresource, kind) == ("status", client.PatchType.STRATEGIC)
            self.said_of_pods(name, dict(body))
        elif "spec" in body:
            return self._ungate(name, body, kind)
        else:
            self.annotated.append((name, body["metadata"]["annotations"]))
        return dict(body)

    def _ungate(self, name: str, body: Mapping[str, Any], kind: client.PatchType) -> dict[str, Any]:
        if f"ungate {name}" in self.refuse:
            raise self.refuse.pop(f"ungate {name}")
        assert kind is client.PatchType.STRATEGIC
        assert body == {
            "metadata": {"uid": objects.uid_of(name)},
            "spec": {"schedulingGates": [{"$patch": "delete", "name": "ration.dev/allocate"}]},
        }
        self.ungated.append(name)
        return dict(body)

    def apply(
        self, kind_of: resource.Resource, name: str, body: Mapping[str, Any], *, manager: str
    ) -> dict[str, Any]:
        """Server-side apply without force, of Nodes."""
        assert kind_of is resource.NODES
        if name not in self.nodes:
            raise errors.NotFound(404, "NotFound", name)
        before = self.nodes[name]
        assert body["metadata"]["uid"] == before["metadata"]["uid"]
        self.applied.append((name, manager))
        try:
            after, self.node_owners[name] = applying.apply(
                before, dict(body), manager, self.node_owners.get(name, {}), force=False
            )
        except rules.Refusal as refused:
            raise errors.Conflict(409, "Conflict", str(refused)) from refused
        return self.keep_node(after)

    def keep_node(self, changed: dict[str, Any]) -> dict[str, Any]:
        """A Node as it is now, shown."""
        found = self.newer(changed)
        self.nodes[found["metadata"]["name"]] = found
        self.show_node(found)
        return json.loads(json.dumps(found))  # type: ignore[no-any-return]

    def add_finalizer(
        self,
        kind_of: resource.Resource,
        name: str,
        finalizer: str,
        *,
        namespace: str | None = None,
        version: str,
    ) -> dict[str, Any]:
        assert kind_of is resource.RESOURCE_CLAIMS
        found = self.claims[f"{namespace}/{name}"]
        if version != found["metadata"]["resourceVersion"]:
            raise errors.Conflict(409, "Conflict", "changed")
        self.written.append((name, "", "PUT"))
        finalizers = [*found["metadata"].get("finalizers", []), finalizer]
        changed = {**found, "metadata": {**found["metadata"], "finalizers": finalizers}}
        return self._keep(f"{namespace}/{name}", changed)

    def _keep(self, key: str, changed: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        changed["metadata"]["resourceVersion"] = str(self.version)
        self.claims[key] = changed
        return json.loads(json.dumps(changed))  # type: ignore[no-any-return]


_GOOD = {"Allocated", "ReservationHeld", "ReservationUsed"}


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
        assert warning is (reason not in _GOOD)
        self.lines.append((regarding.kind, reason, message))


class World:
    """A controller's inside, without threads: stores, queue, decider."""

    def __init__(self, *gpus_by_node: int, evict_over_share: bool = False) -> None:
        self.clock = clocks.FakeClock()
        self.stale = False
        self.server = Server()
        self.told = Told()
        self.pods: dict[str, dict[str, Any]] = {}
        self.stores = stores.empty()
        self.items: workqueue.WorkQueue[writers.Item] = workqueue.WorkQueue(self.clock, lambda: 0.0)
        self.saying = saying.Saying(self.server, self.clock)
        self._read()
        triggers.Triggers(self.items).attach(self.stores)
        self.registry = prometheus_client.CollectorRegistry()
        self.metrics = metrics.Metrics(self.registry)
        tools = writers.Tools(
            self.server,
            commit.Commit(self.server, self.stores.observe_claim),
            Inline(),
            telling.Teller(self.told, self.saying),
            self.metrics,
        )
        settings = reconcile.Settings(
            names.DRIVER, worlds.DECIDING, lambda: self.stale, evict_over_share=evict_over_share
        )
        self.decider = reconcile.Reconciler(self.stores, self.items, tools, settings, self.clock)
        self.stores.classes.apply(objects.a_class())
        for index, count in enumerate(gpus_by_node or (2,)):
            self.server.nodes[f"node-{index}"] = objects.a_node(f"node-{index}")
            self.stores.nodes.apply(self.server.nodes[f"node-{index}"])
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
        found.teams.read_with(queues.parse, _bad)
        found.reserved.read_with(reservations.parse, _bad)
        self.server.show = self._show
        self.server.show_pod = self._show_pod
        self.server.show_node = lambda node: self.stores.nodes.apply(json.loads(json.dumps(node)))
        self.server.said_of_pods = self._said_of_pods
        self.server.now = lambda: clock.rfc3339(self.clock.now())
        found.guards.read_with(budgets.parse, _bad)
        found.groups.read_with(pod_groups.parse, _bad)

    def add(self, *raw: dict[str, Any]) -> None:
        for one in raw:
            if one.get("kind") in {"Queue", "Reservation"}:
                self.server._keep_own(str(resource.key_of(one)), one)
            elif one.get("kind") == "PodDisruptionBudget":
                self.stores.guards.apply(self._newer(one))
            elif "minMember" in one["spec"]:
                self.stores.groups.apply(self._newer(one))
            elif "containers" in one["spec"]:
                self.pods[one["metadata"]["name"]] = one
                self.stores.pods.apply(self._newer(one))
            else:
                key = f"default/{one['metadata']['name']}"
                self.server.claims[key] = self._newer(one)
                self.stores.claims.apply(self.server.claims[key])

    def _newer(self, one: dict[str, Any]) -> dict[str, Any]:
        return self.server.newer(one)

    def remove_pod(self, name: str) -> None:
        self.stores.pods.apply(self._newer(objects.a_pod(name)), deleted=True)

    def _show(self, obj: dict[str, Any], *, deleted: bool) -> None:
        target = self.stores.teams if obj["kind"] == "Queue" else self.stores.reserved
        target.apply(json.loads(json.dumps(obj)), deleted=deleted)

    def _show_pod(self, obj: dict[str, Any], *, deleted: bool) -> None:
        self.stores.pods.apply(json.loads(json.dumps(obj)), deleted=deleted)

    def _said_of_pods(self, name: str, body: dict[str, Any]) -> None:
        if name not in self.pods:
            raise errors.NotFound(404, "NotFound", name)
        self.add(patches.strategic(self.pods[name], body))

    def waiting_for(self, name: str = "pod") -> pods.Waits | None:
        """What a pod's condition says, once all that is due is written."""
        while self.saying.write_one():
            continue
        return pods.parse(self.pods[name]).waits

    def change_pod(self, name: str, **status: Any) -> None:
        """What others write of a pod: `node` is its spec.nodeName, the rest its status."""
        pod = self.pods[name]
        node = status.pop("node", None)
        spec = {**pod["spec"], **({"nodeName": node} if node else {})}
        self.add({**pod, "spec": spec, "status": {**pod["status"], **status}})

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

    def put_node(
        self, name: str, labels: dict[str, str] | None = None, /, **spec: Any
    ) -> dict[str, Any]:
        """A Node as others have it now: its spec, and labels of theirs beside what was applied."""
        made = objects.a_node(name, **spec)
        meta = self.server.nodes.get(name, made)["metadata"]
        meta = {**meta, "labels": {**meta["labels"], **(labels or {})}}
        return self.server.keep_node({**made, "metadata": meta})

    def cordon(self, node: str) -> None:
        self.put_node(node, unschedulable=True)

    def node_of(self, name: str = "claim") -> str | None:
        """The node that a claim's allocation is for."""
        return cluster.pinned_node(self.claim(name))

    def device(self, name: str = "claim") -> str | None:
        allocation = self.claim(name).allocation
        return allocation.results[0].device.device if allocation else None


def _bad(key: ids.Key, error: errors.BadInput) -> None:
    raise AssertionError(f"{key}: {error}")
