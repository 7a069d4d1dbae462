"""Objects as an API server would keep them, behind the writer's port, in memory."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from driver import errors, names
from driver.kube import client, gvr
from tests.fakes.apiserver import applying, patches, rules
from tests.support.builders import objects


def a_reservation_of(body: dict[str, Any], namespace: str | None, stamp: str) -> dict[str, Any]:
    """Return what was sent, as a server keeps it."""
    name = body["metadata"]["name"]
    meta = {**objects.meta(name, namespace, creationTimestamp=stamp), **body["metadata"]}
    return {**body, "metadata": meta}


def a_pod_of(body: dict[str, Any], stamp: str) -> dict[str, Any]:
    """Return what was sent, as a server with the chart's PriorityClasses keeps it."""
    document = {
        "uid": objects.uid_of(f"{body['metadata']['name']} {stamp}"),
        "creationTimestamp": stamp,
    }
    placeholder = body["spec"].get("priorityClassName") == names.PLACEHOLDER_PRIORITY
    spec = {
        **body["spec"],
        **({"priority": -10, "preemptionPolicy": "Never"} if placeholder else {}),
    }
    meta = {**body["metadata"], **document}
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
    maps: dict[str, dict[str, Any]] = field(default_factory=dict)
    show_pod: Callable[..., None] = lambda _obj, deleted: None  # noqa: ARG005
    read_pod: Callable[[str], dict[str, Any]] = lambda _name: {}
    said_of_pods: Callable[[str, dict[str, Any]], None] = lambda _name, _body: None

    def create(
        self, kind_of: gvr.Resource, body: dict[str, Any], namespace: str | None = None
    ) -> dict[str, Any]:
        name = body["metadata"]["name"]
        if "create" in self.refuse:
            raise self.refuse.pop("create")
        if kind_of is gvr.PODS:
            return self._create_pod(name, body, namespace)
        if kind_of is gvr.CONFIG_MAPS:
            self.maps[f"{namespace}/{name}"] = body
            return body
        assert kind_of is gvr.RESERVATIONS
        if f"{namespace}/{name}" in self.own:
            raise errors.AlreadyExists(409, "AlreadyExists", name)
        return self._keep_own(f"{namespace}/{name}", a_reservation_of(body, namespace, self.now()))

    def delete(
        self, kind_of: gvr.Resource, name: str, namespace: str | None = None, *, uid: str
    ) -> None:
        if kind_of is gvr.PODS:
            self._delete_pod(name, namespace, uid)
            return
        assert kind_of is gvr.RESERVATIONS
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
        result = self.pods.get(key)
        if result is None:
            raise errors.NotFound(404, "NotFound", name)
        if result["metadata"]["uid"] != uid:
            raise errors.Conflict(409, "Conflict", "another of that name")
        self.show_pod(self.newer(self.pods.pop(key)), deleted=True)

    def _keep_pod(self, key: str, changed: dict[str, Any]) -> dict[str, Any]:
        self.pods[key] = self.newer(changed)
        self.show_pod(self.pods[key], deleted=False)
        return json.loads(json.dumps(self.pods[key]))  # type: ignore[no-any-return]

    def change_pod(self, key: str, node: str = "", **status: Any) -> None:
        """Change a created pod as others do: where it is bound, its status."""
        pod = self.pods[key]
        spec = {**pod["spec"], **({"nodeName": node} if node else {})}
        self._keep_pod(key, {**pod, "spec": spec, "status": {**pod["status"], **status}})

    def newer(self, entry: dict[str, Any]) -> dict[str, Any]:
        """An object of the next version."""
        self.version += 1
        return {**entry, "metadata": {**entry["metadata"], "resourceVersion": str(self.version)}}

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

    def get(self, kind_of: gvr.Resource, name: str, namespace: str | None = None) -> dict[str, Any]:
        if kind_of is gvr.CONFIG_MAPS:
            return self._map(name, namespace)
        if kind_of is gvr.PODS:
            return self.read_pod(name)
        assert kind_of is gvr.RESOURCE_CLAIMS
        return json.loads(json.dumps(self.claims[f"{namespace}/{name}"]))  # type: ignore[no-any-return]

    def _map(self, name: str, namespace: str | None) -> dict[str, Any]:
        result = self.maps.get(f"{namespace}/{name}")
        if result is None:
            raise errors.NotFound(404, "NotFound", name)
        return result

    def patch(
        self,
        kind_of: gvr.Resource,
        name: str,
        body: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
        subresource: str = "",
        kind: client.PatchType = client.PatchType.MERGE,
        force: bool = False,
    ) -> dict[str, Any]:
        if kind_of is gvr.PODS:
            return self._patch_pod(name, body, subresource, kind)
        if kind_of is gvr.CONFIG_MAPS:
            merged: dict[str, Any] = patches.merge(self._map(name, namespace), dict(body))
            self.maps[f"{namespace}/{name}"] = merged
            return merged
        if kind_of in {gvr.RESERVATIONS, gvr.QUEUES}:
            assert subresource == "status"
            key = f"{namespace}/{name}" if namespace else name
            merged = self.own[key]
            assert body["metadata"]["uid"] == merged["metadata"]["uid"]
            return self._keep_own(key, patches.merge(merged, dict(body)))
        if kind_of is gvr.NODES:
            assert (subresource, kind) == ("status", client.PatchType.STRATEGIC)
            (condition,) = body["status"]["conditions"]
            self.conditions.append({"node": name, **condition})
            return dict(body)
        assert kind_of is gvr.RESOURCE_CLAIMS
        if subresource and name in self.refuse:
            raise self.refuse.pop(name)
        if not subresource and name in self.unpatchable:
            raise errors.Invalid(422, "Invalid", "spec: Invalid value: field is immutable")
        merged = self.claims[f"{namespace}/{name}"]
        expected = body["metadata"].get("resourceVersion")
        if expected not in {None, merged["metadata"]["resourceVersion"]}:
            raise errors.Conflict(409, "Conflict", "changed")
        if kind is client.PatchType.APPLY:
            assert force
            applied, self.owners = applying.apply(
                merged, dict(body), "controller", self.owners, force=force
            )
            self.said.append((name, body["status"]["devices"][0]["conditions"][0]["type"]))
            return self._keep(f"{namespace}/{name}", applied)
        strategic = kind is client.PatchType.STRATEGIC
        changed = (patches.strategic if strategic else patches.merge)(merged, dict(body))
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
            if "nominatedNodeName" in body["status"] and f"nominate {name}" in self.refuse:
                raise self.refuse.pop(f"nominate {name}")
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
        self.said_of_pods(name, dict(body))
        return self.newer(self.read_pod(name))

    def apply(
        self, kind_of: gvr.Resource, name: str, body: Mapping[str, Any], *, manager: str
    ) -> dict[str, Any]:
        """Server-side apply without force, of Nodes."""
        assert kind_of is gvr.NODES
        if "apply" in self.refuse:
            raise self.refuse.pop("apply")
        if name not in self.nodes:
            raise errors.NotFound(404, "NotFound", name)
        previous = self.nodes[name]
        assert body["metadata"]["uid"] == previous["metadata"]["uid"]
        self.applied.append((name, manager))
        try:
            after, self.node_owners[name] = applying.apply(
                previous, dict(body), manager, self.node_owners.get(name, {}), force=False
            )
        except rules.Refusal as refused:
            raise errors.Conflict(409, "Conflict", str(refused)) from refused
        after["metadata"]["managedFields"] = applying.managed(self.node_owners[name])
        return self.keep_node(after)

    def keep_node(self, changed: dict[str, Any]) -> dict[str, Any]:
        """A Node as it is now, shown."""
        newer = self.newer(changed)
        self.nodes[newer["metadata"]["name"]] = newer
        self.show_node(newer)
        return json.loads(json.dumps(newer))  # type: ignore[no-any-return]

    def add_finalizer(
        self,
        kind_of: gvr.Resource,
        name: str,
        finalizer: str,
        *,
        namespace: str | None = None,
        version: str,
    ) -> dict[str, Any]:
        assert kind_of is gvr.RESOURCE_CLAIMS
        claim = self.claims[f"{namespace}/{name}"]
        if version != claim["metadata"]["resourceVersion"]:
            raise errors.Conflict(409, "Conflict", "changed")
        self.written.append((name, "", "PUT"))
        finalizers = [*claim["metadata"].get("finalizers", []), finalizer]
        changed = {**claim, "metadata": {**claim["metadata"], "finalizers": finalizers}}
        return self._keep(f"{namespace}/{name}", changed)

    def _keep(self, key: str, changed: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        changed["metadata"]["resourceVersion"] = str(self.version)
        self.claims[key] = changed
        return json.loads(json.dumps(changed))  # type: ignore[no-any-return]
