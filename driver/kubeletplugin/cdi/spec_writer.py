"""Writes a claim's CDI spec from its record, checked.

Records name GPUs by UUID; numbers and paths are looked up when the spec is written, so that a
changed minor, or a replaced driver, results in a correct spec.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

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
"""CUDA's default, used by clients without configuration."""
_SHM = "/dev/shm"  # noqa: S108 - a path in containers
PIPE_OPTIONS = ("ro", "nosuid", "nodev", "noexec", "rbind", "rprivate")
"""A client connects to a socket and writes no file; a read-only mount takes nothing from that."""
_SHM_OPTIONS = ("rw", "nosuid", "nodev", "noexec", "rbind", "rprivate")
_TOLD_OPTIONS = ("ro", "nosuid", "nodev", "noexec", "bind", "rprivate")
_ANY = "device"
"""Name of a device that is checked without its claim."""
_MAX_DEVICES = 1024
NVIDIA_MAJOR = 195
"""Major of /dev/nvidia<minor> (Linux: Documentation/admin-guide/devices.txt)."""


@dataclass(frozen=True, slots=True)
class ClaimFiles:
    """Files of claims: specs, and device metadata for containers."""

    specs: store.SpecStore
    metadata: metadata_files.MetadataFiles


@dataclass(frozen=True, slots=True)
class _Checked:
    """Edits common to all claims: as collected, as checked, and as part of a spec's bytes.

    `devices` are the checked edits of devices without what is their claim's.
    """

    common: template.Common
    edits: model.ContainerEdits
    rendered: bytes
    devices: dict[template.Device, model.ContainerEdits] = field(default_factory=dict)

    def add(self, device: template.Device, edits: model.ContainerEdits) -> model.ContainerEdits:
        """Add a device's edits, and return them; shares differ in their amounts."""
        if len(self.devices) >= _MAX_DEVICES:
            self.devices.clear()
        self.devices[device] = edits
        return edits


