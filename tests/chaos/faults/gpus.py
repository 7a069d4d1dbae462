"""Faults of GPUs, their driver library and MPS."""

from driver import names
from simulator import codes, control
from tests.chaos import draw, faults, nodeside, world
from tests.chaos.never import NEVER

_WHOLE = str(int(codes.WHOLE_GPU))
FATAL, HARMLESS = "79", "31"
SLOW_MS = {draw.Kind.NVML_SLOW: "40"}
REFUSALS = "3"


class Gpus:
    """Faults of the simulated machines."""

    def __init__(self, source: world.World) -> None:
        self._world = source

    def acts(self) -> faults.Acts:
        """Return the acts by kind."""
        kinds = draw.Kind
        return {
            kinds.XID_FATAL: self._fatal,
            kinds.XID_HARMLESS: lambda fault: self._send(fault, "xid", HARMLESS, _WHOLE, _WHOLE),
            kinds.GPU_LOST: self._lose,
            kinds.ECC: lambda fault: self._send(fault, "ecc", "5", "1"),
            kinds.NVML_SLOW: self._slow,
            kinds.NVML_REFUSES: lambda fault: self._refuse(fault, codes.Return.IN_USE),
            kinds.MIG_REFUSED: lambda fault: self._refuse(
                fault, codes.Return.INSUFFICIENT_RESOURCES
            ),
            kinds.MPS_DIED: self._end_mps,
        }

    def clear_quarantine(self, fault: draw.Fault) -> None:
        """Clear the quarantine as a person would: three failures a day are usual here."""
        words = f"all,{fault.number}"
        body = {"metadata": {"annotations": {names.CLEAR_QUARANTINE: words}}}
        for node in self._world.nodes:
            self._world.patch_node(node.name, body)

    def _side(self, fault: draw.Fault) -> nodeside.NodeSide:
        return self._world.nodes[fault.node]

    def _send(self, fault: draw.Fault, call: str, *words: str) -> None:
        control.send(self._side(fault).machine, call, str(fault.gpu), *words)

    def _fatal(self, fault: draw.Fault) -> None:
        self._send(fault, "xid", FATAL, _WHOLE, _WHOLE)
        self._send(fault, "recovery", "NODE_REBOOT")
        self._wait(fault)
        self._send(fault, "recovery", "NONE")
        self.clear_quarantine(fault)

    def _lose(self, fault: draw.Fault) -> None:
        self._send(fault, "lose")
        self._wait(fault)
        side = self._side(fault)
        side.scar(side.uuids[fault.gpu])
        self._send(fault, "restore")
        self.clear_quarantine(fault)

    def _refuse(self, fault: draw.Fault, code: codes.Return) -> None:
        self._send(fault, "refuse", str(int(code)), REFUSALS)
        self._wait(fault)
        self._send(fault, "refuse", str(int(code)), "0")

    def _slow(self, fault: draw.Fault) -> None:
        base = self._side(fault).machine
        control.send(base, "slow", "*", SLOW_MS[draw.Kind.NVML_SLOW])
        self._wait(fault)
        control.send(base, "slow", "*", "0")

    def _end_mps(self, fault: draw.Fault) -> None:
        """End the MPS daemon of the GPU, or of the next one that has one."""
        side = self._side(fault)
        running = side.look().running
        for step in range(draw.GPUS):
            uuid = side.uuids[(fault.gpu + step) % draw.GPUS]
            if uuid in running:
                side.scar(uuid)
                control.send(side.machine, "mps_death", uuid, str(fault.seed % 2))
                return

    def _wait(self, fault: draw.Fault) -> None:
        self._world.time.wait(NEVER, fault.seconds)
