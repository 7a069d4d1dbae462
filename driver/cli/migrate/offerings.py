"""What the GPUs of a node with an old configuration are offered as: what they were, no more."""

from collections.abc import Iterator
from dataclasses import dataclass

from driver.api import offerings
from driver.cli.migrate import device_plugin_config, settings
from driver.devices import faces
from driver.resources import extended_resources


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """What a pod got by an old resource; `profile` is that of a MIG device, "" for any."""

    kind: faces.Kind
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """Rules for the node's GPUs, without its name, and what each old resource stands for."""

    rules: tuple[offerings.Rule, ...]
    resources: tuple[tuple[str, frozenset[Target]], ...]


def of(config: device_plugin_config.Config, *, per_gpu: bool = False) -> Offer:
    """What a configuration's nodes offer.

    `per_gpu`: `devices`, which the device plugin ignores, says which GPUs are shared.
    """
    entries = [
        one
        for one in _shared(config)
        if one.resource == device_plugin_config.GPU and one.replicas > 1
    ]
    parts = frozenset({faces.Kind.MIG}) if config.mig_strategy != "none" else frozenset()
    everywhere = [one for one in entries if not per_gpu or one.devices == "all"]
    some = [one for one in entries if one not in everywhere]
    shared = _kind(config)
    kind = shared if everywhere else faces.Kind.WHOLE
    count = max((one.replicas for one in everywhere), default=1)
    rules = (
        _rule(kind, count, parts),
        *(
            _rule(shared, one.replicas, parts, selected)
            for one in some
            for selected in _selectors(one.devices)
        ),
    )
    kinds = {kind, shared} if some else {kind}
    return Offer(rules, tuple(_resources(config, kinds, parts)))


def _selectors(devices: device_plugin_config.Devices) -> Iterator[offerings.GpuSelector]:
    if isinstance(devices, int):
        yield offerings.GpuSelector(index=tuple(range(devices)))
    elif isinstance(devices, tuple):
        indices = tuple(int(one) for one in devices if one.isdigit())
        uuids = tuple(one for one in devices if one.startswith("GPU-"))
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
    for one in _shared(config):
        profile = extended_resources.mig_profile(one.resource)
        if profile is not None:
            suffix = device_plugin_config.SHARED_SUFFIX if renamed and one.replicas > 1 else ""
            yield one.resource + suffix, frozenset({Target(faces.Kind.MIG, profile)})
