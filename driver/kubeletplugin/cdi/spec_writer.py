"""A claim's CDI spec, from what the record names to a checked file.

Records name GPUs by UUID; numbers and paths are looked up when the spec is written, so that a
minor that moved, or a driver that was replaced, ends in the right spec.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from driver import errors, ids
from driver.devices import mig
from driver.devices import model as devices
from driver.kubeletplugin import ports
from driver.kubeletplugin.cdi import allow, device_metadata, metadata_files, model, store, template
from driver.kubeletplugin.cdi.driver import files as driver_files
from driver.kubeletplugin.host import capabilities, device_node, discovery, driver_root
from driver.kubeletplugin.plan import mig as parts
from driver.kubeletplugin.plan import steps
from driver.kubeletplugin.records import checkpoint

_PIPE = "/tmp/nvidia-mps"  # noqa: S108 - a path in containers
"""CUDA's own default, where a client looks without being told."""
_SHM = "/dev/shm"  # noqa: S108 - a path in containers
PIPE_OPTIONS = ("ro", "nosuid", "nodev", "noexec", "rbind", "rprivate")
"""A client connects to a socket and writes no file; a read-only mount takes nothing from that."""
_SHM_OPTIONS = ("rw", "nosuid", "nodev", "noexec", "rbind", "rprivate")
_TOLD_OPTIONS = ("ro", "nosuid", "nodev", "noexec", "bind", "rprivate")
NVIDIA_MAJOR = 195
"""Of /dev/nvidia<minor> (Linux: Documentation/admin-guide/devices.txt)."""


@dataclass(frozen=True, slots=True)
class ClaimFiles:
    """Where a claim's files are: its spec, and what its containers are told of its devices."""

    specs: store.SpecStore
    metadata: metadata_files.MetadataFiles


