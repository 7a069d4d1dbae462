"""A node as the plugin's core sees it: a machine, a driver root, folders, claims in the API.

`process()` is a new plugin over the same folders: what a restart leaves is what is on disk.
"""

import dataclasses
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from driver import clock, errors, ids
from driver.api import offerings
from driver.kubeletplugin import composition, ports
from driver.kubeletplugin.cdi import metadata_files, model, spec_writer, store
from driver.kubeletplugin.cdi.driver import files as driver_files
from driver.kubeletplugin.host import capabilities, discovery, driver_root, locks
from driver.kubeletplugin.prepare import (
    claim_request,
    compute_modes,
    executor,
    mig_mode_refusals,
    mig_steps,
    share_steps,
    time_slices,
)
from driver.kubeletplugin.prepare import preparer as claim_preparer
from driver.kubeletplugin.records import checkpoint, tombstones
from driver.kubeletplugin.recovery import mps_reconcile, pending_mig, pending_settings, recovery
from driver.resources.dra import claims
from driver.runtime.files import failpoints
from simulator import capabilities as opened
from simulator import machine
from tests.fakes import clock as fake_clock
from tests.fakes import nvml, partitioning, sharing, toolkits
from tests.support.builders import allocated_claims

CONTROL = {
    "nvidiactl": (195, 255),
    "nvidia-uvm": (511, 0),
    "nvidia-uvm-tools": (511, 1),
    "nvidia-modeset": (195, 254),
}
LIBRARIES = "usr/lib/x86_64-linux-gnu"
VERSION = "580.105.08"
KIND = model.cdi_kind("gpu.ration.dev")
CAPS_MAJOR = 237


class FakeReader:
    """Claims by name, as the API server holds them."""

    def __init__(self) -> None:
        self.claims: dict[str, claims.Claim] = {}
        self.reads = 0
        self.down = False

    def read(self, ref: ports.ClaimRef) -> claims.Claim:
        self.reads += 1
        if self.down:
            raise errors.Unreachable(0, "", "connection refused")
        claim = self.claims.get(f"{ref.namespace}/{ref.name}")
        if claim is None:
            text = f'resourceclaims.resource.k8s.io "{ref.name}" not found'
            raise errors.NotFound(404, "NotFound", text)
        return claim


class Killed(BaseException):
    """The process ends here: no handler of ours may see it."""


class DiesAt(failpoints.Observer):
    """Ends the process at the n-th point it passes; `passed` lists them."""

    def __init__(self, number: int | None = None) -> None:
        self._number = number
        self.passed: list[str] = []

    def on_point(self, point: str) -> None:
        self.passed.append(point)
        if len(self.passed) - 1 == self._number:
            raise Killed(point)


@dataclasses.dataclass
class Process:
    """One plugin process."""

    preparer: ports.Preparation
    records: checkpoint.Checkpoint
    specs: spec_writer.CdiSpecWriter
    executor: executor.Executor
    locks: locks.Locks
    gpus: discovery.Discovery
    settings: mps_reconcile.MpsReconciler | None = None
    owed: pending_mig.PendingMigDisable | None = None
    left: pending_settings.PendingSettings | None = None

    def recoverer(self) -> recovery.Recovery:
        return recovery.Recovery(self.records, self.specs, self.executor, self.locks)

    def recover(self) -> recovery.RecoveryReport:
        return self.recoverer().recover()

    def mend(self) -> tuple[str, ...]:
        """Make MPS daemons, MIG modes and records agree."""
        assert self.settings is not None
        assert self.owed is not None
        assert self.left is not None
        return (*self.settings.repair(), *self.owed.repair(), *self.left.repair())


