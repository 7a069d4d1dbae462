"""The node's core, put together: NVML, records, CDI and locks behind the use case."""

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
    """No record was ever written."""


@dataclass(frozen=True, slots=True)
class Core:
    """What the shell needs of the node.

    `look` reads the GPUs; raises DeviceFault. `recover` makes records, CDI and hardware agree and
    names what it could not; it may be repeated; raises NodeFault. `close` lets go of the library.
    `watcher` is the GPUs' health; `rules` say which faces are offered. `records` raises NodeFault.
    `leftovers` is for what outlives its claim, `sharers` for who uses more than its share,
    `workers` for what devices do, `resets` for GPUs that ask for a reset, `mode_refusals` for GPUs
    that do not take another MIG mode. `written` is when a claim's record was written, in seconds
    since 1970.
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

    def held_devices(self) -> frozenset[ids.DeviceName]:
        """The devices that claims hold, by the records. Raises NodeFault."""
        return frozenset(device.device for one in self.records() for device in one.devices)

    def holders(self, gpu: ids.GpuUuid) -> tuple[ports.ClaimRef, ...]:
        """The claims that hold a GPU, by the records. Raises NodeFault."""
        return tuple(one.claim for one in self.records() if gpu in one.gpus)


@dataclass(frozen=True, slots=True)
class _NodeParts:
    """The node's GPUs, files and locks, which every use of them has in common."""

    library: nvml.NvmlLibrary
    gpus: discovery.Discovery
    records: checkpoint.Checkpoint
    mps: mps_client.MpsClient
    smi: nvidia_smi.NvidiaSmi
    slices: time_slices.CachedTimeSlices
    executor: executor.Executor
    locks: locks.Locks
    mps_reconciler: mps_reconcile.MpsReconciler
    pending_mig: pending_mig.PendingMigDisable
    mode_refusals: mig_mode_refusals.ModeRefusals
    pending_settings: pending_settings.PendingSettings

    def recover(self) -> tuple[str, ...]:
        """Make records, CDI and hardware agree; names what could not be. Raises NodeFault."""
        try:
            self.gpus.refresh()  # a spec names the minors of now
        except errors.DeviceFault as e:
            _log.info("GPUs not readable yet", error=str(e))
        report = recovery.recover(self.executor, self.locks)
        failed = tuple(f"{uid}: {problem}" for uid, problem in report.failed.items())
        return (*failed, *self._repair_settings())

    def reset(self, gpu: ids.GpuUuid) -> None:
        """Reset a GPU that nothing uses, whose time slice is lost by it. Raises NodeFault."""
        self.slices.forget(gpu)
        self.smi.reset(gpu)

    def repair(self) -> tuple[str, ...]:
        """Put back what was lost since; names what could not be. Raises NodeFault."""
        return (*recovery.restore_specs(self.executor, self.locks), *self._repair_settings())

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
    watch: failpoints.Observer = failpoints.NO_OBSERVER,
) -> Core:
    """The core of this node; a device on its way out is waited for `wait_s`.

    `watch` is told of every act on records, files and hardware.

    Raises:
        NodeFault: the host's boot id cannot be read.
        BadInput: the offerings document is wrong.
    """
    hands, rules = _build_parts(config, time, watch), _read_offerings(config.offerings)
    session = hands.library.session
    preparer = claim_preparer.Preparer(
        claim_preparer.NodeScope(config.node_name, config.driver_name, rules),
        reader,
        hands.gpus,
        hands.executor,
        hands.locks,
        tombstones.Tombstones(time),
    )
    on_gpus = gpu_processes.NvmlProcesses(session)
    everyone, pods_of = hands.records.list_records, process_owner.ProcessOwners(config.host_root)
    return Core(
        release_wait.ReleaseWaiter(preparer, reader, time, wait_s),
        hands.gpus.refresh,
        hands.recover,
        hands.library.close,
        nvml_health.NvmlHealth(session),
        rules,
        hands.mps,
        everyone,
        claim_gc.GcTargets(
            everyone,
            reader,
            lambda record: gpus_in_use(record, on_gpus),
            preparer.unprepare,
            hands.repair,
        ),
        usage_watch.UsageSources(everyone, on_gpus, pods_of, reader),
        activity_watch.ActivitySources(
            everyone,
            on_gpus,
            process_utilization.NvmlUtilization(session),
            pods_of,
            reader,
            power.NvmlMeter(session),
        ),
        reset_watch.ResetTarget(
            gpu_in_use.GpuUseReader(
                hands.executor, hands.gpus, hands.mps, _build_probes(session)
            ).read,
            nvml_reset.GpuResetter(session, hands.reset).reset,
            hands.locks,
        ),
        hands.mode_refusals,
        hands.records.write_time,
    )