class CdiSpecWriter:
    """Writes, checks for and removes specs, and the files that they put into containers.

    Raises NodeFault, DriverNotReady, BadInput.
    """

    def __init__(
        self,
        kind: str,
        gpus: discovery.Discovery,
        driver: driver_files.DriverFiles,
        files: ClaimFiles,
        opening: capabilities.Capabilities,
        daemons: ports.Daemons | None = None,
    ) -> None:
        self.kind = kind
        self._gpus = gpus
        self._driver = driver.root
        self._common = driver
        self._checked: tuple[template.Common, model.ContainerEdits] | None = None
        self._written_from: dict[ids.ClaimUid, template.Common] = {}
        self._files = files
        self._capabilities = opening
        self._daemons = daemons

    def write(self, record: checkpoint.Record) -> None:
        """Write the claim's spec from what the node is now; before it what it mounts."""
        self._write_files(record, *self._render(record))

    def _write_files(self, record: checkpoint.Record, common: template.Common, spec: bytes) -> None:
        now, driver = self._gpus.current(), self._driver_name
        told = {
            request: device_metadata.render(record, request, driver, now)
            for request in device_metadata.carrier_devices(record)
        }
        self._files.metadata.write(record.uid, told)
        self._files.specs.write(record.uid, spec)
        self._written_from[record.uid] = common

    def is_current(self, uid: ids.ClaimUid) -> bool:
        """Whether the claim's spec is known to be made of the driver's and toolkit's files of now.

        Raises DriverNotReady.
        """
        return self._written_from.get(uid) is self._common.read()

    def refresh(self, record: checkpoint.Record) -> bool:
        """Have a spec that is there say what it would say now; whether it said something else.

        The caller holds the claim's GPUs.
        """
        common, spec = self._render(record)
        if self._files.specs.read(record.uid) == spec:
            self._written_from[record.uid] = common
            return False
        self._write_files(record, common, spec)
        return True

    def render(self, record: checkpoint.Record) -> bytes:
        """The spec's bytes: checked, canonical, the same for the same node and record."""
        return self._render(record)[1]

    def _render(self, record: checkpoint.Record) -> tuple[template.Common, bytes]:
        """The spec, and what of it all claims have in common.

        That is checked once, for as long as it is the same.
        """
        common, checked = self._common.read(), self._checked
        known = checked[1] if checked is not None and checked[0] is common else None
        shown = common if known is None else template.Common()
        text = template.render(self.kind, shown, tuple(self._spec_devices(record)))
        shared = str(self._daemons.root) if self._daemons else ""
        hook = common.hooks[0].path if common.hooks else ""
        told = str(self._files.metadata.directory)
        host = str(self._driver.host or "")
        spec = model.parse(text, allow.Limits(str(self._driver.path), shared, hook, told, host))
        spec = model.map_host_paths(spec, self._driver.host_path)
        if known is None:
            self._checked = (common, spec.containerEdits)
        else:
            spec = spec.model_copy(update={"containerEdits": known})
        return common, model.render_canonical(spec)

    def check_writable(self, gpus: Iterable[devices.Gpu] = ()) -> None:
        """Look whether a spec, with these whole GPUs in it, could be written now.

        What a step reveals is not looked for. Raises as `write` would.
        """
        self._common.read()
        self._files.specs.probe()
        for gpu in gpus:
            self._gpu_node(gpu)

    def instances_exist(self, record: checkpoint.Record) -> bool:
        """Whether the claim's MIG instances are there, which a reset takes away.

        The caller holds their GPUs. Of a GPU that cannot be read it is believed.
        """
        places = (_instance_ref(device, record) for device in record.devices)
        return all(self._instance_exists(place) for place in places if place is not None)

    def exists(self, uid: ids.ClaimUid) -> bool:
        """Whether the claim's spec is there, and what it mounts."""
        return self._files.specs.exists(uid) and self._files.metadata.exists(uid)

    def remove(self, uid: ids.ClaimUid) -> None:
        """Remove the claim's spec and files; none to remove is fine."""
        self._written_from.pop(uid, None)
        self._files.specs.remove(uid)
        self._files.metadata.remove(uid)

    def claim_gpus(self, uid: ids.ClaimUid) -> tuple[ids.GpuUuid, ...]:
        """The GPUs that the claim's spec on disk gives to containers, wholly or in part, sorted.

        A torn spec names none: only the machine's death tears it, and that ends its containers.
        """
        data = self._files.specs.read(uid)
        minors = model.gpu_minors(data) if data is not None else frozenset()
        return tuple(sorted(gpu.uuid for gpu in self._gpus.current().gpus if gpu.minor in minors))

    def uids(self) -> tuple[ids.ClaimUid, ...]:
        """Claims that have a spec or a file of ours."""
        return tuple(sorted({*self._files.specs.uids(), *self._files.metadata.uids()}))

    def _instance_exists(self, place: mig.InstanceRef) -> bool:
        try:
            found = self._gpus.refresh_gpu(place.gpu).mig
        except errors.DeviceFault:
            return True
        there = found.find(place) if found else None
        return there is not None and there.uuid is not None

    @property
    def _driver_name(self) -> str:
        return self.kind.partition("/")[0]

    def _spec_devices(self, record: checkpoint.Record) -> Iterator[template.Device]:
        for device in {one.cdi_id: one for one in record.devices}.values():
            place = _instance_ref(device, record)
            nodes = (
                tuple(self._gpu_node(self._require_gpu(uuid)) for uuid in device.edits.gpus)
                if place is None
                else self._instance_nodes(place)
            )
            daemon = device.edits.daemon
            environment = dict(device.edits.environment)
            if daemon:
                environment["CUDA_MPS_PIPE_DIRECTORY"] = _PIPE
            yield template.Device(
                device.cdi_name,
                nodes,
                tuple(f"{key}={value}" for key, value in sorted(environment.items())),
                (
                    *(self._daemon_mounts(daemon) if daemon else ()),
                    *self._metadata_mounts(device, record),
                ),
            )

    def _metadata_mounts(
        self, device: steps.PlannedDevice, record: checkpoint.Record
    ) -> Iterator[template.Mount]:
        """The files of the requests whose first device it is (KEP-5304)."""
        for request, bearer in device_metadata.carrier_devices(record).items():
            if bearer == device.cdi_id:
                host = str(self._files.metadata.path(record.uid, request))
                place = device_metadata.container_path(record, request, self._driver_name)
                yield template.Mount(host, place, _TOLD_OPTIONS)

    def _daemon_mounts(self, key: str) -> tuple[template.Mount, ...]:
        """What a daemon's clients have in common with it, where it is now."""
        found = self._daemons.status(key) if self._daemons else None
        if found is None or found.shm_dir is None:
            raise errors.NodeFault("find", f"MPS daemon {key}", "it is not there")
        return (
            template.Mount(found.pipe_dir, _PIPE, PIPE_OPTIONS),
            template.Mount(found.shm_dir, _SHM, _SHM_OPTIONS),
        )

    def _require_gpu(self, uuid: ids.GpuUuid) -> devices.Gpu:
        gpu = self._gpus.current().by_uuid(uuid)
        if gpu is None:
            raise errors.NodeFault("find", uuid, "the GPU is not, or no longer, on this node")
        return gpu

    def _instance_nodes(self, place: mig.InstanceRef) -> tuple[device_node.DeviceNode, ...]:
        """Its GPU's node, and what opens the instance and its device; all as they are now."""
        try:
            gpu = self._gpus.refresh_gpu(place.gpu)
        except errors.DeviceFault as fault:
            raise errors.NodeFault("read", place.gpu, str(fault)) from fault
        found = gpu.mig.find(place) if gpu.mig else None
        if found is None or found.compute_instance is None:
            name = place.uuid or f"the MIG instance at {place.placement}"
            raise errors.NodeFault("find", f"{name} of {place.gpu}", "it is not there any more")
        needed = self._capabilities.instance_minors(
            gpu.minor, found.gpu_instance, found.compute_instance
        )
        return (self._gpu_node(gpu), *(self._capability_node(*numbers) for numbers in needed))

    def _capability_node(self, major: int, minor: int) -> device_node.DeviceNode:
        """A node of nvidia-caps, which are made when first used: the host may not have it yet.

        With its numbers the runtime can do without (NV-3).
        """
        name = f"nvidia-caps/nvidia-cap{minor}"
        node = self._driver.node(name)
        where = f"{self._driver.path}/dev/{name}"
        if node is not None and (node.major, node.minor) != (major, minor):
            found = f"is {node.major}:{node.minor}, expected {major}:{minor}"
            raise errors.NodeFault("use", where, found)
        return device_node.DeviceNode(f"/dev/{name}", where, major, minor)

    def _gpu_node(self, gpu: devices.Gpu) -> device_node.DeviceNode:
        node = self._driver.node(f"nvidia{gpu.minor}")
        where = f"{self._driver.path}/dev/nvidia{gpu.minor}"
        if node is None:
            raise driver_root.DriverNotReady("find", where, "is no character device")
        if (node.major, node.minor) != (NVIDIA_MAJOR, gpu.minor):
            found = f"is {node.major}:{node.minor}, expected {NVIDIA_MAJOR}:{gpu.minor}"
            raise errors.NodeFault("use", where, found)
        return node


def _instance_ref(device: steps.PlannedDevice, record: checkpoint.Record) -> mig.InstanceRef | None:
    """The instance that a device is: one that the record's steps made, or one that was there."""
    place = device.edits.instance
    if place is None:
        return None
    made = parts.planned_instances(record.steps, record.facts)
    return next((one for one in made if one == replace(place, uuid=one.uuid)), place)
