"""Outcome of each setting of the old file, one line per setting.

A key that has no line is unknown, and named. Lists are walked by `[]` unless the whole list has a
line of its own.
"""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from driver.api import offerings
from driver.cli.migrate import device_plugin_config
from driver.resources import extended_resources


class SettingFate(StrEnum):
    """Outcome for a setting."""

    USED = "used"
    CHANGED = "changed"
    """What it asked for is not to be had in the same way: somebody has to look at it."""
    DROPPED = "dropped"
    """It has no meaning any more, and nobody has to do anything."""
    UNKNOWN = "unknown"

    @property
    def needs_attention(self) -> bool:
        """Return whether a person has to look at it."""
        return self in {SettingFate.CHANGED, SettingFate.UNKNOWN}


@dataclass(frozen=True, slots=True)
class FateText:
    """A fate and, in a sentence, why and what there is instead."""

    fate: SettingFate
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Outcome for the setting at `path` (`sharing.mps.resources[0].replicas`)."""

    path: str
    value: object
    fate: SettingFate
    text: str

    @property
    def setting(self) -> str:
        """`flags.migStrategy=mixed`; long values are cut."""
        if isinstance(self.value, dict | list) and not self.value:
            return self.path
        shown = self.value if isinstance(self.value, str) else json.dumps(self.value, default=str)
        return f"{self.path}={shown if len(shown) <= _LONG else shown[:_LONG] + '...'}"


_LONG = 60


MAX_TIME_SLICES = 1024
"""Shares of a time-sliced GPU that a NodeOfferings document may say."""


@dataclass(frozen=True, slots=True)
class SettingContext:
    """Context of a setting beside its value.

    `per_gpu`: settings for single GPUs, which the device plugin ignores, are meant. `scheduler`:
    kube-scheduler allocates. `entry` is the element of a list that the setting stands in.
    """

    config: device_plugin_config.Config
    per_gpu: bool = False
    scheduler: bool = False
    entry: object = None

    @property
    def shares_one_gpu(self) -> bool:
        """Return whether several shares are requested as a capacity, as for `.shared`."""
        replicas = self.config.replicas
        return bool(replicas and replicas.rename_by_default) and not self.scheduler

    @property
    def is_part(self) -> bool:
        """Return whether the setting belongs to a MIG profile's resource."""
        name = self.entry.get("name") if isinstance(self.entry, dict) else None
        return (
            extended_resources.mig_profile(device_plugin_config.resource_name(str(name)))
            is not None
        )


Judge = Callable[[object, SettingContext], FateText]


def setting_findings(body: Mapping[str, object], situation: SettingContext) -> tuple[Finding, ...]:
    """Every leaf of a configuration with its fate, in the file's order."""
    return tuple(_walk(body, "", "", situation)) if body else ()


def _walk(value: object, path: str, pattern: str, situation: SettingContext) -> Iterator[Finding]:
    if pattern not in TABLE and (pattern == "" or pattern in _INNER):
        if isinstance(value, dict) and value:
            for key, item in value.items():
                dot = "." if path else ""
                yield from _walk(item, f"{path}{dot}{key}", f"{pattern}{dot}{key}", situation)
            return
        if isinstance(value, list) and value:
            for field_path, item in enumerate(value):
                within = replace(situation, entry=item)
                yield from _walk(item, f"{path}[{field_path}]", f"{pattern}[]", within)
            return
        yield Finding(path, value, SettingFate.DROPPED, "says nothing")
        return
    fate_text = TABLE[pattern](value, situation) if pattern in TABLE else _unknown(pattern)
    yield Finding(path, value, fate_text.fate, fate_text.text)


def _unknown(pattern: str) -> FateText:
    parent, _, key = pattern.rpartition(".")
    below = f"{parent}." if parent else ""
    keys = {item.removeprefix(below) for item in (*TABLE, *_INNER) if item.startswith(below)}
    existing = {item.lower(): item for item in keys if "." not in item and "[]" not in item}
    near = difflib.get_close_matches(key.lower(), existing, n=1)
    hint = f" (did you mean {existing[near[0]]}?)" if near else ""
    return FateText(SettingFate.UNKNOWN, f"is no setting of the device plugin{hint}")


def _used(text: str) -> Judge:
    return lambda _value, _situation: FateText(SettingFate.USED, text)


def _dropped(text: str) -> Judge:
    return lambda _value, _situation: FateText(SettingFate.DROPPED, text)