class CdiSpecWriter:
    """Writes, checks for and removes specs, and the files they mount.

    Raises NodeFault, DriverNotReady, BadInput.
    """

    def __init__(
        self,
        kind: str,
        gpus: discovery.Discovery,
        driver: driver_files.DriverFiles,
        files: ClaimFiles,
        capabilities: capabilities.Capabilities,
        daemons: ports.Daemons | None = None,
    ) -> None:
        self.kind = kind
        self._gpus = gpus
        self._driver = driver.root
        self._common = driver
        self._checked: _Checked | None = None
        self._metadata = device_metadata.Renderer(self._driver_name)
        self._written_from: dict[ids.ClaimUid, template.Common] = {}
        self._files = files
        self._capabilities = capabilities
        self._daemons = daemons

    def write(self, record: checkpoint.Record) -> None:
        """Write the claim's spec for the current node, and before it the files it mounts."""
        self._write_files(record, *self._render(record))

    def _write_files(self, record: checkpoint.Record, common: template.Common, spec: bytes) -> None:
        inventory = self._gpus.current()
        metadata = {
            request: self._metadata.render(record, request, inventory)
            for request in device_metadata.carrier_devices(record)
        }
        self._files.metadata.write(record.uid, metadata)
        self._files.specs.write(record.uid, spec)
        self._written_from[record.uid] = common

    def is_current(self, uid: ids.ClaimUid) -> bool:
        """Return whether the spec is known to use the current driver and toolkit files.

        Raises DriverNotReady.
        """
        return self._written_from.get(uid) is self._common.read()

    def refresh(self, record: checkpoint.Record) -> bool:
        """Rewrite an existing spec if its content would change; return whether it did.

        The caller holds the claim's GPUs. Those of MIG instances are re-read.
        """
        for gpu in {ref.gpu for ref in _instance_refs(record)}:
            self._reread(gpu)
        common, spec = self._render(record)
        if self._files.specs.read(record.uid) == spec:
            self._written_from[record.uid] = common
            return False
        self._write_files(record, common, spec)
        return True

    def render(self, record: checkpoint.Record) -> bytes:
        """Return the spec's bytes: checked, canonical, deterministic for a node and record."""
        return self._render(record)[1]

    def _render(self, record: checkpoint.Record) -> tuple[template.Common, bytes]:
        """Return the spec, and its edits common to all claims.

        Edits that do not depend on the claim are rendered and checked once, as long as the common
        ones are the same; the claim's own are its devices' names and the mounts of its metadata.
        """
        common = self._common.read()
        limits = self._limits(common)
        checked = self._checked
        if checked is not None and checked.common is not common:
            checked = None
        devices = []
        for device, name, mounts in self._spec_devices(record):
            edits = checked.devices.get(device) if checked is not None else None
            if edits is None:
                spec = self._parse(template.Common() if checked else common, device, limits)
                if checked is None:
                    rendered = model.render_edits(spec.containerEdits)
                    checked = _Checked(common, spec.containerEdits, rendered)
                edits = checked.add(device, spec.devices[0].containerEdits)
            host_path = self._driver.host_path
            devices.append(model.claim_device(edits, name, mounts, limits, host_path))
        if checked is None:
            raise errors.BadInput("CDI devices", "are none", "a device")
        self._checked = checked
        spec = model.build_spec(self.kind, checked.edits, devices)
        return common, model.render_canonical(spec, checked.rendered)

    def _parse(
        self, common: template.Common, device: template.Device, limits: allow.Limits
    ) -> model.Spec:
        """Return a checked spec of one device, with the host's own paths."""
        text = template.render(self.kind, common, (device,))
        return model.map_host_paths(model.parse(text, limits), self._driver.host_path)

    def _limits(self, common: template.Common) -> allow.Limits:
        shared = str(self._daemons.root) if self._daemons else ""
        hook = common.hooks[0].path if common.hooks else ""
        metadata_root = str(self._files.metadata.directory)
        host = str(self._driver.host or "")
        return allow.Limits(str(self._driver.path), shared, hook, metadata_root, host)

    def check_writable(self, gpus: Iterable[devices.Gpu] = ()) -> None:
        """Check that a spec with these whole GPUs could be written now.

        Facts that a step reveals are not checked. Raises as `write` would.
        """
        self._common.read()
        self._files.specs.probe()
        for gpu in gpus:
            self._gpu_node(gpu)

    def instances_exist(self, record: checkpoint.Record) -> bool:
        """Return whether the claim's MIG instances exist, which a reset removes.

        The caller holds their GPUs. If a GPU cannot be read, its instances are assumed to exist.
        """
        return all(self._instance_exists(ref) for ref in _instance_refs(record))

    def exists(self, uid: ids.ClaimUid) -> bool:
        """Return whether the claim's spec and the files it mounts exist."""
        return self._files.specs.exists(uid) and self._files.metadata.exists(uid)

    def remove(self, uid: ids.ClaimUid) -> None:
        """Remove the claim's spec and files; succeeds if there are none."""
        self._written_from.pop(uid, None)
        self._files.specs.remove(uid)
        self._files.metadata.remove(uid)

    def claim_gpus(self, uid: ids.ClaimUid) -> tuple[ids.GpuUuid, ...]:
        """Return the GPUs in the claim's spec on disk, wholly or in part, sorted.

        A torn spec names none: only the machine's crash tears it, and that ends its containers.
        """
        data = self._files.specs.read(uid)
        minors = model.gpu_minors(data) if data is not None else frozenset()
        return tuple(sorted(gpu.uuid for gpu in self._gpus.current().gpus if gpu.minor in minors))

    def uids(self) -> tuple[ids.ClaimUid, ...]:
        """Return the claims with a spec or a file of ours."""
        return tuple(sorted({*self._files.specs.uids(), *self._files.metadata.uids()}))

    def _instance_exists(self, ref: mig.InstanceRef) -> bool:
        try:
            layout = self._gpus.refresh_gpu(ref.gpu).mig
        except errors.DeviceFault:
            return True
        instance = layout.find(ref) if layout else None
        return instance is not None and instance.uuid is not None

    @property
    def _driver_name(self) -> str:
        return self.kind.partition("/")[0]

    def _spec_devices(
        self, record: checkpoint.Record
    ) -> Iterator[tuple[template.Device, str, tuple[template.Mount, ...]]]:
        """Yield devices without what is the claim's, and that: their names and metadata mounts."""
        for device in {planned.cdi_id: planned for planned in record.devices}.values():
            ref = _instance_ref(device, record)
            nodes = (
                tuple(self._gpu_node(self._require_gpu(uuid)) for uuid in device.edits.gpus)
                if ref is None
                else self._instance_nodes(ref)
            )
            daemon = device.edits.daemon
            environment = dict(device.edits.environment)
            if daemon:
                environment["CUDA_MPS_PIPE_DIRECTORY"] = _PIPE
            variables = tuple(f"{key}={value}" for key, value in sorted(environment.items()))
            shared = self._daemon_mounts(daemon) if daemon else ()
            mounts = tuple(self._metadata_mounts(device, record))
            yield template.Device(_ANY, nodes, variables, shared), device.cdi_name, mounts

    def _metadata_mounts(
        self, device: steps.PlannedDevice, record: checkpoint.Record
    ) -> Iterator[template.Mount]:
        """Yield the metadata mounts of the requests whose first device it is (KEP-5304)."""
        for request, carrier in device_metadata.carrier_devices(record).items():
            if carrier == device.cdi_id:
                host = str(self._files.metadata.path(record.uid, request))
                target = device_metadata.container_path(record, request, self._driver_name)
                yield template.Mount(host, target, _TOLD_OPTIONS)

    def _daemon_mounts(self, key: str) -> tuple[template.Mount, ...]:
        """Return the mounts that a daemon's clients share with it now."""
        status = self._daemons.status(key) if self._daemons else None
        if status is None or status.shm_dir is None:
            raise errors.NodeFault("find", f"MPS daemon {key}", "it is not there")
        return (
            template.Mount(status.pipe_dir, _PIPE, PIPE_OPTIONS),
            template.Mount(status.shm_dir, _SHM, _SHM_OPTIONS),
        )

    def _require_gpu(self, uuid: ids.GpuUuid) -> devices.Gpu:
        """Return a GPU, re-read if the last read failed, as it does before the driver is loaded."""
        gpu = self._gpus.current().by_uuid(uuid)
        if gpu is not None:
            return gpu
        try:
            gpu = self._gpus.trusted().by_uuid(uuid)
        except errors.DeviceFault as fault:
            raise driver_root.DriverNotReady("read", uuid, str(fault)) from fault
        if gpu is None:
            raise errors.NodeFault("find", uuid, "the GPU is not, or no longer, on this node")
        return gpu

    def _instance_nodes(self, ref: mig.InstanceRef) -> tuple[device_node.DeviceNode, ...]:
        """Return its GPU's node, and the nodes of the instance and its device.

        An instance is in the inventory once it is created, or read before its claim was planned.
        """
        gpu = self._require_gpu(ref.gpu)
        instance = gpu.mig.find(ref) if gpu.mig else None
        if instance is None or instance.compute_instance is None:
            gpu = self._reread(ref.gpu)
            instance = gpu.mig.find(ref) if gpu.mig else None
        if instance is None or instance.compute_instance is None:
            name = ref.uuid or f"the MIG instance at {ref.placement}"
            raise errors.NodeFault("find", f"{name} of {ref.gpu}", "it is not there any more")
        needed = self._capabilities.instance_minors(
            gpu.minor, instance.gpu_instance, instance.compute_instance
        )
        return (self._gpu_node(gpu), *(self._capability_node(*numbers) for numbers in needed))

    def _reread(self, gpu: ids.GpuUuid) -> devices.Gpu:
        try:
            return self._gpus.refresh_gpu(gpu)
        except errors.DeviceFault as fault:
            raise errors.NodeFault("read", gpu, str(fault)) from fault

    def _capability_node(self, major: int, minor: int) -> device_node.DeviceNode:
        """Return a node of nvidia-caps, created on first use: the host may not have it yet.

        With its numbers the runtime does not need it (NV-3).
        """
        name = f"nvidia-caps/nvidia-cap{minor}"
        node = self._driver.node(name)
        path = f"{self._driver.path}/dev/{name}"
        if node is not None and (node.major, node.minor) != (major, minor):
            problem = f"is {node.major}:{node.minor}, expected {major}:{minor}"
            raise errors.NodeFault("use", path, problem)
        return device_node.DeviceNode(f"/dev/{name}", path, major, minor)

    def _gpu_node(self, gpu: devices.Gpu) -> device_node.DeviceNode:
        node = self._driver.node(f"nvidia{gpu.minor}")
        path = f"{self._driver.path}/dev/nvidia{gpu.minor}"
        if node is None:
            raise driver_root.DriverNotReady("find", path, "is no character device")
        if (node.major, node.minor) != (NVIDIA_MAJOR, gpu.minor):
            problem = f"is {node.major}:{node.minor}, expected {NVIDIA_MAJOR}:{gpu.minor}"
            raise errors.NodeFault("use", path, problem)
        return node


def _instance_refs(record: checkpoint.Record) -> tuple[mig.InstanceRef, ...]:
    """Return the MIG instances of a record's devices."""
    refs = (_instance_ref(device, record) for device in record.devices)
    return tuple(ref for ref in refs if ref is not None)


def _instance_ref(device: steps.PlannedDevice, record: checkpoint.Record) -> mig.InstanceRef | None:
    """Return the instance of a device: created by the record's steps, or existing before."""
    ref = device.edits.instance
    if ref is None:
        return None
    created = parts.planned_instances(record.steps, record.facts)
    return next(
        (instance for instance in created if instance == replace(ref, uuid=instance.uuid)), ref
    )
