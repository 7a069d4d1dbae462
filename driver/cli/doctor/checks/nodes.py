"""How each node stands: what it publishes, for whom, and who else is there."""

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
        return tuple(one for one in facts.devices(self.slices) if facts.is_given(one))

    @property
    def has_gpus(self) -> bool:
        """Whether anything says that there is a GPU, or the plugin once did."""
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
    if isinstance(seen.nodes, facts.Unseen):
        yield findings.unseen("nodes", seen.nodes)
        return
    if isinstance(seen.slices, facts.Unseen):
        return  # `features` has told
    found = [_of(obj, seen) for obj in seen.nodes]
    told = [one for one in found if one.name == seen.node or (not seen.node and one.has_gpus)]
    if seen.node and not told:
        fix = "kubectl get nodes"
        yield findings.Finding(
            "node", findings.State.WRONG, "there is no such node", fix, seen.node
        )
    elif not told:
        text = "no node shows a GPU"
        fix = "kubectl describe node NODE: the plugin says why in its events"
        yield findings.Finding("nodes", findings.State.NOTE, text, fix)
    for one in told:
        for check in _CHECKS:
            yield from check(one)


def _of(obj: fields.Raw, seen: facts.Facts) -> _Node:
    node = node_objects.parse(obj)
    info = fields.mapping(fields.mapping(obj, "status"), "nodeInfo")
    slices = () if isinstance(seen.slices, facts.Unseen) else seen.slices
    pods = () if isinstance(seen.pods, facts.Unseen) else seen.pods
    return _Node(
        node,
        fields.text(info, "containerRuntimeVersion"),
        tuple(one for one in slices if fields.mapping(one, "spec").get("nodeName") == node.name),
        any(
            facts.labels(one).get(_COMPONENT) == "kubeletplugin"
            and fields.mapping(one, "spec").get("nodeName") == node.name
            for one in pods
        ),
        _said(node.name, seen),
    )


def _said(node: str, seen: facts.Facts) -> str:
    """The newest warning of the plugin on its Node: which places it looked in for the driver."""
    found = () if isinstance(seen.events, facts.Unseen) else seen.events
    told = [
        (
            fields.text(fields.mapping(one, "series"), "lastObservedTime")
            or fields.text(one, "eventTime"),
            one,
        )
        for one in found
        if one.get("reportingController") == _PLUGIN
        and one.get("type") == "Warning"
        and fields.text(fields.mapping(one, "regarding"), "name") == node
    ]
    if not told:
        return ""
    _, newest = max(told, key=lambda pair: pair[0])
    return f": {newest.get('reason')}: {newest.get('note', '')}"


def _name(one: _Node) -> Iterator[findings.Finding]:
    foreign = foreign_agents.find_foreign(one.slices)
    if not foreign:
        return
    text = f"another driver publishes under the same name: {', '.join(foreign[:3])}"
    fix = (
        "uninstall one of the two, or install Ration under another driverName; left behind: "
        f"kubectl delete resourceslices {' '.join(foreign[:3])}"
    )
    yield findings.Finding("driver name", findings.State.WRONG, text, fix, one.name)


def _device_plugin(one: _Node) -> Iterator[findings.Finding]:
    served = foreign_agents.device_plugin(one.node.allocatable)
    if not served:
        return
    told = ", ".join(f"{name}: {amount}" for name, amount in served.items())
    if one.devices:
        text = f"a device plugin serves {told} beside Ration's {len(one.devices)} devices"
        fix = "make sure that they are other GPUs (kubeletPlugin.beside), or take one of them off"
        yield findings.Finding("device plugin", findings.State.NOTE, text, fix, one.name)
        return
    text = f"a device plugin serves {told}: Ration publishes nothing"
    fix = f"kubectl label node {one.name} nvidia.com/gpu.deploy.device-plugin=false --overwrite"
    yield findings.Finding("device plugin", findings.State.WRONG, text, fix, one.name)


def _mig(one: _Node) -> Iterator[findings.Finding]:
    state = foreign_agents.mig_state(one.node.labels)
    fix = f"kubectl label node {one.name} nvidia.com/gpu.deploy.mig-manager=false --overwrite"
    if state:
        text = f"the MIG manager is at work ({foreign_agents.MIG_STATE_LABEL}={state})"
        yield findings.Finding(
            "mig manager", findings.State.WRONG, text, f"wait; for good: {fix}", one.name
        )
    elif wanted := one.node.labels.get(foreign_agents.MIG_CONFIG_LABEL, ""):
        text = f"label {foreign_agents.MIG_CONFIG_LABEL}={wanted}: a MIG manager keeps to that"
        yield findings.Finding("mig manager", findings.State.NOTE, text, fix, one.name)