class GpuNode:
    """Folders under `base`, a machine, and what the API server says."""

    def __init__(self, base: Path, boot: str = "boot-1", product: str = "hgx-h100") -> None:
        self.base = base
        self.nvml = nvml.FakeNvml(machine.build(product, seed=allocated_claims.NODE))
        self.reader = FakeReader()
        self.rules = offerings.NodeOfferings()
        self.boot = boot
        self.time = fake_clock.FakeClock()
        self.mode_refusals = mig_mode_refusals.ModeRefusals(self.time)
        self.driver_load = 1
        self.slices = sharing.FakeSlices(self.nvml.machine)
        self.modes = sharing.FakeModes(self.nvml.machine)
        self.daemons = sharing.FakeDaemons(base / "mps")
        self.root = base / "driver-root"
        self.host_seen_at: Path | None = None
        self.host = base / "host-root"
        a_driver_root(self.root)
        self.follow()

    def follow(self) -> None:
        """Have proc say what the machine has; whoever changes its MIG asks for it."""
        proc = self.host / "proc"
        shutil.rmtree(proc, ignore_errors=True)
        write(proc / "devices", f"Character devices:\n195 nvidia\n{CAPS_MAJOR} nvidia-caps\n")
        write(proc / "driver/nvidia-caps/mig-minors", "\n".join(opened.minors()))
        for capability in opened.present(self.nvml.machine):
            text = f"DeviceFileMinor: {capability.minor}\nDeviceFileMode: {capability.mode}\n"
            write(proc / "driver/nvidia/capabilities" / capability.path, text)

    @property
    def cdi(self) -> Path:
        return self.base / "cdi"

    @property
    def told(self) -> Path:
        """Return what containers are told of their devices."""
        return self.base / "told"

    @property
    def records(self) -> Path:
        return self.base / "state/claims"

    def spec_path(self, uid: ids.ClaimUid = allocated_claims.UID) -> Path:
        return self.cdi / f"gpu.ration.dev-claim_{uid}.json"

    def numbers(self, path: Path) -> tuple[int, int] | None:
        """Device nodes without the right to make any: those of the machine, and the control's."""
        name, source = path.name, self.nvml.machine
        minors = {f"nvidia{source.minor(gpu)}": source.minor(gpu) for gpu in source.gpus}
        if name in minors:
            return 195, minors[name]
        return CONTROL.get(name)

    def process(
        self,
        watch: failpoints.Observer = failpoints.NO_OBSERVER,
        acts: Mapping[str, executor.Act] = executor.NO_ACTS,
    ) -> Process:
        records = checkpoint.Checkpoint(self.records, self.boot, watch)
        gpus = discovery.Discovery(self.nvml, lambda: composition.own_instances(records))
        if not self.nvml.absent:
            gpus.refresh()
        specs = spec_writer.CdiSpecWriter(
            KIND,
            gpus,
            driver_files.DriverFiles(
                driver_root.DriverRoot(self.root, self.numbers, self.host_seen_at),
                self.host,
                run_version=toolkits.ask,
            ),
            spec_writer.ClaimFiles(
                store.SpecStore(self.cdi, KIND, watch),
                metadata_files.MetadataFiles(self.told, watch),
            ),
            capabilities.Capabilities(self.host),
            self.daemons,
        )
        slices = time_slices.CachedTimeSlices(
            self.slices, self.base / "state/time-slices", self._load
        )
        setting = compute_modes.PersistentComputeModes(
            self.modes, self.base / "state/compute-modes", self._load
        )
        shares = share_steps.ShareSteps(
            records.gpu_records, slices, setting, self.daemons, gpus.refresh_gpu
        )
        partitions = partitioning.FakePartitions(self.nvml.library, self.follow, watch)
        owed = pending_mig.PendingGpus(self.base / "state/mig-owed", self.boot, watch)
        parts = mig_steps.MigSteps(partitions, gpus, owed.add, self.mode_refusals)
        holding = locks.Locks(self.base / "state/locks", clock.SystemClock(), wait_s=5)
        left = pending_settings.PendingSettings(
            shares.table(),
            lambda act: pending_mig.PendingGpus(
                self.base / "state/settings-owed" / act, self.boot, watch
            ),
            holding,
            self._hung,
        )
        fields = {**parts.table(), **left.table(), **acts}
        acting = executor.Executor(records, specs, fields, watch, left.restore)
        let_go = tombstones.Tombstones(self.time)
        requests = self._requests(gpus, let_go)
        preparer = claim_preparer.Preparer(requests, records, specs, acting, holding, let_go)
        settings = mps_reconcile.MpsReconciler(
            records.list_records, shares, self.daemons, holding, acting.unaccounted_uids
        )
        settling = pending_mig.PendingMigDisable(
            owed, records.list_records, partitions, gpus.refresh_gpu, holding
        )
        return Process(preparer, records, specs, acting, holding, gpus, settings, settling, left)

    def _requests(
        self, gpus: discovery.Discovery, let_go: tombstones.Tombstones
    ) -> claim_request.ClaimRequests:
        node_scope = claim_request.NodeScope(allocated_claims.NODE, rules=self.rules)
        return claim_request.ClaimRequests(node_scope, self.reader, gpus, let_go)

    def _load(self) -> str:
        return f"{self.boot} {self.driver_load}"

    def _hung(self, gpu: ids.GpuUuid) -> errors.Hung | None:
        call = "nvmlDeviceGetComputeMode"
        return errors.Hung(gpu, call, 8.0) if gpu in self.modes.hung else None

    def allocate(self, claim: claims.Claim) -> ports.ClaimRef:
        """Put a claim into the API; how the kubelet names it."""
        self.reader.claims[claim.key] = claim
        return ports.ClaimRef(claim.namespace, claim.name, claim.uid)

    def files(self) -> dict[str, bytes]:
        """Everything on disk that the plugin wrote, locks aside."""
        folders = (self.cdi, self.records, self.told)
        paths = (path for folder in folders for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.base)): path.read_bytes() for path in paths}


def write(path: Path, text: str) -> None:
    """A file, and the folders it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def a_socket(path: Path) -> None:
    """A socket that nobody listens at, and the folders it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(path, stat.S_IFSOCK | 0o666)


def a_driver_root(root: Path, version: str = VERSION) -> None:
    """The files of an installed driver, device nodes aside."""
    libraries = root / LIBRARIES
    for folder in (libraries, root / "usr/bin"):
        folder.mkdir(parents=True, exist_ok=True)
    if not (persistenced := root / "run/nvidia-persistenced/socket").exists():
        a_socket(persistenced)
    for library in ("libcuda.so", "libnvidia-ml.so"):
        (libraries / f"{library}.{version}").write_bytes(b"\x7fELF")
        (libraries / f"{library}.1").symlink_to(f"{library}.{version}")
    (root / "usr/bin/nvidia-smi").write_bytes(b"\x7fELF")


def with_control_nodes(root: Path) -> driver_root.DriverRoot:
    """A driver root on a machine that has the control devices, and no GPU's."""
    return driver_root.DriverRoot(root, lambda path: CONTROL.get(path.name))


def never() -> bool:
    """The caller stays."""
    return False