def _when(true: str, otherwise: str = "it was off, and is not here") -> Judge:
    def judge(value: object, _situation: SettingContext) -> FateText:
        return (
            FateText(SettingFate.CHANGED, true)
            if value
            else FateText(SettingFate.DROPPED, otherwise)
        )

    return judge


def _mig(value: object, situation: SettingContext) -> FateText:
    if value in {None, "none"}:
        return FateText(SettingFate.USED, "GPUs are not offered in parts")
    if value == "mixed":
        return FateText(SettingFate.USED, "parts that exist are offered by their profile")
    if situation.config.replicas is not None:
        text = "parts that exist are offered, each to one claim: shares of parts are not to be had"
        return FateText(SettingFate.CHANGED, text)
    return FateText(SettingFate.USED, "parts that exist are offered, under the name of GPUs")


def _root(value: object, _situation: SettingContext) -> FateText:
    return FateText(SettingFate.USED, f"the chart's driverRoot: {driver_root(value)}")


def driver_root(value: object) -> str:
    """Without a slash at its end, as the chart writes paths."""
    return str(value or "/").rstrip("/") or "/"


def _discovery(value: object, _situation: SettingContext) -> FateText:
    if value == "tegra":
        return FateText(SettingFate.CHANGED, "integrated GPUs (Tegra) are not served")
    return FateText(SettingFate.DROPPED, "GPUs are found by NVML")


def _placement(value: object, _situation: SettingContext) -> FateText:
    if value == "packed":
        return FateText(
            SettingFate.DROPPED, "Ration's controller packs; kube-scheduler takes the first fit"
        )
    text = "shares are packed onto few GPUs, not spread: Ration's controller has the policy `pack`"
    return FateText(SettingFate.CHANGED, text)


def _of_sharing(judge: Judge, *, mps: bool) -> Judge:
    def judged(value: object, situation: SettingContext) -> FateText:
        if mps != situation.config.is_mps:
            return FateText(
                SettingFate.DROPPED, "the device plugin takes sharing.mps where both are said"
            )
        return judge(value, situation)

    return judged


def _rename(value: object, _situation: SettingContext) -> FateText:
    suffix = f"the resource is called <name>{device_plugin_config.SHARED_SUFFIX}"
    return FateText(SettingFate.USED, suffix if value else "the resource keeps its name")


def _more_than_one(value: object, situation: SettingContext) -> FateText:
    if situation.shares_one_gpu:
        fate = SettingFate.CHANGED if value else SettingFate.DROPPED
        return FateText(fate, "several in a container are as many shares of one GPU")
    if situation.config.is_mps:
        text = "several in a container are refused: it has one MPS daemon"
        return FateText(SettingFate.USED if value else SettingFate.CHANGED, text)
    text = "several in a container are shares of as many GPUs; with fewer on a node the pod waits"
    return FateText(SettingFate.CHANGED, text)


def _name(value: object, situation: SettingContext) -> FateText:
    resource = device_plugin_config.resource_name(str(value))
    if resource == device_plugin_config.GPU:
        return FateText(SettingFate.USED, "shares of GPUs")
    if extended_resources.mig_profile(resource) is None:
        return FateText(
            SettingFate.CHANGED, "is neither nvidia.com/gpu nor nvidia.com/mig-<profile>"
        )
    if situation.config.mig_strategy != "mixed":
        return FateText(SettingFate.DROPPED, "there is no such resource without migStrategy mixed")
    return FateText(SettingFate.USED, "the name that pods ask for")


def _devices(value: object, situation: SettingContext) -> FateText:
    if value == "all":
        return FateText(SettingFate.USED, "every device of the resource")
    if not situation.per_gpu:
        text = "the device plugin ignores it and shares all; --per-gpu takes it at its word"
        return FateText(SettingFate.DROPPED, text)
    if isinstance(value, list) and any(not is_gpu(item) for item in value):
        text = "MIG devices are not shared between claims; the GPUs of the list are"
        return FateText(SettingFate.CHANGED, text)
    return FateText(SettingFate.USED, "only these GPUs are shared, the others are whole")


def is_gpu(reference: object) -> bool:
    """Return whether it names a whole GPU, by index or UUID."""
    return str(reference).isdigit() or str(reference).startswith("GPU-")


