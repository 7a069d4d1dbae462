"""Whatever is on a GPU that asks for a reset, and however it is known: then it is not reset."""

import dataclasses
import tempfile
import threading
from pathlib import Path

import prometheus_client
from hypothesis import given, settings
from hypothesis import strategies as st

from driver import ids, names
from driver.devices import health, mig, mps_files
from driver.kubeletplugin import metrics, ports
from driver.kubeletplugin.health import gpu_in_use, reset_policy, reset_watch
from driver.resources import quantities
from driver.resources.dra import claims
from simulator import state
from tests.fakes import gpunode, partitioning
from tests.support.builders import allocated_claims

GPUS = ("gpu-0000-53-00-0", "gpu-0000-64-00-0")
FACES = ("", "-mps", "-ts", "-mig-1g10gb-4")
MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Found:
    """State of one GPU; `face` is a claim's, None where no claim has any."""

    action: health.RecoveryAction
    face: str | None
    damaged: bool
    instance: bool
    processes: int
    daemon: bool

    @property
    def free(self) -> bool:
        return self.face is None and not (self.instance or self.processes or self.daemon)


FOUND = st.builds(
    Found,
    action=st.sampled_from(
        [*health.RecoveryAction, *reset_policy.RESET_ACTIONS, *reset_policy.RESET_ACTIONS]
    ),
    face=st.one_of(st.none(), st.sampled_from(FACES)),
    damaged=st.booleans(),
    instance=st.booleans(),
    processes=st.sampled_from([0, 0, 1]),
    daemon=st.sampled_from([False, False, True]),
)


class World:
    """A node of which two GPUs are as found, and the watch over it."""

    def __init__(self, base: Path, results: tuple[Found, ...]) -> None:
        self.node = gpunode.GpuNode(base)
        self.machine = self.node.nvml.machine
        self.reset: list[str] = []
        plugin = self.node.process()
        for number, result in enumerate(results):
            self._arrange(number, result, plugin.preparer)
        senses = gpu_in_use.GpuProbes(self._signs, self._processes)
        on = gpu_in_use.GpuUseReader(plugin.executor, plugin.gpus, self.node.daemons, senses)
        self.watch = reset_watch.ResetWatch(
            reset_watch.ResetTarget(on.read, self.reset.append, plugin.locks),
            self._ailing,
            reset_watch.Deps(
                lambda _: None,
                lambda _: None,
                metrics.Metrics(prometheus_client.CollectorRegistry()),
                self.node.time,
            ),
        )

    def _arrange(self, number: int, result: Found, preparer: ports.Preparation) -> None:
        gpu = self.machine.gpus[number]
        board = self.machine.board(gpu)
        board.recovery = int(result.action)
        if result.face is not None:
            ref = self.node.allocate(a_claim(number, result.face))
            assert isinstance(preparer.prepare(ref, gpunode.never), ports.Prepared)
            if result.damaged:
                (self.node.records / f"{ref.uid}.json").write_bytes(b"{")
        uuid = ids.GpuUuid(gpu.uuid)
        if result.instance and result.face in {None, "-mig-1g10gb-4"}:
            hands = partitioning.FakePartitions(self.node.nvml.library, self.node.follow)
            hands.enable(uuid)
            hands.create(mig.InstanceRef(uuid, 19, mig.Placement(0, 1)))
        board.processes += [state.Process(7, MIB) for _ in range(result.processes)]
        if result.daemon:
            desired = mps_files.Desired(
                key=f"by-hand-{number}", devices=(uuid,), pinned_memory=(MIB,)
            )
            self.node.daemons.request(desired)

    def _signs(self, gpu: ids.GpuUuid) -> health.PollResult:
        return health.PollResult(recovery=self.machine.board(self.machine.find(gpu)).recovery)

    def _processes(self, gpu: ids.GpuUuid) -> int:
        return len(self.machine.board(self.machine.find(gpu)).processes)

    def _ailing(self) -> dict[ids.GpuUuid, list[health.Ailment]]:
        """Return GPUs that request anything, as the health watch has them."""
        uuids = (ids.GpuUuid(gpu.uuid) for gpu in self.machine.gpus)
        asking = {gpu: self._signs(gpu).recovery_action for gpu in uuids}
        return {
            gpu: [health.Ailment(names.TAINT_RECOVERY, action.name, "NoSchedule", "")]
            for gpu, action in asking.items()
            if isinstance(action, health.RecoveryAction) and action
        }


def a_claim(number: int, face: str) -> claims.Claim:
    result = allocated_claims.a_result(f"{GPUS[number]}{face}")
    if face in {"-mps", "-ts"}:
        consumed = {"memory": quantities.parse("20Gi"), "compute": quantities.parse("25")}
        result = dataclasses.replace(result, share_id=f"share-{number}", consumed=consumed)
    uid = allocated_claims.numbered_uid(number)
    return allocated_claims.an_allocated_claim(result, uid=uid, name=f"claim-{number}")


@settings(max_examples=60)
@given(FOUND, FOUND)
def test_a_gpu_is_reset_exactly_when_it_requests_one_and_is_unused(
    first: Found, second: Found
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), (first, second))
        world.watch.check_gpus(threading.Event())
        expected = [
            gpu.uuid
            for gpu, entry in zip(world.machine.gpus, (first, second), strict=False)
            if entry.action in reset_policy.RESET_ACTIONS and entry.free
        ]
        assert world.reset == sorted(expected)
