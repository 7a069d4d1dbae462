"""NVLink: the node's GPUs that reach each other."""

import dataclasses
from collections.abc import Iterator, Sequence

import pynvml

from driver import ids
from driver.devices import model
from driver.kubeletplugin.nvml import errors as nvml_errors


@dataclasses.dataclass(frozen=True, slots=True)
class Links:
    """Remote ends of a GPU's active NVLinks."""

    switched: bool = False
    remotes: frozenset[ids.PciAddress] = frozenset()


def read_links(pci: ids.PciAddress, handle: object) -> Links:
    """Return the remote ends of a GPU's links. Raises DeviceFault."""
    ends = list(_read_ends(pci, handle))
    remotes = frozenset(end for end in ends if end is not None)
    return Links(switched=None in ends, remotes=remotes)


def _read_ends(pci: ids.PciAddress, handle: object) -> Iterator[ids.PciAddress | None]:
    """Yield the GPU at the end of each active link; None for a switch."""
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        state = nvml_errors.call_optional(pci, pynvml.nvmlDeviceGetNvLinkState, handle, link)
        if state is None:
            return  # past the last link, or a GPU without any
        if state != pynvml.NVML_FEATURE_ENABLED:
            continue
        kind = nvml_errors.call_optional(
            pci, pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link
        )
        if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            yield None
        elif kind == pynvml.NVML_NVLINK_DEVICE_TYPE_GPU:
            remote = nvml_errors.call_optional(
                pci, pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link
            )
            if remote is not None:
                yield nvml_errors.parse_pci_address(remote)


def connect_peers(read: Sequence[tuple[model.Gpu, Links]]) -> tuple[model.Gpu, ...]:
    """Return the GPUs with their peers: a node's switches form one fabric."""
    switched = frozenset(gpu.pci for gpu, links in read if links.switched)
    return tuple(
        dataclasses.replace(
            gpu,
            nvlink_peers=(links.remotes | (switched if links.switched else frozenset()))
            - {gpu.pci},
        )
        for gpu, links in read
    )