def _build_parts(config: PluginConfig, time: clock.Clock, watch: failpoints.Observer) -> _NodeParts:
    boot_id = file_boot_id.read_boot_id(config.host_root)
    records = checkpoint.Checkpoint(config.state_dir / "claims", boot_id, watch)
    place = driver_search.build_search(config.driver_root, config.host_root)
    inside = lanes.Lanes(clock.SystemClock(), config.nvml_patience_seconds)
    library = nvml.NvmlLibrary(place, config.host_root, inside)
    memory = last_inventory.LastInventory(config.state_dir / "inventory.json", watch)
    gpus = discovery.Discovery(library, lambda: own_instances(records), memory)
    root = driver_root.DriverRoot(place, host=config.host_root)
    door = mps_client.MpsClient(config.mps_dir, boot_id, time)
    smi = nvidia_smi.NvidiaSmi(root)
    load = functools.partial(time_slices.driver_load, config.host_root, boot_id)
    knob = bounded_settings.BoundedComputeModes(
        compute_mode.NvmlComputeModes(library.session), library.session
    )
    setting = compute_modes.PersistentComputeModes(knob, config.state_dir / "compute-modes", load)
    slices = time_slices.CachedTimeSlices(
        bounded_settings.BoundedTimeSlices(smi, library.session),
        config.state_dir / "time-slices",
        load,
    )
    sharing = share_steps.ShareSteps(records.list_records, slices, setting, door, gpus.refresh_gpu)
    partitions = mig_instances.MigInstances(library.session, time, watch)
    owed = pending_mig.PendingGpus(config.state_dir / "mig-owed", boot_id, watch)
    refusals = mig_mode_refusals.ModeRefusals(time)
    parting = mig_steps.MigSteps(partitions, gpus.refresh_gpu, owed.add, refusals)
    holding = locks.Locks(config.state_dir / "locks", time)
    left = pending_settings.PendingSettings(
        sharing.table(),
        lambda act: pending_mig.PendingGpus(
            config.state_dir / "settings-owed" / act, boot_id, watch
        ),
        holding,
        library.hung_call,
    )
    acts = {**parting.table(), **left.table()}
    driver = driver_files.DriverFiles(root, config.host_root, config.cdi_hook, time)
    specs = _build_spec_writer(config, gpus, driver, door, watch)
    acting = executor.Executor(records, specs, acts, watch, left.restore)
    settings = mps_reconcile.MpsReconciler(
        records.list_records, sharing, door, holding, acting.unaccounted_uids
    )
    settling = pending_mig.PendingMigDisable(
        owed, records.list_records, partitions, gpus.refresh_gpu, holding
    )
    return _NodeParts(
        *(library, gpus, records, door, smi, slices, acting, holding, settings, settling),
        *(refusals, left),
    )


def _build_spec_writer(
    config: PluginConfig,
    gpus: discovery.Discovery,
    driver: driver_files.DriverFiles,
    door: mps_client.MpsClient,
    watch: failpoints.Observer,
) -> spec_writer.CdiSpecWriter:
    kind = spec_model.cdi_kind(config.driver_name)
    told = config.kubelet_root / "plugins" / config.driver_name / "dra-device-metadata"
    files = spec_writer.ClaimFiles(
        store.SpecStore(config.cdi_root, kind, watch), metadata_files.MetadataFiles(told, watch)
    )
    opening = capabilities.Capabilities(config.host_root)
    return spec_writer.CdiSpecWriter(kind, gpus, driver, files, opening, door)


def _build_probes(session: nvml_door.GpuSession) -> gpu_in_use.GpuProbes:
    """For a thread of its own, as each adapter of the GPUs' health is."""
    signs = nvml_health.NvmlHealth(session).probe
    return gpu_in_use.GpuProbes(signs, gpu_processes.NvmlProcesses(session).count_all)


def gpus_in_use(record: checkpoint.Record, processes: ports.ProcessCounter) -> str:
    """The GPUs that a claim has for itself and on which processes run; "" when there is none.

    On a GPU that is shared they may be another's; a MIG instance in use cannot be destroyed.
    Raises DeviceFault.
    """
    alone = {one.gpu for one in record.devices if one.is_whole and not one.admin_access}
    counts = {gpu: processes.count(gpu) for gpu in sorted(alone)}
    return ", ".join(f"{count} processes on {gpu}" for gpu, count in counts.items() if count)


def own_instances(records: checkpoint.Checkpoint) -> frozenset[mig.InstanceRef]:
    """Where the node's claims have MIG instances made.

    Raises DeviceFault: without the records nobody's instance could be told from ours.
    """
    try:
        found = records.list_records()
    except errors.NodeFault as e:
        raise errors.DeviceFault("", "telling our instances apart", -1, str(e)) from e
    return frozenset(
        place for one in found for place in parts.planned_instances(one.steps, one.facts)
    )


def _read_offerings(path: Path | None) -> offerings.NodeOfferings:
    """The document at a path; without one, everything as by default. Raises BadInput."""
    if path is None:
        return offerings.NodeOfferings()
    return offerings.read(yaml_files.read_document(path, "NodeOfferings"), path.name)
