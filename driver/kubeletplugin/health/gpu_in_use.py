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
class Senses:
    """What NVML says of a GPU: its signs, and how many processes are on it. Raise DeviceFault."""

    signs: Callable[[ids.GpuUuid], health.Signs]
    processes: Callable[[ids.GpuUuid], int]


class Occupancy:
    """Used by one thread."""

    def __init__(
        self,
        acting: executor.Executor,
        gpus: discovery.Discovery,
        daemons: ports.Daemons,
        senses: Senses,
    ) -> None:
        self._acting = acting
        self._gpus = gpus
        self._daemons = daemons
        self._senses = senses

    def of(self, gpu: ids.GpuUuid) -> reset_policy.Use:
        """What is on it now; it may change at once unless the caller holds it.

        Raises NodeFault, DeviceFault: something could not be asked, and may be on it.
        """
        signs = self._senses.signs(gpu)
        if signs.problem:
            return reset_policy.Use(signs)
        mig = self._gpus.again(gpu).mig
        return reset_policy.Use(
            signs,
            claims=tuple(self._claims(gpu)),
            daemons=tuple(self._wanted(gpu)),
            parts=len(mig.instances) if mig else 0,
            processes=self._senses.processes(gpu),
        )

    def _claims(self, gpu: ids.GpuUuid) -> Iterator[ids.ClaimUid]:
        """By records; then, as these are read and the damaged known, by the specs of the others."""
        yield from (one.uid for one in self._acting.records.all() if gpu in one.gpus)
        specs = self._acting.specs
        yield from (uid for uid in self._acting.unaccounted() if gpu in specs.gpus(uid))

    def _wanted(self, gpu: ids.GpuUuid) -> Iterator[str]:
        """One whose file cannot be read may be on any GPU."""
        for key in self._daemons.wanted():
            desired = self._daemons.read(key)
            if desired is None or gpu in (key, *desired.devices):
                yield key