def _replicas(*, mps: bool) -> Judge:
    most = offerings.MAX_MPS_SHARES if mps else MAX_TIME_SLICES

    def judge(value: object, situation: SettingContext) -> FateText:
        count = int(str(value))
        if count == 1:
            return FateText(SettingFate.USED, "once is not shared")
        if situation.is_part:
            return FateText(
                SettingFate.CHANGED, "a part of a GPU goes to one claim: ask for smaller parts"
            )
        if count > most:
            return FateText(
                SettingFate.CHANGED, f"{most} shares, the most that a GPU is given out in"
            )
        return FateText(SettingFate.USED, f"{count} shares of each GPU")

    return judge


def _imex(value: object, _situation: SettingContext) -> FateText:
    if value:
        text = "IMEX channels are not given; NVIDIA's ComputeDomains give them, beside Ration"
        return FateText(SettingFate.CHANGED, text)
    return FateText(SettingFate.DROPPED, "no channel was given")


_CDI = "containers get devices by CDI, from the kubelet"
_GFD = "is GPU feature discovery's own, which may go on running"
_NAMING = "the device plugin ignores it too; claims select by device.attributes[...].productName"


def _sharing(block: str, *, mps: bool) -> Mapping[str, Judge]:
    judges: Mapping[str, Judge] = {
        "strategy": _dropped("has no value but the empty one"),
        "renameByDefault": _rename,
        "failRequestsGreaterThanOne": _more_than_one,
        "resources[].name": _name,
        "resources[].rename": _dropped("the device plugin ignores it too"),
        "resources[].devices": _devices,
        "resources[].replicas": _replicas(mps=mps),
    }
    return {f"{block}.{key}": _of_sharing(judge, mps=mps) for key, judge in judges.items()}


TABLE: Mapping[str, Judge] = {
    "version": _used("the form of the file"),
    "flags.migStrategy": _mig,
    "flags.failOnInitError": _dropped("kubeletPlugin.nodeSelector says where Ration runs"),
    "flags.mpsRoot": _dropped("MPS daemons have their folders below the chart's stateDir"),
    "flags.nvidiaDriverRoot": _root,
    "flags.nvidiaDevRoot": _dropped("device nodes are taken from the host's /dev"),
    "flags.gdrcopyEnabled": _when("GDRCopy's device is not given to containers"),
    "flags.gdsEnabled": _when("GPUDirect Storage's devices are not given to containers"),
    "flags.mofedEnabled": _when("InfiniBand's devices are not given to containers"),
    "flags.useNodeFeatureAPI": _dropped(_GFD),
    "flags.deviceDiscoveryStrategy": _discovery,
    "flags.plugin.passDeviceSpecs": _dropped(_CDI),
    "flags.plugin.deviceListStrategy": _dropped(_CDI),
    "flags.plugin.deviceIDStrategy": _dropped(_CDI),
    "flags.plugin.cdiAnnotationPrefix": _dropped(_CDI),
    "flags.plugin.nvidiaCTKPath": _dropped("kubeletPlugin.cdiHook names nvidia-cdi-hook"),
    "flags.plugin.containerDriverRoot": _dropped("the chart mounts the driver's files itself"),
    "flags.plugin.sharedDevicesAllocationPolicy": _placement,
    "flags.gfd.oneshot": _dropped(_GFD),
    "flags.gfd.noTimestamp": _dropped(_GFD),
    "flags.gfd.sleepInterval": _dropped(_GFD),
    "flags.gfd.outputFile": _dropped(_GFD),
    "flags.gfd.machineTypeFile": _dropped(_GFD),
    "resources.gpus[].pattern": _dropped(_NAMING),
    "resources.gpus[].name": _dropped(_NAMING),
    "resources.mig[].pattern": _dropped(_NAMING),
    "resources.mig[].name": _dropped(_NAMING),
    **_sharing("sharing.timeSlicing", mps=False),
    **_sharing("sharing.mps", mps=True),
    "imex.channelIDs": _imex,
    "imex.required": _dropped("it says something of channelIDs only"),
}


def _prefixes(pattern: str) -> Iterator[str]:
    parts = pattern.replace("[]", ".[]").split(".")
    for many in range(1, len(parts)):
        yield ".".join(parts[:many]).replace(".[]", "[]")


_INNER = frozenset(prefix for pattern in TABLE for prefix in _prefixes(pattern))
"""Tables and lists on the way to a setting: `sharing`, `sharing.mps.resources[]`."""
