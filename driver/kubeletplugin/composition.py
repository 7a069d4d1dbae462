"""Builds the node's core: NVML, records, CDI and locks behind the use case."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from driver import clock, errors, ids
from driver.api import offerings
from driver.devices import mig, model
from driver.kubeletplugin import ports
from driver.kubeletplugin.cdi import metadata_files, spec_writer, store
from driver.kubeletplugin.cdi import model as spec_model
from driver.kubeletplugin.cdi.driver import files as driver_files
from driver.kubeletplugin.config import PluginConfig
from driver.kubeletplugin.health import gpu_in_use, reset_watch
from driver.kubeletplugin.host import (
    capabilities,
    discovery,
    driver_root,
    last_inventory,
    locks,
    nvidia_smi,
    process_owner,
)
from driver.kubeletplugin.nvml import bounded_settings, lanes, mig_instances
from driver.kubeletplugin.nvml import gpu_calls as nvml_door
from driver.kubeletplugin.nvml import health as nvml_health
from driver.kubeletplugin.nvml import library as nvml
from driver.kubeletplugin.nvml import reset as nvml_reset
from driver.kubeletplugin.nvml.queries import compute_mode, power, process_utilization
from driver.kubeletplugin.nvml.queries import processes as gpu_processes
from driver.kubeletplugin.plan import mig as parts
from driver.kubeletplugin.prepare import (
    claim_request,
    compute_modes,
    executor,
    mig_mode_refusals,
    mig_steps,
    mps_client,
    release_wait,
    share_steps,
    time_slices,
)
from driver.kubeletplugin.prepare import preparer as claim_preparer
from driver.kubeletplugin.records import checkpoint, tombstones
from driver.kubeletplugin.recovery import (
    claim_gc,
    mps_reconcile,
    pending_mig,
    pending_settings,
    recovery,
)
from driver.kubeletplugin.usage import activity_watch, usage_watch
from driver.runtime.files import boot_id as file_boot_id
from driver.runtime.files import driver_search, failpoints, yaml_files

_log = structlog.get_logger(__name__)


def _no_write_time(_uid: ids.ClaimUid) -> None:
    """Return None: no record was ever written."""


@dataclass(frozen=True, slots=True)
class Core:
    """Interface of the node to the process.

    `read_gpus` reads the GPUs, `check_gpus` those whose MIG changed; both raise DeviceFault.
    `recover` makes records, CDI and hardware agree and returns what it could not; repeatable;
    raises NodeFault. `close` releases the library. `watcher` is the GPUs' health; `rules` select
    the published faces. `records` raises NodeFault. `gc_targets` is for claims that are gone,
    `usage_sources` for claims above their share, `activity_sources` for device activity,
    `reset_target` for GPUs that ask for a reset, `mode_refusals` for GPUs that refuse another MIG
    mode. `write_time` is when a claim's record was written, in seconds since 1970.
    """

    preparation: ports.Preparation
    read_gpus: Callable[[], model.Inventory]
    recover: Callable[[], tuple[str, ...]]
    close: Callable[[], None]
    watcher: ports.Watcher
    rules: offerings.NodeOfferings
    daemons: ports.Daemons
    records: Callable[[], tuple[checkpoint.Record, ...]]
    gc_targets: claim_gc.GcTargets
    usage_sources: usage_watch.UsageSources
    activity_sources: activity_watch.ActivitySources
    reset_target: reset_watch.ResetTarget
    mode_refusals: mig_mode_refusals.ModeRefusals
    write_time: Callable[[ids.ClaimUid], float | None] = _no_write_time
    check_gpus: Callable[[frozenset[ids.GpuUuid]], model.Inventory] | None = None

    def held_devices(self) -> frozenset[ids.DeviceName]:
        """Return the devices that claims hold, by the records. Raises NodeFault."""
        return frozenset(device.device for record in self.records() for device in record.devices)

    def holders(self, gpu: ids.GpuUuid) -> tuple[ports.ClaimRef, ...]:
        """Return the claims that hold a GPU, by the records. Raises NodeFault."""
        return tuple(record.claim for record in self.records() if gpu in record.gpus)


@dataclass(frozen=True, slots=True)
class _NodeParts:
    """The node's GPUs, files and locks, shared by all their users."""

    library: nvml.NvmlLibrary
    gpus: discovery.Discovery
    records: checkpoint.Checkpoint
    mps: mps_client.MpsClient
    smi: nvidia_smi.NvidiaSmi
    slices: time_slices.CachedTimeSlices
    specs: spec_writer.CdiSpecWriter
    executor: executor.Executor
    locks: locks.Locks
    recovery: recovery.Recovery
    mps_reconciler: mps_reconcile.MpsReconciler
    pending_mig: pending_mig.PendingMigDisable
    mode_refusals: mig_mode_refusals.ModeRefusals
    pending_settings: pending_settings.PendingSettings

    def recover(self) -> tuple[str, ...]:
        """Make records, CDI and hardware agree; return what could not be. Raises NodeFault."""
        try:
            self.gpus.refresh()  # a spec names the minors of now
        except errors.DeviceFault as e:
            _log.info("GPUs not readable yet", error=str(e))
        report = self.recovery.recover()
        failed = tuple(f"{uid}: {problem}" for uid, problem in report.failed.items())
        return (*failed, *self._repair_settings())

    def reset(self, gpu: ids.GpuUuid) -> None:
        """Reset a GPU that is not in use; its time slice is lost. Raises NodeFault."""
        self.slices.forget(gpu)
        self.smi.reset(gpu)

    def repair(self) -> tuple[str, ...]:
        """Restore what was lost since; return what could not be. Raises NodeFault."""
        return (*self.recovery.restore_specs(), *self._repair_settings())

    def _repair_settings(self) -> tuple[str, ...]:
        return (
            *self.mps_reconciler.repair(),
            *self.pending_mig.repair(),
            *self.pending_settings.repair(),
        )


