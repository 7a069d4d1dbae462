"""A claim's CDI spec, from what the record names to a checked file.

Records name GPUs by UUID; numbers and paths are looked up when the spec is written, so that a
minor that moved, or a driver that was replaced, ends in the right spec.
"""

from collections.abc import Iterator, Sequence

from driver import errors, ids
from driver.kubeletplugin import checkpoint, discovery, driver_root, steps
from driver.kubeletplugin.cdi import model, store, template

NVIDIA_MAJOR = 195
"""Of /dev/nvidia<minor> (Linux: Documentation/admin-guide/devices.txt)."""


class Injection:
    """Writes, checks for and removes specs. Raises NodeFault, DriverNotReady, BadInput."""

    def __init__(
        self,
        kind: str,
        gpus: discovery.Discovery,
        driver: driver_root.DriverRoot,
        files: store.Store,
    ) -> None:
        self.kind = kind
        self._gpus = gpus
        self._driver = driver
        self._files = files

    def write(self, record: checkpoint.Record) -> None:
        """Write the claim's spec from what the node is now."""
        self._files.write(record.uid, self.render(record.devices))

    def render(self, devices: Sequence[steps.PlannedDevice]) -> bytes:
        """The spec's bytes: checked, canonical, the same for the same node and devices."""
        files = self._driver.files()
        text = template.render(
            self.kind, template.Common(files.nodes, files.mounts), tuple(self._devices(devices))
        )
        return model.canonical(model.parse(text, str(self._driver.path)))

    def exists(self, uid: ids.ClaimUid) -> bool:
        """Whether the claim's spec is there."""
        return self._files.exists(uid)

    def remove(self, uid: ids.ClaimUid) -> None:
        """Remove the claim's spec; none to remove is fine."""
        self._files.remove(uid)

    def uids(self) -> tuple[ids.ClaimUid, ...]:
        """Claims that have a spec of ours."""
        return self._files.uids()

    def _devices(self, devices: Sequence[steps.PlannedDevice]) -> Iterator[template.Device]:
        for device in {one.cdi_id: one for one in devices}.values():
            nodes = tuple(self._gpu_node(uuid) for uuid in device.edits.gpus)
            yield template.Device(device.cdi_name, nodes)

    def _gpu_node(self, uuid: ids.GpuUuid) -> template.DeviceNode:
        gpu = self._gpus.current().by_uuid(uuid)
        if gpu is None:
            raise errors.NodeFault("find", uuid, "the GPU is not, or no longer, on this node")
        node = self._driver.node(f"nvidia{gpu.minor}")
        where = f"{self._driver.path}/dev/nvidia{gpu.minor}"
        if node is None:
            raise driver_root.DriverNotReady("find", where, "is no character device")
        if (node.major, node.minor) != (NVIDIA_MAJOR, gpu.minor):
            found = f"is {node.major}:{node.minor}, expected {NVIDIA_MAJOR}:{gpu.minor}"
            raise errors.NodeFault("use", where, found)
        return node
