"""One scenario on two nodes: what kube-scheduler makes of it, and what the controller does."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from driver import errors, names
from driver.kube import gvr
from tests.e2e import playground

Raw = dict[str, Any]
FILES = Path(__file__).parent / "scenarios"
QUIET = "exec sleep 3600"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Claims, and pods with how each is to end."""

    name: str
    claims: dict[str, Raw]
    pods: tuple[Raw, ...]
    rule: Raw = field(default_factory=dict)
    device_class: Raw = field(default_factory=dict)
    admin: bool = False


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of every file, in order."""
    for path in sorted(FILES.glob("*.yaml")):
        for entry in yaml.safe_load(path.read_text()):
            yield Scenario(
                entry["name"],
                entry["claims"],
                tuple(entry["pods"]),
                entry.get("rule", {}),
                entry.get("class", {}),
                entry.get("admin", False),
            )


class Side:
    """One allocator: its node, a namespace, and what a scenario came to there."""

    def __init__(self, ground: playground.Playground, node: str, *, ours: bool) -> None:
        self.ground = ground
        self.node = node
        self.ours = ours
        self._made: list[tuple[gvr.Resource, str]] = []
        self._turn = 0

    def _fresh(self, name: str) -> str:
        """The kubelet takes no claim by the name of one that it still remembers."""
        return f"t{self._turn}-{name}"

    def _told(self, name: str) -> str:
        return name.partition("-")[2]

    def begin(self, scenario: Scenario) -> None:
        """Make all but the pods."""
        self._turn += 1
        self._label(admin=scenario.admin)
        if scenario.device_class:
            body = {"metadata": {"name": self._class}, "spec": self._meant(scenario.device_class)}
            spec = body["spec"]
            assert isinstance(spec, dict)
            selector = {"cel": {"expression": GPU}}
            spec.setdefault("selectors", [selector])
            self._cluster_wide(gvr.DEVICE_CLASSES, body)
        if scenario.rule:
            self._taint(scenario.rule)
        for name, devices in scenario.claims.items():
            claim = {
                "metadata": {"name": self._fresh(name)},
                "spec": {"devices": self._meant(devices)},
            }
            self.ground.kube.create(gvr.RESOURCE_CLAIMS, claim, self.ground.namespace)

    def start(self, pod: Raw) -> None:
        """Make a pod."""
        body = playground.a_pod(
            self._fresh(pod["name"]),
            claims=tuple(self._fresh(claim) for claim in pod["claims"]),
            command=QUIET,
            nodeSelector=playground.on(self.node),
        )
        self.ground.create(body)

    def settle(self, pod: Raw) -> None:
        """Wait until the pod has ended as it is to."""
        name = self._fresh(pod["name"])
        if pod["expect"] == "Pending":
            self._refused(name, reported=not pod.get("untold"))
            return
        self.ground.running(name, 90)
        if pod["expect"] == "Succeeded":
            self.ground.delete_pod(name)

    def _refused(self, name: str, *, reported: bool) -> None:
        def condition() -> bool:
            conditions = self.ground.pod(name)["status"].get("conditions", [])
            return any(
                (condition["type"], condition["status"]) == ("PodScheduled", "False")
                for condition in conditions
            )

        playground.until(condition, 40, f"{name} is refused by kube-scheduler")
        if self.ours and reported:
            self.ground.told(name, "NoFit", 40)

    def outcome(self) -> Raw:
        """Return what there is now, told alike for both nodes."""
        return {
            "pods": {
                self._told(item["metadata"]["name"]): item["status"].get("phase")
                for item in self.ground.kube.list(gvr.PODS, namespace=self.ground.namespace).items
            },
            "claims": {
                self._told(claim["metadata"]["name"]): self._claim(claim)
                for claim in self.ground.claims()
            },
        }

    def _claim(self, claim: Raw) -> Raw:
        status = claim.get("status", {})
        allocation = json.loads(json.dumps(status.get("allocation")).replace(self.node, "NODE"))
        if allocation is not None:
            allocation.pop("allocationTimestamp", None)
            for result in allocation["devices"]["results"]:
                if "shareID" in result:
                    result["shareID"] = "some"
        users = sorted(
            self._told(entry["name"])
            for entry in status.get("reservedFor", ())
            if entry["resource"] == "pods"
        )
        return {"allocation": self._named(allocation), "users": users}

    def _named(self, allocation: Any) -> Any:
        return json.loads(json.dumps(allocation).replace(self._class, "CLASS"))

    def end(self) -> None:
        """Delete all that the scenario made; its devices are free when this returns."""
        kube, namespace = self.ground.kube, self.ground.namespace
        for item in kube.list(gvr.PODS, namespace=namespace).items:
            kube.delete(gvr.PODS, item["metadata"]["name"], namespace)
        for item in self.ground.claims():
            kube.delete(gvr.RESOURCE_CLAIMS, item["metadata"]["name"], namespace)
        playground.until(self._is_empty, 60, f"the pods and claims on {self.node} go")
        while self._made:
            kind, name = self._made.pop()
            kube.delete(kind, name)

    def _is_empty(self) -> bool:
        pods = self.ground.kube.list(gvr.PODS, namespace=self.ground.namespace).items
        return not pods and not self.ground.claims()

    @property
    def _class(self) -> str:
        return f"{self.node}.example.com"

    def _meant(self, document: Raw) -> Raw:
        document_value: Raw = json.loads(
            json.dumps(document).replace('"CLASS"', f'"{self._class}"')
        )
        return document_value

    def _label(self, *, admin: bool) -> None:
        label = {"resource.kubernetes.io/admin-access": "true" if admin else None}
        body = {"metadata": {"labels": label}}
        self.ground.kube.patch(gvr.NAMESPACES, self.ground.namespace, body)

    def _taint(self, rule: Raw) -> None:
        """Taint a GPU of the node by its place among the GPUs."""
        devices = [
            device["name"]
            for item in self.ground.kube.list(gvr.RESOURCE_SLICES).items
            if item["spec"].get("nodeName") == self.node
            for device in item["spec"].get("devices", ())
            if device["attributes"]["type"] == {"string": names.TYPE_GPU}
        ]
        taint = {key: rule[key] for key in ("key", "value", "effect") if key in rule}
        selector = {"pool": self.node, "device": sorted(devices)[rule["device"]]}
        body = {
            "metadata": {"name": f"{self.node}-slow"},
            "spec": {"deviceSelector": selector, "taint": taint},
        }
        self._cluster_wide(gvr.DEVICE_TAINT_RULES, body)

    def _cluster_wide(self, kind: gvr.Resource, body: Raw) -> None:
        self.ground.kube.create(kind, body)
        self._made.append((kind, body["metadata"]["name"]))


GPU = 'device.driver == "gpu.ration.dev" && device.attributes["gpu.ration.dev"].type == "gpu"'


def run(scenario: Scenario, sides: tuple[Side, Side]) -> tuple[Raw, Raw]:
    """Both outcomes of a scenario; what it made is gone afterwards."""
    try:
        _both(sides, lambda side: side.begin(scenario))
        for pod in scenario.pods:
            _both(sides, lambda side, pod=pod: side.start(pod))  # type: ignore[misc]
            _both(sides, lambda side, pod=pod: side.settle(pod))  # type: ignore[misc]
        first, second = (side.outcome() for side in sides)
        return first, second
    finally:
        _both(sides, lambda side: side.end())


def _both(sides: tuple[Side, Side], act: Callable[[Side], None]) -> None:
    for side in sides:
        try:
            act(side)
        except (AssertionError, errors.ApiError) as error:
            raise AssertionError(f"on {side.node}: {error}") from error
