"""Faults of nodes: full disks, wiped folders, stepped clocks, reboots."""

from tests.chaos import disks, draw, faults, world
from tests.chaos.never import NEVER

HOUR_S = 3600


class Places:
    """Places of nodes."""

    def __init__(self, source: world.World) -> None:
        self._world = source

    def acts(self) -> faults.Acts:
        """Return the acts by kind."""
        kinds = draw.Kind
        return {
            kinds.STATE_FULL: lambda fault: self._fill(fault, "state"),
            kinds.CDI_FULL: lambda fault: self._fill(fault, "cdi"),
            kinds.CDI_WIPED: self._wipe,
            kinds.CLOCK_FORWARD: lambda fault: self._step(fault, HOUR_S),
            kinds.CLOCK_BACK: lambda fault: self._step(fault, -HOUR_S),
            kinds.NODE_REBOOTED: self._reboot,
        }

    def _fill(self, fault: draw.Fault, folder: str) -> None:
        with disks.filled(self._world.nodes[fault.node].root / folder):
            self._world.time.wait(NEVER, fault.seconds)

    def _wipe(self, fault: draw.Fault) -> None:
        for path in (self._world.nodes[fault.node].root / "cdi").iterdir():
            path.unlink(missing_ok=True)

    def _step(self, fault: draw.Fault, seconds: int) -> None:
        """Step the clocks of a node's plugin and supervisor, or of both controllers."""
        names = ("controllers", *(node.name for node in self._world.nodes))
        stepped = self._world.clocks[names[fault.seed % len(names)]]
        stepped.step(seconds)
        self._world.time.wait(NEVER, fault.seconds)
        stepped.step(0)

    def _reboot(self, fault: draw.Fault) -> None:
        side = self._world.nodes[fault.node]
        side.expect_registration()
        self._world.cluster.reboot(side.name, lambda: disks.furnish(side.root))
