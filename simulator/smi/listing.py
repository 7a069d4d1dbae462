"""`-L`, `-q` and `--query-gpu`."""

from collections.abc import Iterator

from simulator.smi import log, refusal, selection, tree

_COLUMNS = {
    "name": "product_name",
    "gpu_name": "product_name",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "serial": "serial",
    "gpu_serial": "serial",
    "pci.bus_id": "pci/pci_bus_id",
    "gpu_bus_id": "pci/pci_bus_id",
    "persistence_mode": "persistence_mode",
    "compute_mode": "compute_mode",
    "pstate": "performance_state",
    "mig.mode.current": "mig_mode/current_mig",
    "mig.mode.pending": "mig_mode/pending_mig",
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
    "power.limit": "gpu_power_readings/current_power_limit",
    "clocks.sm": "clocks/sm_clock",
    "clocks.mem": "clocks/mem_clock",
}
_OF_THE_MACHINE = ("index", "count", "driver_version")
_UNITS = {"memory": "MiB", "utilization": "%", "power": "W", "clocks": "MHz"}


def list_gpus(nvml: selection.Nvml, ids: str | None) -> Iterator[str]:
    """Every GPU, and below it its MIG devices, each by what its name says after the product's."""
    for target in selection.targets(nvml, ids):
        name, uuid = nvml.device_get_name(target.handle), nvml.device_get_uuid(target.handle)
        yield f"GPU {target.index}: {name} (UUID: {uuid})\n"
        for index, device in selection.mig_devices(nvml, target.handle):
            profile = nvml.device_get_name(device).rpartition(" ")[2]
            uuid = nvml.device_get_uuid(device)
            yield f"  MIG {profile:<11} Device {index:>2}: (UUID: {uuid})\n"


def query(nvml: selection.Nvml, ids: str | None, now: str, *, as_xml: bool) -> Iterator[str]:
    """The whole log."""
    header = log.header(nvml, now)
    if as_xml:
        gpus = [log.of(nvml, target) for target in selection.targets(nvml, ids)]
        yield '<?xml version="1.0" ?>\n'
        version = 13 if nvml.machine.driver_major >= 580 else 12  # noqa: PLR2004 - as captured
        yield f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{version}.dtd">\n'
        whole = tree.group("nvidia_smi_log", "", *header, *gpus)
        yield from (f"{line}\n" for line in tree.xml([whole]))
        return
    yield "\n==============NVSMI LOG==============\n\n"
    yield from (f"{line}\n" for line in tree.text(header[:-1]))
    yield "\n"
    yield from (f"{line}\n" for line in tree.text(header[-1:]))
    for target in selection.targets(nvml, ids):
        yield from (f"{line}\n" for line in tree.text([log.of(nvml, target)]))
        yield "\n"


def table(nvml: selection.Nvml, ids: str | None, fields: str, form: str) -> Iterator[str]:
    """`--query-gpu`: one line a GPU, parted by commas."""
    options = form.split(",")
    columns = [field.strip() for field in fields.split(",")]
    if "csv" not in options:
        raise refusal.usage("--query-gpu takes --format=csv.")
    for column in columns:
        if column not in _COLUMNS and column not in _OF_THE_MACHINE:
            said = f'Field "{column}" is not a valid field to query.\n\n'
            raise refusal.RefusedError(said, refusal.USAGE)
    units = "nounits" not in options
    if "noheader" not in options:
        yield ", ".join(_title(column, units=units) for column in columns) + "\n"
    for target in selection.targets(nvml, ids):
        gpu = log.of(nvml, target)
        cells = (_cell(nvml, target, gpu, column, units=units) for column in columns)
        yield ", ".join(cells) + "\n"


def _title(column: str, *, units: bool) -> str:
    unit = _UNITS.get(column.partition(".")[0])
    return f"{column} [{unit}]" if units and unit else column


def _cell(
    nvml: selection.Nvml, target: selection.Target, gpu: tree.Group, column: str, *, units: bool
) -> str:
    if column in _OF_THE_MACHINE:
        return {
            "index": str(target.index),
            "count": str(nvml.device_get_count()),
            "driver_version": nvml.system_get_driver_version(),
        }[column]
    value = tree.find(gpu.members, _COLUMNS[column])
    if value == "N/A":
        return "[N/A]"
    family = column.partition(".")[0]
    number, _, unit = value.partition(" ")
    bare = family == "temperature" or (family in _UNITS and not units and unit)
    return number if bare else value
