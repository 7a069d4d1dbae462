"""What is on a GPU, from everybody who may know: records, CDI specs, MPS, NVML."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from driver import ids
from driver.devices import health
from driver.kubeletplugin import ports
from driver.kubeletplugin.health import reset_policy
from driver.kubeletplugin.host import discovery
from driver.kubeletplugin.prepare import executor


@dataclass(frozen=True, slots=True)
class GpuProbes:
    """What NVML says of a GPU: its signs, and how many processes are on it. Raise DeviceFault."""

    poll: Callable[[ids.GpuUuid], health.PollResult]
    count_processes: Callable[[ids.GpuUuid], int]


class GpuUseReader:
    """Used by one thread."""

    def __init__(
        self,
        acting: executor.Executor,
        gpus: discovery.Discovery,
        daemons: ports.Daemons,
        senses: GpuProbes,
    ) -> None:
        self._executor = acting
        self._gpus = gpus
        self._daemons = daemons
        self._probes = senses

    def read(self, gpu: ids.GpuUuid) -> reset_policy.GpuUse:
        """What is on it now; it may change at once unless the caller holds it.

        Raises NodeFault, DeviceFault: something could not be asked, and may be on it.
        """
        signs = self._probes.poll(gpu)
        if signs.problem:
            return reset_policy.GpuUse(signs)
        mig = self._gpus.refresh_gpu(gpu).mig
        return reset_policy.GpuUse(
            signs,
            claims=tuple(self._claim_uids(gpu)),
            daemons=tuple(self._daemon_keys(gpu)),
            mig_instances=len(mig.instances) if mig else 0,
            processes=self._probes.count_processes(gpu),
        )

    def _claim_uids(self, gpu: ids.GpuUuid) -> Iterator[ids.ClaimUid]:
        """By records; then, as these are read and the damaged known, by the specs of the others."""
        yield from (one.uid for one in self._executor.records.list_records() if gpu in one.gpus)
        specs = self._executor.specs
        yield from (
            uid for uid in self._executor.unaccounted_uids() if gpu in specs.claim_gpus(uid)
        )

    def _daemon_keys(self, gpu: ids.GpuUuid) -> Iterator[str]:
        """One whose file cannot be read may be on any GPU."""
        for key in self._daemons.desired_keys():
            desired = self._daemons.read_desired(key)
            if desired is None or gpu in (key, *desired.devices):
                yield key
