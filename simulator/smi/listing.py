"""`-L`, `-q`, `--query-gpu` and `--query-compute-apps`."""

from collections.abc import Callable, Iterable, Iterator

from simulator import device_calls
from simulator.smi import fields, log, refusal, selection, tree, words


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


def table(nvml: selection.Nvml, ids: str | None, asked: str, form: str, now: str) -> Iterator[str]:
    """`--query-gpu`: one line a GPU, parted by commas."""
    columns = _columns(asked, fields.known)
    yield from _header(columns, form, "--query-gpu")
    for target in selection.targets(nvml, ids):
        gpu = log.of(nvml, target)
        cells = (_value(nvml, target, gpu, column, now) for column in columns)
        yield _row(columns, cells, form)


def processes(
    nvml: selection.Nvml, ids: str | None, asked: str, form: str, now: str
) -> Iterator[str]:
    """`--query-compute-apps`: one line a process of each GPU."""
    columns = _columns(asked, fields.OF_PROCESS.__contains__)
    yield from _header(columns, form, "--query-compute-apps")
    for target in selection.targets(nvml, ids):
        gpu = log.of(nvml, target)
        for process in nvml.device_get_compute_running_processes(target.handle):
            own = _of_process(process)
            cells = (
                own[column] if column in own else _value(nvml, target, gpu, column, now)
                for column in columns
            )
            yield _row(columns, cells, form)


def _columns(asked: str, known: Callable[[str], bool]) -> list[str]:
    columns = [field.strip() for field in asked.split(",")]
    for column in columns:
        if not known(column):
            said = f'Field "{column}" is not a valid field to query.\n\n'
            raise refusal.RefusedError(said, refusal.USAGE)
    return columns


def _header(columns: list[str], form: str, option: str) -> Iterator[str]:
    options = form.split(",")
    if "csv" not in options:
        raise refusal.usage(f"{option} takes --format=csv.")
    if "noheader" not in options:
        units = "nounits" not in options
        yield ", ".join(_title(column, units=units) for column in columns) + "\n"


def _row(columns: list[str], values: Iterable[str], form: str) -> str:
    units = "nounits" not in form.split(",")
    cells = (
        _cell(column, value, units=units) for column, value in zip(columns, values, strict=True)
    )
    return ", ".join(cells) + "\n"


def _title(column: str, *, units: bool) -> str:
    unit = fields.UNITS.get(column.partition(".")[0])
    return f"{column} [{unit}]" if units and unit else column


def _of_process(process: device_calls.Process) -> dict[str, str]:
    memory = words.mib(process.used_gpu_memory)
    name = words.NOT_THERE
    return {
        "pid": str(process.pid),
        "process_name": name,
        "name": name,
        "used_gpu_memory": memory,
        "used_memory": memory,
    }


def _value(
    nvml: selection.Nvml, target: selection.Target, gpu: tree.Group, column: str, now: str
) -> str:
    if column in fields.OF_MACHINE:
        return {
            "index": str(target.index),
            "count": str(nvml.device_get_count()),
            "driver_version": nvml.system_get_driver_version(),
            "timestamp": now,
        }[column]
    if column in fields.ASKED:
        answer = selection.answer(fields.ASKED[column], nvml, target.handle)
        return words.NOT_THERE if answer is None else answer
    return tree.find(gpu.members, fields.IN_LOG[column])


def _cell(column: str, value: str, *, units: bool) -> str:
    if value == words.NOT_THERE:
        return f"[{value}]"
    family = column.partition(".")[0]
    number, _, unit = value.partition(" ")
    bare = family == "temperature" or (family in fields.UNITS and not units and unit)
    return number if bare else value
