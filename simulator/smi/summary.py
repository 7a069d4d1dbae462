"""`nvidia-smi` alone: the table of GPUs, of MIG devices and of processes.

Layout: outputs under 550 and newer in public repositories.
"""

from collections.abc import Iterator

from simulator import codes, device_calls
from simulator.smi import log, selection, tree, words
from simulator.smi.selection import Nvml, Target

_WIDTH = 89
_GPU_COLUMNS = (41, 24, 22)
_MIG_COLUMNS = (18, 34, 11, 23)
_GPU_TITLES = (
    (
        " GPU  Name                 Persistence-M ",
        " Bus-Id          Disp.A ",
        " Volatile Uncorr. ECC ",
    ),
    (
        " Fan  Temp   Perf          Pwr:Usage/Cap ",
        "           Memory-Usage ",
        " GPU-Util  Compute M. ",
    ),
    (f"{'':41}", f"{'':24}", "               MIG M. "),
)
_MIG_TITLES = (
    (" GPU  GI  CI  MIG ", f"{'Shared Memory-Usage ':>34}", "        Vol", f"{'Shared':^23}"),
    ("      ID  ID  Dev ", f"{'Shared BAR1-Usage ':>34}", " SM     Unc", " CE ENC  DEC  OFA  JPG "),
    (f"{'':18}", f"{'':34}", "        ECC", f"{'':23}"),
)
_PROCESS_TITLES = (
    f"{'  GPU   GI   CI              PID   Type   Process name':<78}GPU Memory ",
    f"{'        ID   ID':<78}Usage      ",
)
_SHORT = {"Default": "Default", "Exclusive_Process": "E. Process", "Prohibited": "Prohibited"}


def of(nvml: Nvml, ids: str | None, now: str) -> Iterator[str]:
    """The whole summary; `now` is the time in words."""
    targets = list(selection.targets(nvml, ids))
    logs = [log.of(nvml, target) for target in targets]
    lines = [*_head(nvml), *_gpus(targets, logs)]
    lines += _mig_devices(targets, logs)
    lines += ["", *_processes(nvml, targets)]
    yield f"{now}\n"
    yield from (f"{line}\n" for line in lines)


def _head(nvml: Nvml) -> Iterator[str]:
    version = nvml.system_get_driver_version()
    cuda = nvml.system_get_cuda_driver_version()
    yield _rule(_WIDTH)
    yield (
        f"| NVIDIA-SMI {version:<22} Driver Version: {version:<14} "
        f"CUDA Version: {f'{cuda // 1000}.{cuda % 1000 // 10}':<8} |"
    )
    yield f"|{_rule(*_GPU_COLUMNS)[1:]}"
    yield from (_cells(*row) for row in _GPU_TITLES)
    yield f"|{_rule(*_GPU_COLUMNS)[1:-1].replace('-', '=')}|"


def _gpus(targets: list[Target], logs: list[tree.Group]) -> Iterator[str]:
    for target, gpu in zip(targets, logs, strict=True):
        yield from _gpu(target, gpu.members)
        yield _rule(*_GPU_COLUMNS)


def _gpu(target: Target, gpu: tuple[tree.Node, ...]) -> Iterator[str]:
    def value(path: str) -> str:
        return tree.find(gpu, path)

    def number(path: str) -> str:
        return value(path).split(" ")[0]

    persistence = "On" if value("persistence_mode") == "Enabled" else "Off"
    name, errors = value("product_name"), value("ecc_errors/volatile/dram_uncorrectable")
    watts, cap = (
        f"{float(number(f'gpu_power_readings/{tag}')):.0f}W"
        for tag in ("instant_power_draw", "current_power_limit")
    )
    used, total = (f"{number(f'fb_memory_usage/{tag}')}MiB" for tag in ("used", "total"))
    busy = value("utilization/gpu_util").replace(" ", "")
    celsius = f"{number('temperature/gpu_temp')}C"
    yield (
        f"| {target.index:>3}  {_shortened(name):<29}{persistence:>4}  |   {target.bus_id} Off |"
        f" {errors:>20} |"
    )
    yield (
        f"| {value('fan_speed'):>3}  {celsius:>4}    {value('performance_state'):<3}"
        f"   {watts:>12} / {cap:>5} | {used:>10} / {total:>9} |"
        f" {busy:>7} {_SHORT[value('compute_mode')]:>12} |"
    )
    yield f"|{'':41}|{'':24}| {value('mig_mode/current_mig'):>20} |"