def build_core(
    config: PluginConfig,
    reader: ports.ClaimReader,
    time: clock.Clock,
    wait_s: float = release_wait.WAIT_S,
    observer: failpoints.Observer = failpoints.NO_OBSERVER,
) -> Core:
    """Build the core of this node; a device being released is waited for `wait_s`.

    `observer` is notified of every act on records, files and hardware.

    Raises:
        NodeFault: the host's boot id cannot be read.
        BadInput: the offerings document is invalid.
    """
    node, rules = _build_parts(config, time, observer), _read_offerings(config.offerings)
    session, unprepared = node.library.session, tombstones.Tombstones(time)
    scope = claim_request.NodeScope(config.node_name, config.driver_name, rules)
    preparer = claim_preparer.Preparer(
        claim_request.ClaimRequests(scope, reader, node.gpus, unprepared),
        node.records,
        node.specs,
        node.executor,
        node.locks,
        unprepared,
    )
    gpu_process_reader = gpu_processes.NvmlProcesses(session)
    list_records, pods_of = node.records.list_records, process_owner.ProcessOwners(config.host_root)
    return Core(
        release_wait.ReleaseWaiter(preparer, reader, time, wait_s),
        node.gpus.refresh,
        node.recover,
        node.library.close,
        nvml_health.NvmlHealth(session),
        rules,
        node.mps,
        list_records,
        claim_gc.GcTargets(
            list_records,
            reader,
            lambda record: gpus_in_use(record, gpu_process_reader),
            preparer.unprepare,
            node.repair,
        ),
        usage_watch.UsageSources(list_records, gpu_process_reader, pods_of, reader),
        activity_watch.ActivitySources(
            list_records,
            gpu_process_reader,
            process_utilization.NvmlUtilization(session),
            pods_of,
            reader,
            power.NvmlMeter(session),
        ),
        reset_watch.ResetTarget(
            gpu_in_use.GpuUseReader(
                list_records,
                node.executor.unaccounted_gpus,
                node.gpus,
                node.mps,
                _build_probes(session),
            ).read,
            nvml_reset.GpuResetter(session, node.reset).reset,
            node.locks,
        ),
        node.mode_refusals,
        node.records.write_time,
        node.gpus.refresh_changed,
    )


