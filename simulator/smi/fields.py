"""The fields of `--query-gpu` and `--query-compute-apps`, as `--help-query-gpu` lists them.

Names: the help of nvidia-smi 580 in public repositories. A field is a value of the log (log.py), or
asked of NVML where the log here has no place for it.
"""

from collections.abc import Callable, Iterator, Mapping

from simulator import client, codes
from simulator.smi import selection, words

IN_LOG: Mapping[str, str] = {
    "name": "product_name",
    "gpu_name": "product_name",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "serial": "serial",
    "gpu_serial": "serial",
    "addressing_mode": "addressing_mode",
    "pci.bus_id": "pci/pci_bus_id",
    "gpu_bus_id": "pci/pci_bus_id",
    "pcie.link.gen.current": "pci/pci_gpu_link_info/pcie_gen/current_link_gen",
    "pcie.link.gen.gpucurrent": "pci/pci_gpu_link_info/pcie_gen/current_link_gen",
    "pcie.link.gen.max": "pci/pci_gpu_link_info/pcie_gen/max_link_gen",
    "pcie.link.gen.gpumax": "pci/pci_gpu_link_info/pcie_gen/max_link_gen",
    "persistence_mode": "persistence_mode",
    "compute_mode": "compute_mode",
    "pstate": "performance_state",
    "fan.speed": "fan_speed",
    "mig.mode.current": "mig_mode/current_mig",
    "mig.mode.pending": "mig_mode/pending_mig",
    "gpu_recovery_action": "gpu_recovery_action",
    "ecc.mode.current": "ecc_mode/current_ecc",
    "ecc.mode.pending": "ecc_mode/pending_ecc",
    "memory.total": "fb_memory_usage/total",
    "memory.reserved": "fb_memory_usage/reserved",
    "memory.used": "fb_memory_usage/used",
    "memory.free": "fb_memory_usage/free",
    "utilization.gpu": "utilization/gpu_util",
    "utilization.memory": "utilization/memory_util",
    "temperature.gpu": "temperature/gpu_temp",
    "power.draw": "gpu_power_readings/instant_power_draw",
    "power.draw.average": "gpu_power_readings/instant_power_draw",
    "power.draw.instant": "gpu_power_readings/instant_power_draw",
    "power.limit": "gpu_power_readings/current_power_limit",
    "enforced.power.limit": "gpu_power_readings/current_power_limit",
    "clocks.sm": "clocks/sm_clock",
    "clocks.current.sm": "clocks/sm_clock",
    "clocks.gr": "clocks/sm_clock",
    "clocks.current.graphics": "clocks/sm_clock",
    "clocks.mem": "clocks/mem_clock",
    "clocks.current.memory": "clocks/mem_clock",
    "fabric.state": "fabric/state",
    "fabric.status": "fabric/status",
}
"""Field to its path in the log."""

OF_MACHINE = ("index", "count", "driver_version", "timestamp")
UNITS = {
    "memory": "MiB",
    "utilization": "%",
    "power": "W",
    "enforced": "W",
    "clocks": "MHz",
    "used_memory": "MiB",
    "used_gpu_memory": "MiB",
}
"""Unit by the first part of a field."""


def _watts(milliwatts: int) -> str:
    return f"{milliwatts / 1000:.2f} W"


def _megahertz(value: int) -> str:
    return f"{value} MHz"


Ask = Callable[[selection.Nvml, client.Handle], str]

