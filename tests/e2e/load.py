"""Pods with claims, made one after the other as others end, until a number of claims is reached."""

import collections
import random
import threading
import time
from concurrent import futures
from dataclasses import dataclass
from typing import Any

from driver import errors
from driver.kube import client, gvr
from driver.resources.core import pods
from driver.resources.dra import claims
from tests.e2e import fleet, kubelets

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """One kind of claim: how often among all, of which class, how many devices, how much of each.

    `allocator`: only devices that this one gives out; "" for any. The mix is widened here once the
    controller gives out more than whole GPUs.
    """

    weight: int
    device_class: str
    count: int = 1
    capacity: tuple[tuple[str, str], ...] = ()
    allocator: str = ""

    def spec(self) -> Raw:
        exactly: Raw = {"deviceClassName": self.device_class, "count": self.count}
        if self.capacity:
            exactly["capacity"] = {"requests": dict(self.capacity)}
        if self.allocator:
            text = f'device.attributes["gpu.ration.dev"].allocator == "{self.allocator}"'
            exactly["selectors"] = [{"cel": {"expression": text}}]
        return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


WHOLE = "gpu.ration.dev"
GPUS = 8
"""Of a node: no pod asks for more."""
EITHER = tuple(
    Ask(weight, WHOLE, count, allocator=allocator)
    for weight, count in ((6, 1), (2, 2), (1, 4))
    for allocator in ("", "controller", "scheduler")
)
WHOLE_GPUS = (Ask(12, WHOLE), Ask(4, WHOLE, 2), Ask(2, WHOLE, 4), Ask(1, WHOLE, 8))


@dataclass(frozen=True, slots=True)
class Measure:
    """Claims in all, least seconds, pods at once, and the kind of claim."""

    claims: int
    at_once: int
    mix: tuple[Ask, ...] = WHOLE_GPUS
    templates: float = 0.2
    anywhere: float = 0.1
    twins: float = 0.25
    seconds: float = 0.0


