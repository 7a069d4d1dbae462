"""Reports pods that wait for a device plugin's resource in a namespace excluded by label (D21).

The label's author may not be the pod's: the pod gets one event.
"""

import functools
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence

import structlog

from driver import clock, errors, ids, names, reasons
from driver.controller.commit import reporter
from driver.kube import client, gvr
from driver.kube.events import recorder as event_recorder
from driver.resources import extended_resources, fields
from driver.resources.core import pods

_log = structlog.get_logger(__name__)

INTERVAL_S = 30.0
Labels = Callable[[str], Mapping[str, str]]
"""The labels of a namespace; none where it is not known."""


def unmet_requests(pod: pods.Pod) -> tuple[str, ...]:
    """Return the device-plugin resources that a pod waits for: `nvidia.com/gpu=1`.

    Only those named in kube-scheduler's refusal: where a device plugin serves the resource, an
    unconverted pod is correct.
    """
    if pod.node or pod.deleting or not pod.verdict.refused:
        return ()
    return tuple(
        sorted(
            f"{name}={count}"
            for name, count in pod.requests.items()
            if count
            and extended_resources.is_convertible(name)
            and _lacks(pod.verdict.message, name)
        )
    )


def message(resources: Sequence[str]) -> str:
    """Return the event message for a pod that waits for `resources` in an excluded namespace."""
    return (
        f"asks {', '.join(resources)}, which no node has left; it was not converted to a claim, "
        f"for its namespace has the label {names.CONVERT_LABEL}=false. Make the pod anew without "
        "the label, or with a ResourceClaim"
    )


def _lacks(words: str, name: str) -> bool:
    """Return whether the words name `1 Insufficient nvidia.com/gpu.`, and no longer name."""
    tokens = words.replace(",", " ").split()
    return any(
        previous == "Insufficient" and token.rstrip(".") == name
        for previous, token in itertools.pairwise(tokens)
    )


class UnconvertedPodReporter:
    """Reports each such pod once. `waiting` returns all pods by key."""

    def __init__(
        self,
        waiting: Callable[[], Mapping[ids.Key, pods.Pod]],
        labels: Labels,
        recorder: event_recorder.Recorder,
        time: clock.Clock,
    ) -> None:
        self._pods = waiting
        self._labels = labels
        self._recorder = recorder
        self._clock = time
        self._reported: set[ids.PodUid] = set()

    def run(self, stop: threading.Event) -> None:
        """Look every half minute until `stop` is set."""
        while not self._clock.wait(stop, INTERVAL_S):
            self.report()

    def report(self) -> None:
        """Report new pods; each namespace is read once per call."""
        live = self._pods().values()
        self._reported &= {pod.uid for pod in live}
        labels = functools.cache(self._labels)
        for pod in live:
            resources = () if pod.uid in self._reported else unmet_requests(pod)
            if resources and labels(pod.namespace).get(names.CONVERT_LABEL) == "false":
                self._reported.add(pod.uid)
                reason = reasons.Reason.NOT_CONVERTED.value
                self._recorder.event(
                    reporter.pod_ref(pod), reason, message(resources), warning=True
                )


def namespace_labels(kube: client.KubeClient) -> Labels:
    """Return a reader of namespace labels; empty where a namespace cannot be read."""

    def labels(namespace: str) -> Mapping[str, str]:
        try:
            obj = kube.get(gvr.NAMESPACES, namespace)
            return fields.text_map(fields.mapping(obj, "metadata"), "labels", "metadata")
        except errors.RationError as e:
            _log.info("namespace not read", namespace=namespace, error=str(e))
            return {}

    return labels
