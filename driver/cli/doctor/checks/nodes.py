"""Checks of each node: what it publishes, for which allocator, and other agents."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from driver import names
from driver.cli.doctor.checks import facts, findings
from driver.resources import fields, foreign_agents, gpu_nodes
from driver.resources.core import nodes as node_objects

_PLUGIN = "ration-kubeletplugin"
_COMPONENT = "app.kubernetes.io/component"
_ALLOCATORS = ("controller", "scheduler")
_MONITORS = ("nvidia.com/gpu.deploy.dcgm-exporter", "nvidia.com/gpu.deploy.dcgm")
"""Labels by which the GPU Operator has DCGM on a node."""


@dataclass(frozen=True, slots=True)
class _Node:
    """One node: `slices` are those of our name, `plugin` whether a pod of the plugin is on it.

    `said` is what the plugin said last of what is wrong with it.
    """

    node: node_objects.Node
    runtime: str
    slices: tuple[fields.Raw, ...]
    plugin: bool
    said: str

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def devices(self) -> tuple[fields.Raw, ...]:
        return tuple(
            device for device in facts.devices(self.slices) if facts.is_allocatable(device)
        )

    @property
    def has_gpus(self) -> bool:
        """Return whether anything indicates a GPU, or the plugin once did."""
        labels = self.node.labels
        return (
            bool(self.devices)
            or gpu_nodes.has_gpu_label(labels)
            or bool(foreign_agents.device_plugin(self.node.allocatable))
            or names.ALLOCATOR_LABEL in labels
            or self.node.gpu_condition is not None
        )


def nodes(seen: facts.Facts) -> Iterator[findings.Finding]:
    """Every node with GPUs, or the one that was asked about."""
    if isinstance(seen.nodes, facts.Unreadable):
        yield findings.unreadable_finding("nodes", seen.nodes)
        return
    if isinstance(seen.slices, facts.Unreadable):
        return  # `features` has told
    if not facts.has_plugin(seen):
        text = "no kubelet plugin of Ration: devices are published by their own drivers"
        yield findings.Finding("nodes", findings.State.NOTE, text)
        return
    node_list = [_of(obj, seen) for obj in seen.nodes]
    message = [
        node for node in node_list if node.name == seen.node or (not seen.node and node.has_gpus)
    ]
    if seen.node and not message:
        fix = "kubectl get nodes"
        yield findings.Finding(
            "node", findings.State.WRONG, "there is no such node", fix, seen.node
        )
    elif not message:
        text = "no node shows a GPU"
        fix = "kubectl describe node NODE: the plugin says why in its events"
        yield findings.Finding("nodes", findings.State.NOTE, text, fix)
    for node in message:
        for check in _CHECKS:
            yield from check(node)


def _of(obj: fields.Raw, seen: facts.Facts) -> _Node:
    node = node_objects.parse(obj)
    info = fields.mapping(fields.mapping(obj, "status"), "nodeInfo")
    slices = () if isinstance(seen.slices, facts.Unreadable) else seen.slices
    pods = () if isinstance(seen.pods, facts.Unreadable) else seen.pods
    return _Node(
        node,
        fields.text(info, "containerRuntimeVersion"),
        tuple(
            slice_
            for slice_ in slices
            if fields.mapping(slice_, "spec").get("nodeName") == node.name
        ),
        any(
            facts.labels(slice_).get(_COMPONENT) == "kubeletplugin"
            and fields.mapping(slice_, "spec").get("nodeName") == node.name
            for slice_ in pods
        ),
        _said(node.name, seen),
    )


def _said(node: str, seen: facts.Facts) -> str:
    """Return the plugin's newest warning on its Node: where it searched for the driver."""
    unreadable = () if isinstance(seen.events, facts.Unreadable) else seen.events
    message = [
        (
            fields.text(fields.mapping(item, "series"), "lastObservedTime")
            or fields.text(item, "eventTime"),
            item,
        )
        for item in unreadable
        if item.get("reportingController") == _PLUGIN
        and item.get("type") == "Warning"
        and fields.text(fields.mapping(item, "regarding"), "name") == node
    ]
    if not message:
        return ""
    _, newest = max(message, key=lambda pair: pair[0])
    return f": {newest.get('reason')}: {newest.get('note', '')}"


