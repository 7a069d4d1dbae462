"""What a face says of itself: its attributes (D13), and how much of the GPU it is."""

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
    """The attributes of a face. `allocator` is `controller` or `scheduler` (D2).

    `peers` is the bitmask of the GPU's NVLink neighbours. What is not known is left out:
    Kubernetes knows no empty attribute.
    """
    found = {
        **_kind_attributes(face, peers),
        **_gpu_attributes(face.gpu),
        names.ATTR_ALLOCATOR: None if isinstance(face, faces.MonitorFace) else allocator,
    }
    return {key: value for key, value in found.items() if value is not None}


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
    """At most as many bytes as the API allows, no character cut in two."""
    return text.encode()[:_STRING_LIMIT].decode(errors="ignore")


def peer_mask(gpu: model.Gpu, order: tuple[ids.PciAddress, ...]) -> int:
    """NVLink neighbours as a bitmask over the node's GPUs in PCI order."""
    return sum(1 << i for i, pci in enumerate(order) if pci in gpu.nvlink_peers)


def compute_percent(face: faces.Face) -> int:
    """How much of the GPU's multiprocessors the face has, in percent, rounded down."""
    if not isinstance(face, faces.MigFace) or face.gpu.mig is None:
        return faces.FULL_COMPUTE_PERCENT
    most = max(one.engines.multiprocessors for one in face.gpu.mig.profiles)
    part = face.profile.engines.multiprocessors
    return faces.FULL_COMPUTE_PERCENT * part // most if most else faces.FULL_COMPUTE_PERCENT


def semver(driver_version: str) -> Version | None:
    """`580.05.1` is no semver (leading zeros): its numbers are written plainly, three of them."""
    parts = re.findall(r"\d+", driver_version)[:3]
    if not parts:
        return None
    return Version(".".join(str(int(part)) for part in [*parts, "0", "0"][:3]))