def _build_parts(
    config: PluginConfig, time: clock.Clock, observer: failpoints.Observer
) -> _NodeParts:
    boot_id = file_boot_id.read_boot_id(config.host_root)
    records = checkpoint.Checkpoint(config.state_dir / "claims", boot_id, observer)
    search = driver_search.build_search(config.driver_root, config.host_root)
    shared_lanes = lanes.Lanes(clock.SystemClock(), config.nvml_timeout_seconds)
    library = nvml.NvmlLibrary(search, config.host_root, shared_lanes)
    inventory_store = last_inventory.LastInventory(config.state_dir / "inventory.json", observer)
    gpus = discovery.Discovery(library, lambda: own_instances(records), inventory_store)
    root = driver_root.DriverRoot(search, host=config.host_root)
    mps = mps_client.MpsClient(config.mps_dir, boot_id, time)
    smi = nvidia_smi.NvidiaSmi(root)
    modes, slices = _build_settings(config, boot_id, library, smi)
    sharing = share_steps.ShareSteps(records.gpu_records, slices, modes, mps, gpus.refresh_gpu)
    partitions = mig_instances.MigInstances(library.session, time, observer)
    pending = pending_mig.PendingGpus(config.state_dir / "mig-owed", boot_id, observer)
    refusals = mig_mode_refusals.ModeRefusals(time)
    mig_acts = mig_steps.MigSteps(partitions, gpus, pending.add, refusals)
    node_locks = locks.Locks(config.state_dir / "locks", time)
    deferred = pending_settings.PendingSettings(
        sharing.table(),
        lambda act: pending_mig.PendingGpus(
            config.state_dir / "settings-owed" / act, boot_id, observer
        ),
        node_locks,
        library.hung_call,
    )
    acts = {**mig_acts.table(), **deferred.table()}
    driver = driver_files.DriverFiles(root, config.host_root, config.cdi_hook, time)
    specs = _build_spec_writer(config, gpus, driver, mps, observer)
    claim_executor = executor.Executor(records, specs, acts, observer, deferred.restore)
    settings = mps_reconcile.MpsReconciler(
        records.list_records, sharing, mps, node_locks, claim_executor.unaccounted_uids
    )
    mig_disable = pending_mig.PendingMigDisable(
        pending, records.list_records, partitions, gpus.refresh_gpu, node_locks
    )
    return _NodeParts(
        *(
            library,
            gpus,
            records,
            mps,
            smi,
            slices,
            specs,
            claim_executor,
            node_locks,
            recovery.Recovery(records, specs, claim_executor, node_locks),
            settings,
            mig_disable,
        ),
        *(refusals, deferred),
    )


def _build_settings(
    config: PluginConfig, boot_id: str, library: nvml.NvmlLibrary, smi: nvidia_smi.NvidiaSmi
) -> tuple[compute_modes.PersistentComputeModes, time_slices.CachedTimeSlices]:
    """Build the writers of compute modes and time slices, which outlive this process on disk."""
    load = functools.partial(time_slices.driver_load, config.host_root, boot_id)
    mode_access = bounded_settings.BoundedComputeModes(
        compute_mode.NvmlComputeModes(library.session), library.session
    )
    modes = compute_modes.PersistentComputeModes(
        mode_access, config.state_dir / "compute-modes", load
    )
    slices = time_slices.CachedTimeSlices(
        bounded_settings.BoundedTimeSlices(smi, library.session),
        config.state_dir / "time-slices",
        load,
    )
    return modes, slices


def _build_spec_writer(
    config: PluginConfig,
    gpus: discovery.Discovery,
    driver: driver_files.DriverFiles,
    mps: mps_client.MpsClient,
    observer: failpoints.Observer,
) -> spec_writer.CdiSpecWriter:
    kind = spec_model.cdi_kind(config.driver_name)
    metadata_root = config.kubelet_root / "plugins" / config.driver_name / "dra-device-metadata"
    files = spec_writer.ClaimFiles(
        store.SpecStore(config.cdi_root, kind, observer),
        metadata_files.MetadataFiles(metadata_root, observer),
    )
    capabilities_ = capabilities.Capabilities(config.host_root)
    return spec_writer.CdiSpecWriter(kind, gpus, driver, files, capabilities_, mps)


def _build_probes(session: nvml_door.GpuSession) -> gpu_in_use.GpuProbes:
    """Build probes for a separate thread, as each adapter of the GPUs' health needs."""
    signs = nvml_health.NvmlHealth(session).probe
    return gpu_in_use.GpuProbes(signs, gpu_processes.NvmlProcesses(session).count_all)


def gpus_in_use(record: checkpoint.Record, processes: ports.ProcessCounter) -> str:
    """Return the unshared GPUs of a claim on which processes run; "" if there are none.

    On a shared GPU they may be another claim's; a MIG instance in use cannot be destroyed. Raises
    DeviceFault.
    """
    unshared = {
        device.gpu for device in record.devices if device.is_whole and not device.admin_access
    }
    counts = {gpu: processes.count(gpu) for gpu in sorted(unshared)}
    return ", ".join(f"{count} processes on {gpu}" for gpu, count in counts.items() if count)


def own_instances(records: checkpoint.Checkpoint) -> frozenset[mig.InstanceRef]:
    """Return the MIG instances that the node's claims create.

    Raises DeviceFault: without the records foreign instances cannot be told from ours.
    """
    try:
        all_records = records.list_records()
    except errors.NodeFault as e:
        raise errors.DeviceFault("", "telling our instances apart", -1, str(e)) from e
    return frozenset(
        ref for record in all_records for ref in parts.planned_instances(record.steps, record.facts)
    )


def _read_offerings(path: Path | None) -> offerings.NodeOfferings:
    """Read the document at a path; without one, the defaults. Raises BadInput."""
    if path is None:
        return offerings.NodeOfferings()
    return offerings.read(yaml_files.read_document(path, "NodeOfferings"), path.name)
