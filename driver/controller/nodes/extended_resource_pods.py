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
from driver.resources.core import pods
from driver.resources.dra import device_classes, slices, taint_rules
from driver.scheduling.allocator.equivalence import selector_match

INTERVAL_S = 30.0
_REASON = reasons.Reason.NOT_CONVERTED
Classes = Mapping[ids.Key, device_classes.DeviceClass]


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
    classes: Callable[[], Classes]
    slices: Callable[[], Mapping[ids.Key, slices.Slice]]
    taint_rules: Callable[[], Mapping[ids.Key, taint_rules.TaintRule]]


def class_requests(
    pod: pods.Pod, by_resource: Mapping[str, device_classes.DeviceClass]
) -> tuple[ClassRequest, ...]:
    """Return the requests for DeviceClasses of a pod that kube-scheduler does not place now."""
    if pod.node or pod.deleting or not pod.verdict.refused:
        return ()
    return tuple(
        ClassRequest(name, count, by_resource[name])
        for name, count in sorted(pod.requests.items())
        if count and name in by_resource
    )


def classes_by_resource(
    classes: Iterable[device_classes.DeviceClass],
) -> Mapping[str, device_classes.DeviceClass]:
    """Return the DeviceClass of each extended resource, as kube-scheduler chooses it.

    Each class has the resource of its own name; of several classes with one
    `extendedResourceName`, the newest has it, then the first by name.
    """
    by_name = sorted(classes, key=lambda device_class: device_class.name, reverse=True)
    by_age = sorted(by_name, key=lambda device_class: device_class.created)
    return {
        resource: device_class
        for device_class in by_age
        for resource in (
            names.CLASS_RESOURCE_PREFIX + device_class.name,
            device_class.extended_resource,
        )
        if resource
    }


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


def message(requests: Sequence[ClassRequest]) -> str:
    """Return the message for a pod with requests for devices of the controller."""
    requested = ", ".join(f"{request.resource}={request.count}" for request in requests)
    classes = ", ".join(dict.fromkeys(request.device_class.name for request in requests))
    return (
        f"requests {requested}, which kube-scheduler allocates by DeviceClass {classes}, and the "
        "controller allocates devices of that class, by ResourceClaims alone. Use a ResourceClaim "
        "for the class in the pod, or leave these devices to kube-scheduler"
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
        by_resource = classes_by_resource(self._caches.classes().values())
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
