"""Offerings that keep the GPUs of an old configuration as they were."""

from collections.abc import Iterator
from dataclasses import dataclass

from driver.api import offerings
from driver.cli.migrate import device_plugin_config, settings
from driver.devices import faces
from driver.resources import extended_resources


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """Device that a pod got by an old resource; `profile` is a MIG device's, "" for any."""

    kind: faces.Kind
    profile: str = ""


@dataclass(frozen=True, slots=True)
class NodeOffer:
    """Rules for the node's GPUs, without its name, and what each old resource stands for."""

    rules: tuple[offerings.Rule, ...]
    resources: tuple[tuple[str, frozenset[Target]], ...]


def offer(config: device_plugin_config.Config, *, per_gpu: bool = False) -> NodeOffer:
    """Return the offer of a configuration's nodes.

    `per_gpu`: `devices`, which the device plugin ignores, says which GPUs are shared.
    """
    entries = [
        replicated
        for replicated in _shared(config)
        if replicated.resource == device_plugin_config.GPU and replicated.replicas > 1
    ]
    parts = frozenset({faces.Kind.MIG}) if config.mig_strategy != "none" else frozenset()
    everywhere = [
        replicated for replicated in entries if not per_gpu or replicated.devices == "all"
    ]
    some = [replicated for replicated in entries if replicated not in everywhere]
    shared = _kind(config)
    kind = shared if everywhere else faces.Kind.WHOLE
    count = max((replicated.replicas for replicated in everywhere), default=1)
    rules = (
        _rule(kind, count, parts),
        *(
            _rule(shared, replicated.replicas, parts, selected)
            for replicated in some
            for selected in _selectors(replicated.devices)
        ),
    )
    kinds = {kind, shared} if some else {kind}
    return NodeOffer(rules, tuple(_resources(config, kinds, parts)))


def _selectors(devices: device_plugin_config.Devices) -> Iterator[offerings.GpuSelector]:
    if isinstance(devices, int):
        yield offerings.GpuSelector(index=tuple(range(devices)))
    elif isinstance(devices, tuple):
        indices = tuple(int(device) for device in devices if device.isdigit())
        uuids = tuple(device for device in devices if device.startswith("GPU-"))
        if indices:
            yield offerings.GpuSelector(index=indices)
        if uuids:
            yield offerings.GpuSelector(uuid=uuids)


def _shared(config: device_plugin_config.Config) -> list[device_plugin_config.Replicated]:
    return list(config.replicas.resources) if config.replicas is not None else []


def _kind(config: device_plugin_config.Config) -> faces.Kind:
    return faces.Kind.MPS if config.is_mps else faces.Kind.TIME_SLICING


def _rule(
    kind: faces.Kind,
    count: int,
    parts: frozenset[faces.Kind],
    gpus: offerings.GpuSelector | None = None,
) -> offerings.Rule:
    mps, turns = kind is faces.Kind.MPS, kind is faces.Kind.TIME_SLICING
    return offerings.Rule(
        gpus=gpus or offerings.GpuSelector(),
        faces=frozenset({kind}) | parts,
        # The instances that exist, which the GPU operator's MIG manager or you made.
        mig=faces.MigMode.STATIC if parts else None,
        mpsShares=min(count, offerings.MAX_MPS_SHARES) if mps else None,
        timeSlices=min(count, settings.MAX_TIME_SLICES) if turns else None,
    )


def _resources(
    config: device_plugin_config.Config, kinds: set[faces.Kind], parts: frozenset[faces.Kind]
) -> Iterator[tuple[str, frozenset[Target]]]:
    renamed = bool(config.replicas and config.replicas.rename_by_default)
    for kind in sorted(kinds):
        name = (
            device_plugin_config.GPU + device_plugin_config.SHARED_SUFFIX
            if renamed and kind in faces.SHARED_KINDS
            else device_plugin_config.GPU
        )
        under = parts if config.mig_strategy == "single" else ()
        yield name, frozenset({Target(kind), *(Target(part) for part in under)})
    if not config.is_mixed:
        return
    for replicated in _shared(config):
        profile = extended_resources.mig_profile(replicated.resource)
        if profile is not None:
            suffix = (
                device_plugin_config.SHARED_SUFFIX if renamed and replicated.replicas > 1 else ""
            )
            yield replicated.resource + suffix, frozenset({Target(faces.Kind.MIG, profile)})
