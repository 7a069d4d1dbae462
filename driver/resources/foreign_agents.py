"""Detects other agents that allocate a node's GPUs, by API objects. Pure.

Two agents that allocate one GPU allocate it twice: each counts its own claims only. Only certain
cases are reported.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from driver import names
from driver.resources import fields

MIG_STATE_LABEL: Final = "nvidia.com/mig.config.state"
"""Of the GPU Operator's MIG manager: `pending`, `rebooting`, then `success` or `failed`."""
MIG_CONFIG_LABEL: Final = "nvidia.com/mig.config"
"""What the MIG manager is to make of the node; absent, it does nothing there."""
MIG_CHANGING: Final = frozenset({"pending", "rebooting"})
_PLUGINS_RESOURCE = re.compile(r"nvidia\.com/(gpu(\.shared)?|mig-.+)")
_ALLOCATORS = frozenset({"controller", "scheduler"})


def device_plugin(allocatable: Mapping[str, int]) -> Mapping[str, int]:
    """The GPUs and parts of them that a device plugin serves on a node, by their resource.

    Only device plugins put resources of a vendor into `status.allocatable`: where a DeviceClass
    has an `extendedResourceName` (KEP-5004), kube-scheduler counts by the slices.
    """
    return {
        name: amount
        for name, amount in sorted(allocatable.items())
        if amount > 0 and _PLUGINS_RESOURCE.fullmatch(name)
    }


def mig_state(labels: Mapping[str, str]) -> str:
    """The state of a MIG manager that is at work on the node; empty when none is."""
    state = labels.get(MIG_STATE_LABEL, "")
    return state if state in MIG_CHANGING else ""


def find_foreign(stored: Iterable[fields.Raw]) -> tuple[str, ...]:
    """Names of slices, of our driver's name and one node, that are certainly not Ration's.

    Each of our devices says who allocates it, monitors aside; nobody else's has that attribute. A
    slice without devices may be anybody's. Raises BadInput.
    """
    return tuple(
        sorted(
            fields.text(fields.mapping(item, "metadata"), "name")
            for item in stored
            if any(not _is_ours(device) for _, device in _devices(item))
        )
    )


def _devices(obj: fields.Raw) -> Iterable[tuple[str, fields.Raw]]:
    return fields.objects(fields.mapping(obj, "spec"), "devices", "spec")


def _is_ours(device: fields.Raw) -> bool:
    attributes = fields.mapping(device, "attributes")
    kind = fields.mapping(attributes, names.ATTR_TYPE).get("string")
    allocator = fields.mapping(attributes, names.ATTR_ALLOCATOR).get("string")
    return allocator in _ALLOCATORS or kind == names.TYPE_MONITOR
