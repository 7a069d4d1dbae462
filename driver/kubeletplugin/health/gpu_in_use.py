"""Use of a GPU, from every source: records, CDI specs, MPS, NVML."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver import ids
from driver.devices import health
from driver.kubeletplugin import ports
from driver.kubeletplugin.health import reset_policy
from driver.kubeletplugin.host import discovery
from driver.kubeletplugin.records import checkpoint


@dataclass(frozen=True, slots=True)
class GpuProbes:
    """NVML queries of a GPU: its poll, and the number of its processes. Raise DeviceFault."""

    poll: Callable[[ids.GpuUuid], health.PollResult]
    count_processes: Callable[[ids.GpuUuid], int]


class GpuUseReader:
    """Used by one thread. `unaccounted` returns the GPUs of claims whose record is damaged."""

    def __init__(
        self,
        list_records: Callable[[], Iterable[checkpoint.Record]],
        unaccounted: Callable[[], Mapping[ids.ClaimUid, Collection[ids.GpuUuid]]],
        gpus: discovery.Discovery,
        daemons: ports.Daemons,
        probes: GpuProbes,
    ) -> None:
        self._list_records = list_records
        self._unaccounted = unaccounted
        self._gpus = gpus
        self._daemons = daemons
        self._probes = probes

    def read(self, gpu: ids.GpuUuid) -> reset_policy.GpuUse:
        """Return the current use; it may change at once unless the caller holds the GPU.

        Raises NodeFault, DeviceFault: a source could not be read, so the GPU may be in use.
        """
        poll = self._probes.poll(gpu)
        if poll.problem:
            return reset_policy.GpuUse(poll)
        mig = self._gpus.refresh_gpu(gpu).mig
        return reset_policy.GpuUse(
            poll,
            claims=tuple(self._claim_uids(gpu)),
            daemons=tuple(self._daemon_keys(gpu)),
            mig_instances=len(mig.instances) if mig else 0,
            processes=self._probes.count_processes(gpu),
        )

    def _claim_uids(self, gpu: ids.GpuUuid) -> Iterator[ids.ClaimUid]:
        """Yield claims by record; then, once damaged records are known, by the others' specs."""
        yield from (record.uid for record in self._list_records() if gpu in record.gpus)
        yield from (uid for uid, gpus in self._unaccounted().items() if gpu in gpus)

    def _daemon_keys(self, gpu: ids.GpuUuid) -> Iterator[str]:
        """Yield the GPU's daemons; one whose file cannot be read may be on any GPU."""
        for key in self._daemons.desired_keys():
            desired = self._daemons.read_desired(key)
            if desired is None or gpu in (key, *desired.devices):
                yield key