def _shortened(name: str) -> str:
    most = 27
    return name if len(name) <= most else f"{name[: most - 3]}..."


def _mig_devices(targets: list[Target], logs: list[tree.Group]) -> Iterator[str]:
    if not any(tree.find(gpu.members, "mig_mode/current_mig") == "Enabled" for gpu in logs):
        return
    yield ""
    yield _rule(_WIDTH)
    yield f"| {'MIG devices:':<{_WIDTH - 1}}|"
    yield _rule(*_MIG_COLUMNS)
    yield from (_cells(*row) for row in _MIG_TITLES)
    yield f"|{_rule(*_MIG_COLUMNS)[1:-1].replace('-', '=')}|"
    rows = [
        row
        for target, gpu in zip(targets, logs, strict=True)
        for device in _devices(gpu)
        for row in _mig_device(target, device)
    ]
    yield from rows or [f"|  {'No MIG devices found':<{_WIDTH - 2}}|", _rule(_WIDTH)]


def _devices(gpu: tree.Group) -> tuple[tree.Node, ...]:
    (found,) = (node for node in gpu.members if node.tag == "mig_devices")
    return found.members if isinstance(found, tree.Group) else ()


def _mig_device(target: Target, device: tree.Node) -> Iterator[str]:
    def value(path: str) -> str:
        return tree.find([device], f"mig_device/{path}")

    def usage(tag: str) -> str:
        used, total = (value(f"{tag}/{end}").replace(" ", "") for end in ("used", "total"))
        return f"{used:>17} / {total:>9}"

    shared = "device_attributes/shared/"
    sm, ce, enc, dec, ofa, jpg = (
        value(f"{shared}{kind}_count")
        for kind in ("multiprocessor", "copy_engine", "encoder", "decoder", "ofa", "jpg")
    )
    gi, ci, index = value("gpu_instance_id"), value("compute_instance_id"), value("index")
    yield (
        f"| {target.index:>2}  {gi:>3} {ci:>3} {index:>3}  | {usage('fb_memory_usage')}    |"
        f" {sm:<5} {'0':>3} | {ce:>2} {enc:>3} {dec:>4} {ofa:>4} {jpg:>4} |"
    )
    yield f"|{'':18}| {usage('bar1_memory_usage')}    |{'':11}|{'':23}|"
    yield _rule(*_MIG_COLUMNS)


def _processes(nvml: Nvml, targets: list[Target]) -> Iterator[str]:
    yield _rule(_WIDTH)
    yield f"| {'Processes:':<{_WIDTH - 1}}|"
    yield from (_cells(row) for row in _PROCESS_TITLES)
    yield f"|{'=' * _WIDTH}|"
    rows = [
        _process(target, one)
        for target in targets
        for one in nvml.device_get_compute_running_processes(target.handle)
    ]
    yield from rows or [f"|  {'No running processes found':<{_WIDTH - 2}}|"]
    yield _rule(_WIDTH)


def _process(target: Target, process: device_calls.Process) -> str:
    ids = (
        "N/A" if one == codes.WHOLE_GPU else str(one)
        for one in (process.gpu_instance_id, process.compute_instance_id)
    )
    gi, ci = ids
    memory = words.mib(process.used_gpu_memory).replace(" ", "")
    return (
        f"| {target.index:>4} {gi:>5} {ci:>4} {process.pid:>16}      C   {'N/A':<34} {memory:>10} |"
    )


def _cells(*cells: str) -> str:
    return f"|{'|'.join(cells)}|"


def _rule(*columns: int) -> str:
    return f"+{'+'.join('-' * width for width in columns)}+"