def _name(node: _Node) -> Iterator[findings.Finding]:
    foreign = foreign_agents.find_foreign(node.slices)
    if not foreign:
        return
    text = f"another driver publishes under the same name: {', '.join(foreign[:3])}"
    fix = (
        "uninstall one of the two, or install Ration under another driverName; left behind: "
        f"kubectl delete resourceslices {' '.join(foreign[:3])}"
    )
    yield findings.Finding("driver name", findings.State.WRONG, text, fix, node.name)


def _device_plugin(node: _Node) -> Iterator[findings.Finding]:
    served = foreign_agents.device_plugin(node.node.allocatable)
    if not served:
        return
    message = ", ".join(f"{name}: {amount}" for name, amount in served.items())
    if node.devices:
        text = f"a device plugin serves {message} beside Ration's {len(node.devices)} devices"
        fix = "make sure that it serves other GPUs (kubeletPlugin.allowDevicePlugin), or remove one"
        yield findings.Finding("device plugin", findings.State.NOTE, text, fix, node.name)
        return
    text = f"a device plugin serves {message}: Ration publishes nothing"
    fix = f"kubectl label node {node.name} nvidia.com/gpu.deploy.device-plugin=false --overwrite"
    yield findings.Finding("device plugin", findings.State.WRONG, text, fix, node.name)


def _mig(node: _Node) -> Iterator[findings.Finding]:
    state = foreign_agents.mig_state(node.node.labels)
    fix = f"kubectl label node {node.name} nvidia.com/gpu.deploy.mig-manager=false --overwrite"
    if state:
        text = f"the MIG manager is at work ({foreign_agents.MIG_STATE_LABEL}={state})"
        yield findings.Finding(
            "mig manager", findings.State.WRONG, text, f"wait; for good: {fix}", node.name
        )
    elif desired := node.node.labels.get(foreign_agents.MIG_CONFIG_LABEL, ""):
        text = f"label {foreign_agents.MIG_CONFIG_LABEL}={desired}: a MIG manager keeps to that"
        yield findings.Finding("mig manager", findings.State.NOTE, text, fix, node.name)


def _mig_mode(node: _Node) -> Iterator[findings.Finding]:
    retained = [device for device in node.devices if names.MIG_MODE_TAINT in facts.taints(device)]
    if not retained:
        return
    count = f"{len(retained)} device{'' if len(retained) == 1 else 's'}"
    text = f"{count} kept back: another NVML client holds a GPU, whose MIG mode stays as it is"
    on = [label for label in _MONITORS if node.node.labels.get(label) == "true"]
    fix = "end what reads the GPUs of this node for good (DCGM, a monitoring script)"
    if on:
        off = " ".join(f"{label}=false" for label in on)
        fix = f"kubectl label node {node.name} {off} --overwrite; or {fix}"
    yield findings.Finding("mig mode", findings.State.NOTE, text, fix, node.name)


def _no_plugin(node: _Node) -> str:
    """Say why no pod of the plugin is on the node, as far as its labels tell."""
    if gpu_nodes.has_gpu_label(node.node.labels):
        return "no pod of the plugin is on it: kubeletPlugin.nodeSelector, kubeletPlugin.affinity"
    return f"no pod of the plugin is on it: kubectl label node {node.name} {gpu_nodes.LABELS[0]}"


