"""Attributes of a face (D13), and its fraction of the GPU."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from driver import ids, names
from driver.devices import faces, model

_STRING_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Version:
    """A `version` attribute: strict semantic versioning 2.0.0, at most 64 bytes."""

    text: str

    def __str__(self) -> str:
        return self.text


Value = bool | int | str | Version
Attributes = Mapping[str, Value]
_Values = dict[str, Value | None]


def face_attributes(face: faces.Face, peers: int, allocator: str) -> Attributes:
    """Return the attributes of a face. `allocator` is `controller` or `scheduler` (D2).

    `peers` is the bitmask of the GPU's NVLink neighbours. Unknown values are omitted: Kubernetes
    has no empty attribute.
    """
    values = {
        **_kind_attributes(face, peers),
        **_gpu_attributes(face.gpu),
        names.ATTR_ALLOCATOR: None if isinstance(face, faces.MonitorFace) else allocator,
    }
    return {key: value for key, value in values.items() if value is not None}


def _kind_attributes(face: faces.Face, peers: int) -> _Values:
    gpu = face.gpu
    links: _Values = {names.ATTR_NVLINK_PEERS: peers, names.ATTR_NVLINK_DOMAIN: gpu.nvlink_domain}
    match face:
        case faces.WholeFace():
            return {names.ATTR_TYPE: names.TYPE_GPU, names.ATTR_UUID: gpu.uuid, **links}
        case faces.MigFace():
            return {
                names.ATTR_TYPE: names.TYPE_MIG,
                names.ATTR_UUID: face.instance.uuid if face.instance else None,
                names.ATTR_PARENT_UUID: gpu.uuid,
                names.ATTR_PROFILE: face.profile.name,
            }
        case faces.ShareFace():
            sliced = face.sharing is faces.Sharing.TIME_SLICING
            return {
                names.ATTR_TYPE: names.TYPE_SHARE,
                names.ATTR_SHARING: face.sharing.value,
                names.ATTR_UUID: gpu.uuid,
                names.ATTR_INTERVAL: not gpu.virtual if sliced else None,
                **links,
            }
        case faces.MonitorFace():
            return {names.ATTR_TYPE: names.TYPE_MONITOR, names.ATTR_UUID: gpu.uuid}


def _gpu_attributes(gpu: model.Gpu) -> _Values:
    major, minor = gpu.cuda_capability
    cuda_major, cuda_minor = gpu.cuda_driver_version
    return {
        names.ATTR_PRODUCT: _truncate(gpu.product),
        names.ATTR_BRAND: gpu.brand,
        names.ATTR_ARCHITECTURE: gpu.architecture,
        names.ATTR_CUDA_CAPABILITY: Version(f"{major}.{minor}.0"),
        names.ATTR_DRIVER_VERSION: semver(gpu.driver_version),
        names.ATTR_CUDA_DRIVER_VERSION: Version(f"{cuda_major}.{cuda_minor}.0"),
        names.ATTR_ADDRESSING: gpu.addressing,
        names.ATTR_MODULE: gpu.module,
        names.ATTR_PCI_BUS_ID: gpu.pci,
        names.ATTR_PCIE_ROOT: gpu.pcie_root,
        names.ATTR_NUMA_NODE: gpu.numa_node,
    }


def _truncate(text: str) -> str:
    """Truncate to the API's limit in bytes, without cutting a character in two."""
    return text.encode()[:_STRING_LIMIT].decode(errors="ignore")


def peer_mask(gpu: model.Gpu, order: tuple[ids.PciAddress, ...]) -> int:
    """Return NVLink neighbours as a bitmask over the node's GPUs in PCI order."""
    return sum(1 << i for i, pci in enumerate(order) if pci in gpu.nvlink_peers)


def compute_percent(face: faces.Face) -> int:
    """Return the face's part of the GPU's multiprocessors in percent, rounded down."""
    if not isinstance(face, faces.MigFace) or face.gpu.mig is None:
        return faces.FULL_COMPUTE_PERCENT
    total = max(profile.engines.multiprocessors for profile in face.gpu.mig.profiles)
    part = face.profile.engines.multiprocessors
    return faces.FULL_COMPUTE_PERCENT * part // total if total else faces.FULL_COMPUTE_PERCENT


def semver(driver_version: str) -> Version | None:
    """Return a driver version as semver: three numbers without the leading zeros of `580.05.1`."""
    parts = re.findall(r"\d+", driver_version)[:3]
    if not parts:
        return None
    return Version(".".join(str(int(part)) for part in [*parts, "0", "0"][:3]))
