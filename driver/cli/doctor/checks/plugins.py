"""Components of the GPU Operator, or installed apart, that give out or change GPUs as well."""

from collections.abc import Iterator

from driver.cli.doctor.checks import facts, findings
from driver.resources import fields

_DEVICE_PLUGIN = ("nvidia-device-plugin",)
_MIG_MANAGER = ("nvidia-mig-manager",)


def device_plugins(seen: facts.Facts) -> Iterator[findings.Finding]:
    """A DaemonSet of NVIDIA's device plugin: harmless where its nodes are not Ration's."""
    if not facts.has_plugin(seen):
        return
    if isinstance(seen.daemon_sets, facts.Unreadable):
        yield findings.unreadable_finding("device plugin", seen.daemon_sets)
        return
    for item, count in _running(seen.daemon_sets, _DEVICE_PLUGIN):
        text = f"DaemonSet {item} runs on {count} nodes; Ration publishes nothing beside it"
        fix = "on Ration's nodes: label nvidia.com/gpu.deploy.device-plugin=false"
        yield findings.Finding("device plugin", findings.State.NOTE, text, fix)


def mig_managers(seen: facts.Facts) -> Iterator[findings.Finding]:
    """A DaemonSet of the MIG manager, which undoes MIG instances that Ration made."""
    if isinstance(seen.daemon_sets, facts.Unreadable) or not facts.has_plugin(seen):
        return  # `device_plugins` has told
    for item, count in _running(seen.daemon_sets, _MIG_MANAGER):
        text = f"DaemonSet {item} runs on {count} nodes; it changes GPUs when their label changes"
        fix = "on Ration's nodes: label nvidia.com/gpu.deploy.mig-manager=false"
        yield findings.Finding("mig manager", findings.State.NOTE, text, fix)


def _running(result: tuple[fields.Raw, ...], names: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield DaemonSets of that name with pods, as `namespace/name` and number of nodes."""
    for item in result:
        name = facts.name(item)
        message = (name, *facts.labels(item).values())
        if not any(word.startswith(names) for word in message):
            continue
        count = fields.integer(fields.mapping(item, "status"), "currentNumberScheduled")
        if count:
            namespace = fields.text(fields.mapping(item, "metadata"), "namespace")
            yield f"{namespace}/{name}", count
