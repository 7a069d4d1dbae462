"""After the release has gone: delete what its processes made, and wait for the nodes' clearing."""

import threading
from collections.abc import Mapping
from dataclasses import replace

from driver import clock, errors, names
from driver.kube import client, gvr
from driver.resources.core import pods
from driver.scheduling.device_ownership import rule_plan
from driver.uninstall import pre_delete, report
from driver.webhook import claim_templates

_GONE_S = 60.0
_POLL_S = 0.5
_COMPONENTS = ("controller", "kubeletplugin", "mps", "admission")
_CLEARING = "clearing"
"""Component of the pods that clear the nodes (driver.kubeletplugin.recovery.cleanup)."""
_CONVERTED = f"{names.CONVERTED}=true"


class PostDelete:
    """Used once, by one thread. Nothing here fails for what cannot be had: it is said instead."""

    def __init__(
        self,
        kube: client.KubeClient,
        release: report.Release,
        time: clock.Clock,
        say: pre_delete.Say,
    ) -> None:
        self._kube = kube
        self._release = release
        self._clock = time
        self._say = say

    def run(self, objects: Mapping[gvr.Resource, str]) -> None:
        """Delete slices, the controller's Reservations, unused templates, and `objects`.

        That is one object of each kind in the release's namespace, "": none. Raises ApiError.
        """
        left = pre_delete.wait_until_gone(
            self._kube, self._release, _COMPONENTS, self._clock, _GONE_S
        )
        if left:
            self._say(f"Pods that have not ended, and are not waited for: {', '.join(left)}")
        selector = f"spec.driver={self._release.driver}"
        result = self._kube.list(gvr.RESOURCE_SLICES, field_selector=selector).items
        gone = sum(self._delete(gvr.RESOURCE_SLICES, item) for item in result)
        namespace = self._release.namespace
        for kind, name in objects.items():
            if name:
                self._delete(kind, {"metadata": {"name": name, "namespace": namespace}})
        if self._release.allocator_rules:
            self._sweep_allocator_rules()
        held = self._sweep_reservations()
        text = f"{gone} ResourceSlices, {held} Reservations and {self._sweep_templates()} templates"
        self._say(f"Deleted {text}.")
        self._tell_of_gates()

    def _tell_of_gates(self) -> None:
        """Name the pods that our scheduling gate keeps waiting: nobody takes it away any more."""
        pending = self._kube.list(gvr.PODS, field_selector="status.phase=Pending").items
        words = report.gated_message(map(pods.parse, pending))
        if words:
            self._say(words)

    def _sweep_allocator_rules(self) -> None:
        """Delete the controller's DeviceTaintRules: kube-scheduler allocates those devices then.

        No controller runs any more, so waiting as long as a handover takes is one (D2).
        """
        for version in gvr.DEVICE_TAINT_RULE_VERSIONS:
            kind = replace(gvr.DEVICE_TAINT_RULES, version=version)
            try:
                rules = self._kube.list(kind, label_selector=f"{names.ALLOCATOR_RULE}=true").items
            except errors.NotFound:
                continue
            if rules:
                self._clock.wait(threading.Event(), rule_plan.HANDOVER_S)
                deleted = sum(self._delete(kind, rule) for rule in rules)
                self._say(f"Deleted {deleted} DeviceTaintRules: kube-scheduler allocates again.")
            return

    def _sweep_reservations(self) -> int:
        """Delete those that the controller made for pods that others went for; how many.

        Those that users made stay. The kind may be gone already.
        """
        try:
            result = self._kube.list(gvr.RESERVATIONS).items
        except errors.NotFound:
            return 0
        ours = [
            reservation for reservation in result if reservation.get("spec", {}).get("evicting")
        ]
        return sum(self._delete(gvr.RESERVATIONS, reservation) for reservation in ours)

    def _sweep_templates(self) -> int:
        """Delete those of converted pods that no pod still names; how many."""
        kinds = gvr.RESOURCE_CLAIM_TEMPLATES, gvr.PODS
        deleted, users = (self._kube.list(kind, label_selector=_CONVERTED).items for kind in kinds)
        live = [template for template in users if not pods.parse(template).finished]
        unused = tuple(claim_templates.unused_templates(deleted, live, self._clock.now()))
        if len(unused) < len(deleted):
            self._say(f"{len(deleted) - len(unused)} templates stay: pods still name them")
        return sum(self._delete(gvr.RESOURCE_CLAIM_TEMPLATES, template) for template in unused)

    def _delete(self, kind: gvr.Resource, result: gvr.Object) -> bool:
        """Delete an object, if it still is the one that was found; whether it was."""
        meta = result["metadata"]
        try:
            self._kube.delete(kind, meta["name"], meta.get("namespace"), uid=meta.get("uid"))
        except (errors.NotFound, errors.Conflict):
            return False
        return True

    def wait_for_nodes(self, daemon_set: str, within_s: float) -> None:
        """Wait until every node is cleared, and name those that are not. Raises ApiError."""
        until = self._clock.monotonic() + within_s
        while left := self._uncleared(daemon_set):
            if self._clock.monotonic() >= until:
                self._say(
                    f"Not cleared within {within_s:.0f} s: {', '.join(left)}. What stays there is "
                    "taken over by the next installation."
                )
                return
            self._clock.wait(threading.Event(), _POLL_S)
        self._say("Every node is cleared.")

    def _uncleared(self, daemon_set: str) -> list[str]:
        """The nodes that have not said done, with what they say instead."""
        namespace = self._release.namespace
        status = self._kube.get(gvr.DAEMON_SETS, daemon_set, namespace).get("status") or {}
        result = self._kube.list(
            gvr.PODS, namespace=namespace, label_selector=self._release.component_pods(_CLEARING)
        ).items
        left = [_told(item) for item in result if not _is_ready(item)]
        missing = int(status.get("desiredNumberScheduled", 0)) - len(result)
        if not status.get("observedGeneration"):
            return ["the nodes are not counted yet"]
        return [*left, *([f"{missing} nodes without a pod"] if missing > 0 else [])]


def _is_ready(pod: gvr.Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def _told(pod: gvr.Object) -> str:
    node = str(pod["spec"].get("nodeName", "no node yet"))
    for item in pod.get("status", {}).get("initContainerStatuses") or ():
        for state in (item.get("state") or {}, item.get("lastState") or {}):
            words = (state.get("terminated") or {}).get("message")
            if words:
                return f"{node} ({str(words).strip()})"
    return node