class Load:
    """`run` is a thread's target. Named claims go when their pod is gone, the others by themselves.

    `done` are the pods that came and went.
    """

    def __init__(
        self, kube: client.KubeClient, namespace: str, zones: tuple[str, ...], seed: int
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._zones = zones
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._lock = threading.Lock()
        self.made = collections.Counter[str]()
        self.live: dict[str, tuple[str, ...]] = {}
        self._closing: set[str] = set()
        self._seen: set[str] = set()
        self.done: set[str] = set()
        self._pool = futures.ThreadPoolExecutor(4)
        self.failures: list[Exception] = []

    def run(self, measure: Measure, stop: threading.Event) -> None:
        """Make pods until the claims are reached."""
        self._templates(measure)
        ends = time.monotonic() + measure.seconds
        while not stop.wait(0.01):
            if self.made["claims"] >= measure.claims and time.monotonic() >= ends:
                return
            if len(self.live) < measure.at_once:
                self._one(measure)

    def gated(self, count: int) -> tuple[str, ...]:
        """Pods under a gate of somebody else's; the names of their claims."""
        names = tuple(f"gated-{number}" for number in range(count))
        for name in names:
            self._claim(name, Ask(1, WHOLE))
            gate = [{"name": "example.com/wait"}]
            self._pod(name, {"c0": {"resourceClaimName": name}}, schedulingGates=gate)
            self.live[name] = (name,)
        return names

    def ungate(self, names: tuple[str, ...]) -> None:
        """Take the gates away."""
        for name in names:
            body = [{"op": "remove", "path": "/spec/schedulingGates"}]
            kind = client.PatchType.JSON
            self._kube.patch(gvr.PODS, name, body, namespace=self._namespace, kind=kind)

    def tidy(self, result: dict[str, pods.Pod]) -> None:
        """Clear up after pods that have finished or are gone; `found` are those there are."""
        self._seen |= result.keys()
        for name in self._seen & {*list(self.live)}:
            pod = result.get(name)
            if name not in self._closing and (pod is None or pod.finished):
                self._closing.add(name)
                self._pool.submit(self._close, name, pod)

    def close(self) -> None:
        self._pool.shutdown()

    def _one(self, measure: Measure) -> None:
        number = self.made["pods"]
        name = f"p{number:05d}"
        count = 2 if self._random.random() < measure.twins else 1
        asks = self._random.choices(
            measure.mix, [answer_value.weight for answer_value in measure.mix], k=count
        )
        if sum(answer_value.count for answer_value in asks) > GPUS:
            asks = asks[:1]
        entries: dict[str, Raw] = {}
        own: list[str] = []
        for index, answer in enumerate(asks):
            if self._random.random() < measure.templates:
                entries[f"c{index}"] = {"resourceClaimTemplateName": template_name(answer)}
            else:
                own.append(f"{name}-{index}")
                self._claim(own[-1], answer)
                entries[f"c{index}"] = {"resourceClaimName": own[-1]}
        zone = (
            None if self._random.random() < measure.anywhere else self._random.choice(self._zones)
        )
        self.live[name] = tuple(own)
        self._pod(name, entries, zone)
        self.made["pods"] += 1
        self.made["claims"] += len(asks)
        self.made["devices"] += sum(answer_value.count for answer_value in asks)

    def _templates(self, measure: Measure) -> None:
        for answer in measure.mix:
            body = {"metadata": {"name": template_name(answer)}, "spec": {"spec": answer.spec()}}
            self._kube.create(gvr.RESOURCE_CLAIM_TEMPLATES, body, self._namespace)

    def _claim(self, name: str, ask: Ask) -> None:
        body = {"metadata": {"name": name}, "spec": ask.spec()}
        self._kube.create(gvr.RESOURCE_CLAIMS, body, self._namespace)

    def _pod(
        self, name: str, entries: dict[str, Raw], zone: str | None = None, **spec: Any
    ) -> None:
        selector = fleet.LANE | ({fleet.ZONE: zone} if zone else {})
        container = {
            "name": "main",
            "image": "ration.local/workload:latest",
            "resources": {
                "requests": {"cpu": "10m"},
                "claims": [{"name": name} for name in entries],
            },
        }
        body = {
            "metadata": {"name": name},
            "spec": {
                "containers": [container],
                "resourceClaims": [{"name": key, **entry} for key, entry in entries.items()],
                "nodeSelector": selector,
                "tolerations": [fleet.TOLERATION],
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 1,
                **spec,
            },
        }
        self._kube.create(gvr.PODS, body, self._namespace)

    def _close(self, name: str, pod: pods.Pod | None) -> None:
        try:
            if pod is not None:
                kubelets.remove_pod(self._kube, name, self._namespace, pod.uid, 0)
            for claim in self.live[name]:
                self._forget(claim)
        except errors.ApiError as failure:
            self.failures.append(failure)
        self.done.add(name)
        del self.live[name]

    def _forget(self, claim: str) -> None:
        try:
            self._kube.delete(gvr.RESOURCE_CLAIMS, claim, self._namespace)
        except errors.NotFound:
            return


def template_name(ask: Ask) -> str:
    words = ("t", ask.device_class.partition(".")[0], str(ask.count), ask.allocator)
    return "-".join(word for word in words if word)


class Rogue:
    """Clears allocations of pods that are not bound yet, as kube-scheduler does when it gives up.

    It goes further: kube-scheduler would leave alone a claim that carries our hold.
    """

    def __init__(self, kube: client.KubeClient, namespace: str, seed: int, every_s: float) -> None:
        self._kube = kube
        self._namespace = namespace
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._every_s = every_s
        self.cleared = 0
        self.missed = 0

    def run(self, kubelet: kubelets.Kubelets, stop: threading.Event) -> None:
        """Until told to stop; `kubelet` knows which pods are bound."""
        while not stop.wait(self._every_s):
            listing = self._kube.list(gvr.RESOURCE_CLAIMS, namespace=self._namespace)
            bound = {
                entry["metadata"]["uid"]
                for entry in kubelet.pods.snapshot().values()
                if entry["spec"].get("nodeName")
            }
            parsed = [claims.parse(item) for item in listing.items]
            loose = [
                parsed for parsed in parsed if parsed.allocation and not _users(parsed) & bound
            ]
            if loose:
                self._clear(self._random.choice(loose))

    def _clear(self, claim: claims.Claim) -> None:
        body = {
            "metadata": {"uid": claim.uid, "resourceVersion": claim.version},
            "status": {"allocation": None, "reservedFor": None, "devices": None},
        }
        try:
            self._kube.patch(
                gvr.RESOURCE_CLAIMS,
                claim.name,
                body,
                namespace=self._namespace,
                subresource="status",
            )
        except (errors.Conflict, errors.NotFound):
            self.missed += 1
        else:
            self.cleared += 1


def _users(claim: claims.Claim) -> set[str]:
    return {consumer.uid for consumer in claim.consumers if consumer.is_pod}
