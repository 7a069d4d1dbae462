"""A node as the plugin's core sees it, on a running simulated machine: real pynvml, real files."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from driver import clock, ids
from driver.devices import mig, model
from driver.kubeletplugin import composition, ports
from driver.kubeletplugin.cdi import metadata_files, spec_writer, store
from driver.kubeletplugin.cdi.driver import files as driver_files
from driver.kubeletplugin.host import capabilities, discovery, driver_root, locks, nvidia_smi
from driver.kubeletplugin.nvml import library as nvml
from driver.kubeletplugin.nvml import mig_instances
from driver.kubeletplugin.nvml.queries import compute_mode
from driver.kubeletplugin.prepare import (
    claim_request,
    compute_modes,
    executor,
    mig_mode_refusals,
    mig_steps,
    share_steps,
)
from driver.kubeletplugin.prepare import preparer as claim_preparer
from driver.kubeletplugin.records import checkpoint, tombstones
from driver.kubeletplugin.recovery import pending_mig
from driver.runtime.files import boot_id as boots
from driver.runtime.files import failpoints
from simulator import builder, control, layout
from simulator import node as machine_node
from simulator import store as machines
from tests.fakes import clock as fake_clock
from tests.fakes import gpunode, loading
from tests.support.builders import allocated_claims


class SimulatedNode:
    """Over the running machine in `base`; `process()` is a new plugin over the same folders.

    Waits for a GPU that is in use move `time` and take none. Shares need `daemons`.
    """

    def __init__(self, base: Path, daemons: ports.Daemons | None = None) -> None:
        self.daemons = daemons
        self.at = layout.Layout(base)
        self.reader = gpunode.FakeReader()
        self.library = nvml.NvmlLibrary(self.at.driver_root, self.at.host_root)
        self.time = fake_clock.FakeClock()
        self.cdi = base / "cdi"
        self.claims = base / "claims"
        self.told = base / "told"

    def gpus(self) -> tuple[model.Gpu, ...]:
        return self.library.inventory().gpus

    def parts(self, number: int = 0) -> mig.Mig:
        result = self.gpus()[number].mig
        assert result is not None
        return result

    def fault(self, call: str, *words: object) -> None:
        control.send(self.at.base, call, *map(str, words))

    def hands(self) -> mig_instances.MigInstances:
        """Somebody else's, on the same GPUs."""
        return mig_instances.MigInstances(self.library.session, self.time)

    def by_hand(self, instance_ref: mig.InstanceRef) -> ids.MigUuid:
        """Have an instance there that is nobody's claim."""
        hands = self.hands()
        hands.enable(instance_ref.gpu)
        uuid = hands.create(instance_ref).uuid
        assert uuid is not None
        return uuid

    def process(self, watch: failpoints.Observer = failpoints.NO_OBSERVER) -> gpunode.Process:
        boot = boots.read_boot_id(self.at.host_root)
        records = checkpoint.Checkpoint(self.claims, boot, watch)
        gpus = discovery.Discovery(self.library, lambda: composition.own_instances(records))
        gpus.refresh()
        specs = spec_writer.CdiSpecWriter(
            gpunode.KIND,
            gpus,
            driver_files.DriverFiles(
                driver_root.DriverRoot(self.at.driver_root), self.at.host_root
            ),
            spec_writer.ClaimFiles(
                store.SpecStore(self.cdi, gpunode.KIND, watch),
                metadata_files.MetadataFiles(self.told, watch),
            ),
            capabilities.Capabilities(self.at.host_root),
            self.daemons,
        )
        partitions = mig_instances.MigInstances(self.library.session, self.time, watch)
        owed = pending_mig.PendingGpus(self.at.base / "mig-owed", boot, watch)
        parting = mig_steps.MigSteps(
            partitions, gpus, owed.add, mig_mode_refusals.ModeRefusals(self.time)
        )
        acts = {**parting.table(), **self._sharing(records, gpus)}
        acting = executor.Executor(records, specs, acts, watch)
        holding = locks.Locks(self.at.base / "locks", clock.SystemClock(), wait_s=5)
        node_scope = claim_request.NodeScope(allocated_claims.NODE)
        let_go = tombstones.Tombstones(self.time)
        preparer = claim_preparer.Preparer(
            claim_request.ClaimRequests(node_scope, self.reader, gpus, let_go),
            records,
            specs,
            acting,
            holding,
            let_go,
        )
        return gpunode.Process(preparer, records, specs, acting, holding, gpus)

    def _sharing(
        self, records: checkpoint.Checkpoint, gpus: discovery.Discovery
    ) -> Mapping[str, executor.Act]:
        if self.daemons is None:
            return {}
        slices = nvidia_smi.NvidiaSmi(driver_root.DriverRoot(self.at.driver_root))
        knob = compute_mode.NvmlComputeModes(self.library.session)
        setting = compute_modes.PersistentComputeModes(
            knob, self.at.base / "compute-modes", lambda: str(self.at.base)
        )
        acts = share_steps.ShareSteps(
            records.gpu_records, slices, setting, self.daemons, gpus.refresh_gpu
        )
        return acts.table()

    def files(self) -> list[Path]:
        """Everything the plugin wrote for claims."""
        folders = (self.cdi, self.claims, self.told)
        return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


@contextlib.contextmanager
def running(base: Path, product: str) -> Iterator[SimulatedNode]:
    """A new machine, MIG already on where it takes a reset, and a node on it."""
    machine = machines.create(base, product, "node-1")
    for gpu in machine.gpus:
        board = machine.board(gpu)
        board.mig = board.mig_pending = not gpu.resetless
    machines.save(base, machine)
    builder.build(base, machine)
    process = machine_node.Node(base)
    process.start()
    simulated_node = SimulatedNode(base)
    try:
        yield simulated_node
    finally:
        simulated_node.library.close()
        loading.forget()
        process.stop()
