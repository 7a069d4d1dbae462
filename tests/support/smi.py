"""Clients of the simulated NVML, for tests of the simulated nvidia-smi."""

from simulator import machine
from simulator.smi import selection


def a_client(name: str, *, root: bool = True) -> selection.Nvml:
    nvml = selection.Nvml(machine.build(name, seed="node-1"), root=root)
    nvml.init()
    return nvml
