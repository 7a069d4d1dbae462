"""Marks that cordon a node or a GPU, and the writes that set them. Pure.

A whole node is one DeviceTaintRule where the server has those (Kubernetes 1.37): it holds at once,
whether or not the plugin runs. A rule names one device at most, and a GPU is published as some
twenty, which change when MIG is switched: so a GPU is named on its Node, and the plugin taints
whatever it publishes of it. Without rules the whole node is named there too.

Another driver reads no annotation: a GPU of it has a rule for each device that it is published as,
and a whole node one for each pool. They name their target in the annotation `ration.dev/cordon`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from driver import errors, ids, names
from driver.cli.cordon import targets
from driver.devices import cordon

_DIGITS = 10


@dataclass(frozen=True, slots=True)
class CordonMarks:
    """Marks of a node. `rule`: its rule exists; `has_rules`: the server knows them.

    `version` is the Node's resource version. `rule_targets` are the rules of another driver: of
    each, by its name, the target that it cordons.
    """

    annotation: frozenset[str]
    version: str
    rule: bool = False
    has_rules: bool = True
    rule_targets: Mapping[str, targets.Target] = field(default_factory=dict)

    @property
    def is_whole_node(self) -> bool:
        """Return whether the whole node is cordoned for Ration's kubelet plugin."""
        return self.rule or names.ALL in self.annotation

    @property
    def gpus(self) -> frozenset[str]:
        """GPUs that are cordoned individually."""
        named = (target.gpu for target in self.rule_targets.values())
        return frozenset({*self.annotation, *named} - {names.ALL, ""})


@dataclass(frozen=True, slots=True)
class MakeRule:
    """Create the node's rule."""

    body: Mapping[str, Any]

    def __str__(self) -> str:
        return f"create DeviceTaintRule {self.body['metadata']['name']}"


@dataclass(frozen=True, slots=True)
class DropRule:
    """Delete the node's rule."""

    name: str

    def __str__(self) -> str:
        return f"delete DeviceTaintRule {self.name}"


@dataclass(frozen=True, slots=True)
class Annotate:
    """Write the annotation of a node, if it is at `version` still; "" takes it away."""

    node: ids.NodeName
    value: str
    version: str

    @property
    def body(self) -> Mapping[str, Any]:
        """Return the merge patch."""
        noted = {names.CORDON: self.value or None}
        return {"metadata": {"annotations": noted, "resourceVersion": self.version}}

    def __str__(self) -> str:
        if not self.value:
            return f"remove annotation {names.CORDON} from node {self.node}"
        return f"annotate node {self.node} with {names.CORDON}={self.value}"


Write = MakeRule | DropRule | Annotate


def rule_name(node: ids.NodeName) -> str:
    """`ration-cordon-<node>`."""
    return f"ration-cordon-{node}"


def parse_marks(
    node: Mapping[str, Any], rules: Iterable[Mapping[str, Any]] | None, driver: str
) -> CordonMarks:
    """Parse a Node's marks and the rules of a driver; `rules` None: the server has no rules."""
    meta = node["metadata"]
    message = str((meta.get("annotations") or {}).get(names.CORDON, ""))
    listed = tuple(rules or ())
    return CordonMarks(
        cordon.parse_names(message),
        str(meta["resourceVersion"]),
        any(entry["metadata"]["name"] == rule_name(meta["name"]) for entry in listed),
        rules is not None,
        dict(_targets(listed, meta["name"], driver)),
    )


def _targets(
    rules: Iterable[Mapping[str, Any]], node: str, driver: str
) -> Iterator[tuple[str, targets.Target]]:
    for entry in rules:
        text = (entry["metadata"].get("annotations") or {}).get(names.CORDON, "")
        target = targets.Target(*text.split("/", 1)) if text else None
        if target and (target.node, entry["spec"]["deviceSelector"].get("driver")) == (
            node,
            driver,
        ):
            yield entry["metadata"]["name"], target


def cordon_writes(devices: targets.TargetDevices, now: CordonMarks) -> tuple[Write, ...]:
    """Return the writes that cordon the target; none if it is cordoned.

    Raises BadInput for devices of another driver that are not published, or without rules.
    """
    if not devices.is_own:
        return _other_cordon_writes(devices, now)
    target = devices.target
    if now.is_whole_node or (target.gpu and target.gpu in now.annotation):
        return ()
    if not target.gpu and now.has_rules:
        selector = {"driver": devices.driver, "pool": target.node}
        return (MakeRule(_rule(rule_name(target.node), selector)),)
    more = target.gpu or names.ALL
    value = cordon.render_names({*now.annotation, more})
    return (Annotate(target.node, value, now.version),)


def _other_cordon_writes(devices: targets.TargetDevices, now: CordonMarks) -> tuple[Write, ...]:
    target, driver = devices.target, devices.driver
    if not now.has_rules:
        problem = f"devices of {driver} are cordoned by DeviceTaintRules, which the server lacks"
        raise errors.BadInput(str(target), problem)
    if not devices.pools:
        raise errors.BadInput(str(target), f"node {target.node} publishes no device of {driver}")
    named = sorted(devices.gpu.devices) if devices.gpu else [None]
    writes = []
    for pool in sorted(devices.pools):
        for device in named:
            name = _other_rule_name(driver, pool, device)
            if name not in now.rule_targets:
                selector = {
                    "driver": driver,
                    "pool": pool,
                    **({"device": device} if device else {}),
                }
                writes.append(MakeRule(_rule(name, selector, str(target))))
    return tuple(writes)


def uncordon_writes(devices: targets.TargetDevices, now: CordonMarks) -> tuple[Write, ...]:
    """Return the writes that remove the target's own mark.

    GPUs that were cordoned for themselves stay so when their node is uncordoned.

    Raises:
        BadInput: a GPU is cordoned with all of its node.
    """
    target = devices.target
    is_whole = any(not entry.gpu for entry in now.rule_targets.values())
    if target.gpu and (now.is_whole_node if devices.is_own else is_whole):
        text = f"the whole node is cordoned: ration uncordon {target.node}, then cordon the others"
        raise errors.BadInput(str(target), text)
    if not devices.is_own:
        gpu_names = devices.known_as or {""}
        return tuple(
            DropRule(name)
            for name, entry in sorted(now.rule_targets.items())
            if entry.gpu in gpu_names
        )
    gone = {target.gpu, *devices.known_as} if target.gpu else {names.ALL}
    left = now.annotation - gone
    writes: list[Write] = []
    if now.rule and not target.gpu:
        writes.append(DropRule(rule_name(target.node)))
    if left != now.annotation:
        writes.append(Annotate(target.node, cordon.render_names(left), now.version))
    return tuple(writes)


def _other_rule_name(driver: str, pool: str, device: str | None) -> str:
    """Return `ration-cordoned-<driver>-<digest>`: of another form than `rule_name`."""
    digest = hashlib.sha256(f"{pool}/{device or ''}".encode()).hexdigest()[:_DIGITS]
    return f"ration-cordoned-{driver}-{digest}"


def _rule(name: str, selector: Mapping[str, str], target: str = "") -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": "ration", names.CORDON: "true"}
    noted = {"annotations": {names.CORDON: target}} if target else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name, "labels": labels, **noted},
        "spec": {
            "deviceSelector": dict(selector),
            "taint": {"key": names.CORDONED_TAINT, "effect": "NoSchedule"},
        },
    }