def _published(node: _Node) -> Iterator[findings.Finding]:
    events = f"kubectl describe node {node.name}: its events say why"
    if not node.slices:
        text = f"nothing is published{node.said}"
        fix = events if node.plugin else _no_plugin(node)
        yield findings.Finding("devices", findings.State.WRONG, text, fix, node.name)
        return
    pools = [fields.mapping(fields.mapping(each, "spec"), "pool") for each in node.slices]
    generation = max(fields.integer(pool, "generation") for pool in pools)
    newest = [pool for pool in pools if fields.integer(pool, "generation") == generation]
    desired = fields.integer(newest[0], "resourceSliceCount")
    if len(newest) != desired:
        text = f"{len(newest)} of {desired} slices of generation {generation}: nobody can allocate"
        yield findings.Finding(
            "devices", findings.State.WRONG, text, f"wait a few seconds, then {events}", node.name
        )
    elif not node.devices:
        text = f"no device is published (generation {generation}){node.said}"
        yield findings.Finding("devices", findings.State.WRONG, text, events, node.name)
    else:
        count = len(node.devices)
        text = f"{count} device{'' if count == 1 else 's'}, generation {generation}"
        yield findings.Finding("devices", findings.State.FINE, text, where=node.name)


def _allocator(node: _Node) -> Iterator[findings.Finding]:
    label = node.node.labels.get(names.ALLOCATOR_LABEL, "")
    shown = {facts.attribute(device, names.ATTR_ALLOCATOR) for device in node.devices} - {""}
    if label and label not in _ALLOCATORS:
        text = f"label {names.ALLOCATOR_LABEL}={label} names no allocator"
        fix = f"kubectl label node {node.name} {names.ALLOCATOR_LABEL}=controller --overwrite"
        yield findings.Finding("allocator", findings.State.WRONG, text, fix, node.name)
    elif any(names.HANDOVER_TAINT in facts.taints(device) for device in node.devices):
        text = "a handover is in progress: no device is allocated"
        yield findings.Finding("allocator", findings.State.NOTE, text, "wait for 30 s", node.name)
    elif shown and label and shown != {label}:
        text = f"the label asks for {label}, the devices are for {', '.join(sorted(shown))}"
        fix = "wait for 10 s; the plugin's pod on this node follows its label"
        yield findings.Finding("allocator", findings.State.WRONG, text, fix, node.name)
    elif shown:
        text = f"{', '.join(sorted(shown))} allocates"
        yield findings.Finding("allocator", findings.State.FINE, text, where=node.name)


def _health(node: _Node) -> Iterator[findings.Finding]:
    gpu_condition = node.node.gpu_condition
    if gpu_condition is not None and gpu_condition.status == "False":
        fix = "docs: explanation/health; the devices' taints say what clears them"
        yield findings.Finding(
            "health", findings.State.WRONG, gpu_condition.message, fix, node.name
        )


def _cdi(node: _Node) -> Iterator[findings.Finding]:
    """Yield the CDI findings: containerd has it since 1.7, on since 2.0; CRI-O since 1.23."""
    result = re.match(r"(containerd|cri-o)://v?(\d+)\.(\d+)", node.runtime)
    if result is None:
        return
    runtime, version = result[1], (int(result[2]), int(result[3]))
    if version < {"containerd": (1, 7), "cri-o": (1, 23)}[runtime]:
        text = f"{node.runtime} knows no CDI: pods start without their GPU"
        yield findings.Finding(
            "cdi", findings.State.WRONG, text, "upgrade the container runtime", node.name
        )
    elif runtime == "containerd" and version < (2, 0):
        text = f"{node.runtime} has CDI off by default"
        fix = 'enable_cdi = true under plugins."io.containerd.grpc.v1.cri" of its configuration'
        yield findings.Finding("cdi", findings.State.NOTE, text, fix, node.name)
    else:
        yield findings.Finding(
            "cdi", findings.State.FINE, f"{node.runtime} has CDI on", where=node.name
        )


_CHECKS = (
    _name,
    _device_plugin,
    _mig,
    _mig_mode,
    _published,
    _allocator,
    _health,
    _cdi,
)
