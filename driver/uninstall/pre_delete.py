"""Before the release goes: refuse while claims are in use, stop the controller, let go of claims.

Nothing is changed before it is known that nothing stands against it, and what stands against it
after that starts the controller again.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from driver import clock, errors, names
from driver.controller.commit import allocations
from driver.kube import client, gvr
from driver.resources.core import nodes, pods
from driver.resources.dra import claims
from driver.scheduling.provisioning import annotations as provisioning_annotations
from driver.uninstall import report

_TURNS = 10
_STOP_S = 60.0
_POLL_S = 0.5

Say = Callable[[str], None]
"""Where words go; helm shows them."""


class InUse(errors.RationError):
    """Claims are in use: it is not uninstalled."""


class PreDelete:
    """Used once, by one thread."""

    def __init__(
        self, kube: client.KubeClient, release: report.Release, time: clock.Clock, say: Say
    ) -> None:
        self._kube = kube
        self._release = release
        self._clock = time
        self._say = say

    def run(self) -> None:
        """Make ready to be uninstalled.

        Raises:
            InUse: claims are in use and nobody forced it; the text says which, and what to do.
            ApiError: the API server refused; the controller runs again.
        """
        forced = self._is_forced()
        self._judge(forced=forced)
        replicas = self._scale(0)
        try:
            self._wait_for_controller()
            if replicas:
                self._judge(forced=forced)  # it may have placed a pod until now
            if forced:
                self._say(report.forced_message(self._uses(), self._release))
            self._let_go()
            self._clean_nodes()
            self._clean_pods()
            if self._release.on_demand:
                self._ask_no_more()
                self._unmark()
        except errors.RationError:
            if replicas:
                self._scale(replicas)
            raise

    def _is_forced(self) -> bool:
        release = self._release
        if not release.plugin:
            return False
        try:
            plugin = self._kube.get(gvr.DAEMON_SETS, release.plugin, release.namespace)
        except errors.NotFound:
            return False
        annotations = plugin["metadata"].get("annotations") or {}
        return bool(annotations.get(names.UNINSTALL) == names.FORCE)

    def _judge(self, *, forced: bool) -> None:
        # Claims of other drivers are theirs to end.
        claim_uses = self._uses() if self._release.plugin and not forced else ()
        if claim_uses:
            raise InUse(report.refusal_message(claim_uses, self._release))

    def _uses(self) -> tuple[report.ClaimUse, ...]:
        return report.claims_in_use(*self._world(), self._release.driver)

    def _world(self) -> tuple[list[claims.Claim], report.Pods]:
        """The claims first: a pod that is gone by then has let go of its claims."""
        pod_claims = [claims.parse(obj) for obj in self._kube.list(gvr.RESOURCE_CLAIMS).items]
        users = {
            consumer.uid for claim in pod_claims for consumer in claim.consumers if consumer.is_pod
        }
        groups = {
            (claim.namespace, consumer.name)
            for claim in pod_claims
            for consumer in claim.consumers
            if consumer.is_pod_group
        }
        walk = self._kube.walk(gvr.PODS).items
        return pod_claims, {
            uid: pods.parse(obj)
            for obj in walk
            if (uid := obj["metadata"]["uid"]) in users or _group(obj) in groups
        }

    def _scale(self, replicas: int) -> int:
        """Have so many controllers; how many there were."""
        name, namespace = self._release.controller, self._release.namespace
        if not name:
            return 0
        kind = gvr.DEPLOYMENTS
        try:
            previous = self._kube.get(kind, name, namespace)
            body = {"spec": {"replicas": replicas}}
            self._kube.patch(kind, name, body, namespace=namespace, subresource="scale")
        except errors.NotFound:
            return 0
        return int(previous["spec"].get("replicas", 0))

    def _wait_for_controller(self) -> None:
        left = wait_until_gone(self._kube, self._release, ("controller",), self._clock, _STOP_S)
        if left:
            self._say(f"The controller has not ended, and is not waited for: {', '.join(left)}")

    def _let_go(self) -> None:
        """Take every hold off. Raises Conflict where a claim changes all the time."""
        for _ in range(_TURNS):
            acts = tuple(report.pending_releases(*self._world(), self._release.allocated_drivers))
            if not acts:
                return
            for act in acts:
                self._do(act)
        raise errors.Conflict(409, "Conflict", f"holds stay on {', '.join(_keys(acts))}")

    def _do(self, act: report.DropHolds | report.ClearClaim) -> None:
        claim = act.claim
        if isinstance(act, report.DropHolds):
            body, kind = allocations.render_drop_holds(claim, act.holds), client.PatchType.STRATEGIC
        else:
            body, kind = allocations.render_clear(claim), client.PatchType.MERGE
        try:
            self._kube.patch(
                gvr.RESOURCE_CLAIMS,
                claim.name,
                body,
                namespace=claim.namespace,
                subresource="status",
                kind=kind,
            )
        except (errors.Conflict, errors.NotFound):
            return  # it is looked at again
        self._say(f"Let go of claim {claim.key}")

    def _clean_nodes(self) -> None:
        """Take our condition off the Nodes."""
        ours = {"type": names.NODE_CONDITION, "$patch": "delete"}
        for node in self._kube.list(gvr.NODES).items:
            message = node.get("status", {}).get("conditions") or ()
            if not any(item["type"] == names.NODE_CONDITION for item in message):
                continue
            self._kube.patch(
                gvr.NODES,
                node["metadata"]["name"],
                {"metadata": {"uid": node["metadata"]["uid"]}, "status": {"conditions": [ours]}},
                subresource="status",
                kind=client.PatchType.STRATEGIC,
            )

    def _clean_pods(self) -> None:
        """Take our condition off the pods that wait: nobody will answer them."""
        pending = self._kube.list(gvr.PODS, field_selector="status.phase=Pending").items
        for pod in map(pods.parse, pending):
            if pod.pending is not None:
                self._quiet(pod)

    def _quiet(self, pod: pods.Pod) -> None:
        body, kind = pods.render_pending(pod, None), client.PatchType.STRATEGIC
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            self._kube.patch(
                gvr.PODS,
                pod.name,
                body,
                namespace=pod.namespace,
                subresource="status",
                kind=kind,
            )

    def _ask_no_more(self) -> None:
        """Delete the pods that ask for nodes: no autoscaler is to bring one for them."""
        namespace, label = self._release.namespace, names.PLACEHOLDER_LABEL
        placeholders = self._kube.list(gvr.PODS, namespace=namespace, label_selector=label).items
        for pod in placeholders:
            meta = pod["metadata"]
            with contextlib.suppress(errors.NotFound, errors.Conflict):
                self._kube.delete(gvr.PODS, meta["name"], namespace, uid=meta["uid"])
        if placeholders:
            self._say(f"Deleted {len(placeholders)} pods that asked for nodes.")

    def _unmark(self) -> None:
        """Take our marks off the Nodes; what somebody else has said too stays theirs."""
        node_list = (nodes.parse(item) for item in self._kube.list(gvr.NODES).items)
        ours = [item for item in node_list if item.owned]
        for node in ours:
            with contextlib.suppress(errors.NotFound, errors.Conflict):
                self._kube.patch(
                    gvr.NODES,
                    node.name,
                    provisioning_annotations.apply_body(
                        node, provisioning_annotations.NodeMetadata()
                    ),
                    kind=client.PatchType.APPLY,
                    field_manager=names.NODES_FIELD_MANAGER,
                )
        if ours:
            self._say(f"Took the marks off {len(ours)} Nodes.")


def _keys(acts: tuple[report.DropHolds | report.ClearClaim, ...]) -> list[str]:
    return [str(act.claim.key) for act in acts]


def _group(pod: Mapping[str, Any]) -> tuple[str, str]:
    """Return namespace and name of a pod's PodGroup; the name is "" without one."""
    group = pod["spec"].get("schedulingGroup") or {}
    return pod["metadata"]["namespace"], group.get("podGroupName", "")


def wait_until_gone(
    kube: client.KubeClient,
    release: report.Release,
    components: tuple[str, ...],
    time: clock.Clock,
    within_s: float,
) -> list[str]:
    """Wait for the end of the components' pods; those that are there after `within_s`, in words."""
    until = time.monotonic() + within_s
    selector = release.component_pods(*components)
    while True:
        result = kube.list(gvr.PODS, namespace=release.namespace, label_selector=selector).items
        if not result or time.monotonic() >= until:
            return [
                f"{item['metadata']['name']} on {item['spec'].get('nodeName', 'no node')}"
                for item in result
            ]
        time.wait(threading.Event(), _POLL_S)
