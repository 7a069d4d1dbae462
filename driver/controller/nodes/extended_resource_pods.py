"""Reports pods that request DeviceClasses of the controller's devices as extended resources.

kube-scheduler makes a claim for such a pod itself (KEP-5004), and gets no device with the
allocator taint: without a word the pod would wait for ever.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from driver import clock, ids, names, reasons
from driver.controller.commit import reporter
from driver.resources.cel import selector as cel
from driver.resources.core import nodes, pods
from driver.resources.dra import device_classes, slices, taint_rules
from driver.scheduling.allocator.equivalence import selector_match

INTERVAL_S = 30.0
_REASON = reasons.Reason.NOT_CONVERTED
Classes = Mapping[str, device_classes.DeviceClass]
"""DeviceClasses by extended resource."""


@dataclass(frozen=True, slots=True)
class ClassRequest:
    """Extended resource that a pod requests, and the DeviceClass that it stands for."""

    resource: str
    count: int
    device_class: device_classes.DeviceClass


@dataclass(frozen=True, slots=True)
class Caches:
    """Readers of all objects by key."""

    pods: Callable[[], Mapping[ids.Key, pods.Pod]]
    nodes: Callable[[], Mapping[ids.Key, nodes.Node]]
    classes: Callable[[], Mapping[ids.Key, device_classes.DeviceClass]]
    slices: Callable[[], Mapping[ids.Key, slices.Slice]]
    taint_rules: Callable[[], Mapping[ids.Key, taint_rules.TaintRule]]


def class_requests(pod: pods.Pod, by_resource: Classes) -> tuple[ClassRequest, ...]:
    """Return the requests for DeviceClasses of a pod that kube-scheduler does not place now."""
    if pod.node or pod.deleting or not pod.verdict.refused:
        return ()
    return tuple(
        ClassRequest(name, count, by_resource[name])
        for name, count in sorted(pod.requests.items())
        if count and name in by_resource
    )


def has_managed_device(
    device_class: device_classes.DeviceClass, resource_slices: Iterable[slices.Slice]
) -> bool:
    """Return whether the controller allocates a device that the class selects."""
    matchers = [selector_match.get_matcher(text) for text in device_class.selectors]
    return not any(isinstance(matcher, cel.UnusableSelector) for matcher in matchers) and any(
        device.is_tainted_for("controller")
        and all(
            isinstance(matcher, selector_match.Matcher)
            and matcher.matches(resource_slice.driver, device) is True
            for matcher in matchers
        )
        for resource_slice in resource_slices
        for device in resource_slice.devices
    )


def plugin_resources(cluster_nodes: Iterable[nodes.Node]) -> frozenset[str]:
    """Return the resources that nodes have to allocate: a device plugin serves them there."""
    return frozenset(
        resource
        for node in cluster_nodes
        for resource, amount in node.allocatable.items()
        if amount
    )


def message(requests: Sequence[ClassRequest]) -> str:
    """Return the message for a pod with requests for devices of the controller."""
    requested = ", ".join(f"{request.resource}={request.count}" for request in requests)
    unlabelled = [
        request.device_class.name for request in requests if not request.device_class.is_converted
    ]
    return (
        f"requests {requested}, which kube-scheduler allocates by DeviceClass "
        f"{_class_names(request.device_class.name for request in requests)}, and the controller "
        "allocates devices of that class, by ResourceClaims alone. "
        + (_unlabelled(_class_names(unlabelled)) if unlabelled else _LABELLED)
    )


def _class_names(classes: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(classes))


def _unlabelled(classes: str) -> str:
    return (
        f"Label DeviceClass {classes} with {names.CONVERT_LABEL}=true and create the pod again, "
        "for the admission webhook to convert it; or use a ResourceClaim for the class in the "
        "pod, or leave these devices to kube-scheduler"
    )


_LABELLED = (
    f"The class has the label {names.CONVERT_LABEL}=true, and the pod was not converted: it was "
    "created before the label or while the admission webhook did not answer, or its namespace has "
    f"the label {names.CONVERT_LABEL}=false. Create the pod again without that, or with a "
    "ResourceClaim for the class"
)


class ExtendedResourcePodReporter:
    """Sets the condition of such pods, with an event; removes it once it does not apply."""

    def __init__(self, caches: Caches, report: reporter.Reporter, time: clock.Clock) -> None:
        self._caches = caches
        self._reporter = report
        self._clock = time
        self._reported: dict[ids.PodUid, str] = {}

    def run(self, stop: threading.Event) -> None:
        """Look every half minute until `stop` is set."""
        while not self._clock.wait(stop, INTERVAL_S):
            self.report()

    def report(self) -> None:
        """Report new pods and changes; slices are read only if a pod has such a request."""
        by_resource = self._scheduled_resources()
        requests_by_pod = [
            (pod, class_requests(pod, by_resource)) for pod in self._caches.pods().values()
        ]
        managed = self._managed_classes(
            request.device_class for _, requests in requests_by_pod for request in requests
        )
        reported: dict[ids.PodUid, str] = {}
        for pod, requests in requests_by_pod:
            unmet = [request for request in requests if request.device_class.name in managed]
            if unmet:
                reported[pod.uid] = self._report(pod, message(unmet))
            elif not pod.claims and (pod.uid in self._reported or _has_condition(pod)):
                self._reporter.settled(pod)
        self._reported = reported

    def _scheduled_resources(self) -> Classes:
        """Return the DeviceClass of each extended resource that no device plugin serves."""
        served = plugin_resources(self._caches.nodes().values())
        by_resource = device_classes.classes_by_resource(self._caches.classes().values())
        return {
            resource: device_class
            for resource, device_class in by_resource.items()
            if resource not in served
        }

    def _managed_classes(self, classes: Iterable[device_classes.DeviceClass]) -> frozenset[str]:
        """Return the names of the classes with devices of the controller."""
        requested = {device_class.name: device_class for device_class in classes}
        if not requested:
            return frozenset()
        rules = self._caches.taint_rules().values()
        resource_slices = [*taint_rules.apply_rules(self._caches.slices().values(), rules)]
        return frozenset(
            name
            for name, device_class in requested.items()
            if has_managed_device(device_class, resource_slices)
        )

    def _report(self, pod: pods.Pod, text: str) -> str:
        """Report a pod once; the condition of one with claims is the scheduler's."""
        if self._reported.get(pod.uid) != text:
            if pod.claims:
                self._reporter.event(pod, (), _REASON, text)
            else:
                self._reporter.unschedulable(pod, (), _REASON, text)
        return text


def _has_condition(pod: pods.Pod) -> bool:
    """Return whether the pod has the condition, perhaps from another leader."""
    return pod.pending is not None and pod.pending.reason == _REASON.value