def _mig_mode(one: _Node) -> Iterator[findings.Finding]:
    kept = [device for device in one.devices if names.MIG_MODE_TAINT in facts.taints(device)]
    if not kept:
        return
    count = f"{len(kept)} device{'' if len(kept) == 1 else 's'}"
    text = f"{count} kept back: another NVML client holds a GPU, whose MIG mode stays as it is"
    on = [label for label in _MONITORS if one.node.labels.get(label) == "true"]
    fix = "end what reads the GPUs of this node for good (DCGM, a monitoring script)"
    if on:
        off = " ".join(f"{label}=false" for label in on)
        fix = f"kubectl label node {one.name} {off} --overwrite; or {fix}"
    yield findings.Finding("mig mode", findings.State.NOTE, text, fix, one.name)


def _no_plugin(one: _Node) -> str:
    """Say why no pod of the plugin is on the node, as far as its labels tell."""
    if gpu_nodes.has_gpu_label(one.node.labels):
        return "no pod of the plugin is on it: kubeletPlugin.nodeSelector, kubeletPlugin.affinity"
    return f"no pod of the plugin is on it: kubectl label node {one.name} {gpu_nodes.LABELS[0]}"


def _published(one: _Node) -> Iterator[findings.Finding]:
    events = f"kubectl describe node {one.name}: its events say why"
    if not one.slices:
        text = f"nothing is published{one.said}"
        fix = events if one.plugin else _no_plugin(one)
        yield findings.Finding("devices", findings.State.WRONG, text, fix, one.name)
        return
    pools = [fields.mapping(fields.mapping(each, "spec"), "pool") for each in one.slices]
    generation = max(fields.integer(pool, "generation") for pool in pools)
    newest = [pool for pool in pools if fields.integer(pool, "generation") == generation]
    wanted = fields.integer(newest[0], "resourceSliceCount")
    if len(newest) != wanted:
        text = f"{len(newest)} of {wanted} slices of generation {generation}: nobody can allocate"
        yield findings.Finding(
            "devices", findings.State.WRONG, text, f"wait a few seconds, then {events}", one.name
        )
    elif not one.devices:
        text = f"no device is published (generation {generation}){one.said}"
        yield findings.Finding("devices", findings.State.WRONG, text, events, one.name)
    else:
        count = len(one.devices)
        text = f"{count} device{'' if count == 1 else 's'}, generation {generation}"
        yield findings.Finding("devices", findings.State.FINE, text, where=one.name)


def _allocator(one: _Node) -> Iterator[findings.Finding]:
    label = one.node.labels.get(names.ALLOCATOR_LABEL, "")
    shown = {facts.attribute(device, names.ATTR_ALLOCATOR) for device in one.devices} - {""}
    if label and label not in _ALLOCATORS:
        text = f"label {names.ALLOCATOR_LABEL}={label} names no allocator"
        fix = f"kubectl label node {one.name} {names.ALLOCATOR_LABEL}=controller --overwrite"
        yield findings.Finding("allocator", findings.State.WRONG, text, fix, one.name)
    elif any(names.HANDOVER_TAINT in facts.taints(device) for device in one.devices):
        text = "a handover is in progress: nobody gives out the devices"
        yield findings.Finding("allocator", findings.State.NOTE, text, "wait for 30 s", one.name)
    elif shown and label and shown != {label}:
        text = f"the label asks for {label}, the devices are for {', '.join(sorted(shown))}"
        fix = "wait for 10 s; the plugin's pod on this node follows its label"
        yield findings.Finding("allocator", findings.State.WRONG, text, fix, one.name)
    elif shown:
        text = f"{', '.join(sorted(shown))} allocates"
        yield findings.Finding("allocator", findings.State.FINE, text, where=one.name)


def _health(one: _Node) -> Iterator[findings.Finding]:
    said = one.node.gpu_condition
    if said is not None and said.status == "False":
        fix = "docs: explanation/health; the devices' taints say what clears them"
        yield findings.Finding("health", findings.State.WRONG, said.message, fix, one.name)


def _cdi(one: _Node) -> Iterator[findings.Finding]:
    """For containerd CDI is there since 1.7 and on since 2.0; for CRI-O since 1.23."""
    found = re.match(r"(containerd|cri-o)://v?(\d+)\.(\d+)", one.runtime)
    if found is None:
        return
    runtime, version = found[1], (int(found[2]), int(found[3]))
    if version < {"containerd": (1, 7), "cri-o": (1, 23)}[runtime]:
        text = f"{one.runtime} knows no CDI: pods start without their GPU"
        yield findings.Finding(
            "cdi", findings.State.WRONG, text, "upgrade the container runtime", one.name
        )
    elif runtime == "containerd" and version < (2, 0):
        text = f"{one.runtime} has CDI off by default"
        fix = 'enable_cdi = true under plugins."io.containerd.grpc.v1.cri" of its configuration'
        yield findings.Finding("cdi", findings.State.NOTE, text, fix, one.name)
    else:
        yield findings.Finding(
            "cdi", findings.State.FINE, f"{one.runtime} has CDI on", where=one.name
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
