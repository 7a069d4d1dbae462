"""Node labels as GPU feature discovery names them, of what a node's slices say. Pure.

Workloads select nodes by these (`nvidia.com/gpu.product`), and guides tell them to. Of a node with
several models they tell the first in PCI order, as there. Names and meanings: NVIDIA's
k8s-device-plugin, docs/gpu-feature-discovery.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from driver import names
from driver.devices import attributes, faces
from driver.resources.dra import slices

PREFIX = "nvidia.com/"
_MIB = 1 << 20
_NOT_A_LABELS = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 63


def gpu_labels(resource_slices: Iterable[slices.Slice]) -> dict[str, str]:
    """Return the labels of a node with these slices of the driver; empty without a GPU.

    Leaves out values of GPU feature discovery that slices do not hold (the driver's exact version,
    the machine's name) or that depend on how a device plugin shares.
    """
    devices = [device for entry in resource_slices for device in entry.devices]
    gpus = sorted({faces.gpu_name(device.name) or device.name for device in devices})
    whole = [
        device
        for device in sorted(devices, key=lambda device: device.name)
        if device.attributes.get(names.ATTR_TYPE) != names.TYPE_MIG
        and device.attributes.get(names.ATTR_PRODUCT)
    ]
    if not gpus:
        return {}
    parts = any(device.attributes.get(names.ATTR_TYPE) == names.TYPE_MIG for device in devices)
    values = {
        "gpu.present": "true",
        "gpu.count": str(len(gpus)),
        "mig.capable": "true" if parts else "false",
        **(dict(_of_gpu(whole[0])) if whole else {}),
    }
    return {f"{PREFIX}{key}": value for key, value in values.items() if value}


def _of_gpu(device: slices.Device) -> Iterator[tuple[str, str]]:
    """Yield the labels of one GPU's attributes."""
    values = device.attributes
    yield "gpu.product", _word(str(values[names.ATTR_PRODUCT]))
    yield "gpu.family", _word(str(values.get(names.ATTR_ARCHITECTURE, ""))).lower()
    memory = device.capacity.get(names.CAP_MEMORY)
    yield "gpu.memory", str(memory.value.units // _MIB) if memory else ""
    yield from _versions(values, names.ATTR_CUDA_CAPABILITY, "gpu.compute")
    yield from _versions(values, names.ATTR_DRIVER_VERSION, "cuda.driver", "cuda.driver-version")
    yield from _versions(
        values, names.ATTR_CUDA_DRIVER_VERSION, "cuda.runtime", "cuda.runtime-version"
    )


def _versions(
    values: Mapping[str, object], attribute: str, *labels: str
) -> Iterator[tuple[str, str]]:
    """Yield major and minor under the old and the new label names."""
    version = values.get(attribute)
    if isinstance(version, attributes.Version):
        major, minor, *_ = str(version).split(".")
        for label in labels:
            yield f"{label}.major", major
            yield f"{label}.minor", minor


def _word(text: str) -> str:
    """Return a text as a valid label value: `NVIDIA-H100-80GB-HBM3`."""
    return _NOT_A_LABELS.sub("-", text)[:_LONGEST].strip("-_.")