ASKED: Mapping[str, Ask] = {
    "vbios_version": lambda nvml, gpu: nvml.device_get_vbios_version(gpu),
    "gsp.mode.current": lambda nvml, gpu: words.enabled(
        on=nvml.device_get_gsp_firmware_mode(gpu)[0]
    ),
    "compute_cap": lambda nvml, gpu: ".".join(
        map(str, nvml.device_get_cuda_compute_capability(gpu))
    ),
    "pci.bus": lambda nvml, gpu: f"0x{nvml.device_get_pci_info(gpu).bus:02X}",
    "pci.device": lambda nvml, gpu: f"0x{nvml.device_get_pci_info(gpu).device:02X}",
    "pci.domain": lambda nvml, gpu: f"0x{nvml.device_get_pci_info(gpu).domain:04X}",
    "pci.device_id": lambda nvml, gpu: f"0x{nvml.device_get_pci_info(gpu).pci_device_id:08X}",
    "pci.sub_device_id": lambda nvml, gpu: (
        f"0x{nvml.device_get_pci_info(gpu).pci_subsystem_id:08X}"
    ),
    "pcie.link.width.current": lambda nvml, gpu: str(nvml.device_get_curr_pcie_link_width(gpu)),
    "pcie.link.width.max": lambda nvml, gpu: str(nvml.device_get_max_pcie_link_width(gpu)),
    "display_mode": lambda nvml, gpu: words.enabled(on=nvml.device_get_display_active(gpu)),
    "display_active": lambda nvml, gpu: words.enabled(on=nvml.device_get_display_active(gpu)),
    "power.management": lambda nvml, gpu: words.enabled(on=nvml.device_get_power_usage(gpu) > 0),
    "power.default_limit": lambda nvml, gpu: _watts(
        nvml.device_get_power_management_default_limit(gpu)
    ),
    "power.min_limit": lambda nvml, gpu: _watts(
        nvml.device_get_power_management_limit_constraints(gpu)[0]
    ),
    "power.max_limit": lambda nvml, gpu: _watts(
        nvml.device_get_power_management_limit_constraints(gpu)[1]
    ),
    "clocks.max.sm": lambda nvml, gpu: _megahertz(
        nvml.device_get_max_clock_info(gpu, codes.Clock.SM)
    ),
    "clocks.max.graphics": lambda nvml, gpu: _megahertz(
        nvml.device_get_max_clock_info(gpu, codes.Clock.GRAPHICS)
    ),
    "clocks.max.memory": lambda nvml, gpu: _megahertz(
        nvml.device_get_max_clock_info(gpu, codes.Clock.MEMORY)
    ),
    "clocks_event_reasons.active": lambda nvml, gpu: (
        f"0x{nvml.device_get_current_clocks_event_reasons(gpu):016X}"
    ),
    "clocks_throttle_reasons.active": lambda nvml, gpu: (
        f"0x{nvml.device_get_current_clocks_event_reasons(gpu):016X}"
    ),
    "ecc.errors.corrected.volatile.total": lambda nvml, gpu: str(
        nvml.device_get_total_ecc_errors(gpu, 0, 0)
    ),
    "ecc.errors.uncorrected.volatile.total": lambda nvml, gpu: str(
        nvml.device_get_total_ecc_errors(gpu, 1, 0)
    ),
    "ecc.errors.corrected.aggregate.total": lambda nvml, gpu: str(
        nvml.device_get_total_ecc_errors(gpu, 0, 1)
    ),
    "ecc.errors.uncorrected.aggregate.total": lambda nvml, gpu: str(
        nvml.device_get_total_ecc_errors(gpu, 1, 1)
    ),
}
"""Fields that NVML is asked for; a GPU without one has `[N/A]`."""

OF_PROCESS = (
    "timestamp",
    "gpu_name",
    "gpu_bus_id",
    "gpu_serial",
    "gpu_uuid",
    "pid",
    "process_name",
    "name",
    "used_gpu_memory",
    "used_memory",
)


def known(field: str) -> bool:
    """Whether `--query-gpu` has the field."""
    return field in IN_LOG or field in ASKED or field in OF_MACHINE


def help_text() -> Iterator[str]:
    """`--help-query-gpu`: each field in quotes, as the program prints them."""
    yield 'List of valid properties to query for the switch "--query-gpu=":\n\n'
    yield from (f'"{field}"\n' for field in sorted((*IN_LOG, *ASKED, *OF_MACHINE)))
