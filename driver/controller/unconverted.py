"""Pods that wait for a device plugin's resource in a namespace whose label keeps them so (D21).

Who set the label may not be who made the pod: the pod is told, by one event.
"""

import itertools
import threading
from collections.abc import Callable, Mapping

from driver import clock, ids, names, reasons
from driver.controller import ports, telling
from driver.controller.admission import conversion
from driver.resources import pods

LOOK_S = 30.0
Labels = Callable[[str], Mapping[str, str]]
"""The labels of a namespace; none where it is not known."""


def message(pod: pods.Pod, labels: Mapping[str, str]) -> str:
    """What to tell a pod; empty where there is nothing to tell.

    Told are those that kube-scheduler refused for exactly that resource: where a device plugin
    serves it, a pod that was left alone is as it should be.
    """
    waits = not pod.node and not pod.deleting and pod.verdict.refused
    if not waits or labels.get(names.CONVERT_LABEL) != "false":
        return ""
    asked = {name: count for name, count in pod.requests.items() if count}
    lacking = sorted(
        f"{name}={count}"
        for name, count in asked.items()
        if conversion.is_convertible(name) and _lacks(pod.verdict.message, name)
    )
    if not lacking:
        return ""
    return (
        f"asks {', '.join(lacking)}, which no node has left; it was not converted to a claim, for "
        f"its namespace has the label {names.CONVERT_LABEL}=false. Make the pod anew without the "
        "label, or with a ResourceClaim"
    )


def _lacks(words: str, name: str) -> bool:
    """`1 Insufficient nvidia.com/gpu.` names it, and not `nvidia.com/gpu.shared`."""
    found = words.replace(",", " ").split()
    return any(
        before == "Insufficient" and one.rstrip(".") == name
        for before, one in itertools.pairwise(found)
    )


class Unconverted:
    """Tells each such pod once. `waiting` are all pods there are, by key."""

    def __init__(
        self,
        waiting: Callable[[], Mapping[ids.Key, pods.Pod]],
        labels: Labels,
        recorder: ports.Recorder,
        time: clock.Clock,
    ) -> None:
        self._pods = waiting
        self._labels = labels
        self._recorder = recorder
        self._clock = time
        self._told: set[ids.PodUid] = set()

    def run(self, stop: threading.Event) -> None:
        """Look every half minute until `stop` is set."""
        while not self._clock.wait(stop, LOOK_S):
            self.look()

    def look(self) -> None:
        """Tell those that have not been told."""
        found = self._pods().values()
        self._told &= {one.uid for one in found}
        for pod in found:
            if pod.uid in self._told:
                continue
            if text := message(pod, self._labels(pod.namespace)):
                self._told.add(pod.uid)
                reason = reasons.Reason.NOT_CONVERTED.value
                self._recorder.event(telling.pod_ref(pod), reason, text, warning=True)
