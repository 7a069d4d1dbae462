"""What `nvidia-smi -q` says of one GPU: the part of the real log that the machine can answer.

Tags and their order: `nvidia-smi -q -x` captures under 580.105.08 (H100), 595.91.07 (T4) and
510.47.03 (A100 with MIG). What a GPU does not have is N/A, as there.
"""

from collections.abc import Iterator

from simulator import client, codes, device_calls
from simulator.smi import health, selection, tree, words
from simulator.smi.tree import Field, Group, Node, group

_ARCHITECTURES = {codes.Architecture.ADA: "Ada Lovelace"}
_MODES = {
    codes.ComputeMode.DEFAULT: "Default",
    codes.ComputeMode.PROHIBITED: "Prohibited",
    codes.ComputeMode.EXCLUSIVE_PROCESS: "Exclusive_Process",
}
_VIRTUALIZATION = {
    codes.Virtualization.NONE: "None",
    codes.Virtualization.PASSTHROUGH: "Pass-Through",
    codes.Virtualization.VGPU: "VGPU",
}


def of(nvml: selection.Nvml, target: selection.Target) -> Group:
    """The whole log of a GPU, under its address."""
    handle = target.handle
    members = (
        *_product(nvml, handle),
        _mig_mode(nvml, handle),
        Group("mig_devices", "", tuple(_mig_devices(nvml, handle))),
        *_identity(nvml, handle),
        _pci(nvml, handle),
        Field("fan_speed", "Fan Speed", words.NOT_THERE),
        Field("performance_state", "Performance State", _performance(nvml, handle)),
        *_memory(nvml, handle),
        Field("compute_mode", "Compute Mode", _compute_mode(nvml, handle)),
        *health.of(nvml, handle),
        _fabric(nvml, handle),
        _processes(nvml, handle),
    )
    return Group("gpu", f"GPU {target.bus_id}", members, attributes=f' id="{target.bus_id}"')


def _product(nvml: selection.Nvml, handle: client.Handle) -> Iterator[Node]:
    brand = codes.Brand(nvml.device_get_brand(handle))
    architecture = codes.Architecture(nvml.device_get_architecture(handle))
    persistence = nvml.device_get_persistence_mode(handle)
    yield Field("product_name", "Product Name", nvml.device_get_name(handle))
    yield Field(
        *("product_brand", "Product Brand"),
        brand.name if brand is codes.Brand.NVIDIA else brand.name.title(),
    )
    yield Field(
        *("product_architecture", "Product Architecture"),
        _ARCHITECTURES.get(architecture, architecture.name.title()),
    )
    yield Field("persistence_mode", "Persistence Mode", words.enabled(on=persistence))
    yield Field("addressing_mode", "Addressing Mode", _addressing(nvml, handle))


def _addressing(nvml: selection.Nvml, handle: client.Handle) -> str:
    mode = selection.answer(nvml.device_get_addressing_mode, handle)
    if mode is None:
        return words.NOT_THERE
    return "None" if mode == codes.AddressingMode.NONE else codes.AddressingMode(mode).name


def _mig_mode(nvml: selection.Nvml, handle: client.Handle) -> Group:
    modes = selection.answer(nvml.device_get_mig_mode, handle)
    current, pending = [words.enabled(on=mode) for mode in modes or ()] or [words.NOT_THERE] * 2
    return group(
        *("mig_mode", "MIG Mode"),
        Field("current_mig", "Current", current),
        Field("pending_mig", "Pending", pending),
    )


def _mig_devices(nvml: selection.Nvml, handle: client.Handle) -> Iterator[Group]:
    for index, device in selection.mig_devices(nvml, handle):
        yield _mig_device(nvml, device, index)


def _mig_device(nvml: selection.Nvml, device: client.Handle, index: int) -> Group:
    has = nvml.device_get_attributes(device)
    shared = (
        Field("multiprocessor_count", "Multiprocessor count", str(has.multiprocessor_count)),
        Field("copy_engine_count", "Copy Engine count", str(has.shared_copy_engine_count)),
        Field("encoder_count", "Encoder count", str(has.shared_encoder_count)),
        Field("decoder_count", "Decoder count", str(has.shared_decoder_count)),
        Field("ofa_count", "OFA count", str(has.shared_ofa_count)),
        Field("jpg_count", "JPG count", str(has.shared_jpeg_count)),
    )
    ids = (nvml.device_get_gpu_instance_id(device), nvml.device_get_compute_instance_id(device))
    return group(
        *("mig_device", "MIG Device"),
        Field("index", "Index", str(index)),
        Field("gpu_instance_id", "GPU Instance ID", str(ids[0])),
        Field("compute_instance_id", "Compute Instance ID", str(ids[1])),
        group("device_attributes", "Device Attributes", group("shared", "Shared", *shared)),
        _fb(nvml, device),
        _bar1(nvml, device),
    )


def _identity(nvml: selection.Nvml, handle: client.Handle) -> Iterator[Node]:
    module = selection.answer(nvml.device_get_module_id, handle)
    if module == device_calls.PCIE_MODULE:
        module = 1  # what the captures of an L40S and a T4 print
    virtual = codes.Virtualization(nvml.device_get_virtualization_mode(handle))
    yield Field("serial", "Serial Number", nvml.device_get_serial(handle))
    yield Field("uuid", "GPU UUID", nvml.device_get_uuid(handle))
    yield Field("minor_number", "Minor Number", str(nvml.device_get_minor_number(handle)))
    yield group(
        *("platformInfo", "Platform Info"), Field("module_id", "Module Id", words.number(module))
    )
    yield group(
        *("gpu_virtualization_mode", "GPU Virtualization Mode"),
        Field("virtualization_mode", "Virtualization Mode", _VIRTUALIZATION[virtual]),
    )
    yield Field("gpu_recovery_action", "GPU Recovery Action", health.recovery(nvml, handle))


def _pci(nvml: selection.Nvml, handle: client.Handle) -> Group:
    pci = nvml.device_get_pci_info(handle)
    return group(
        *("pci", "PCI"),
        Field("pci_bus", "Bus", f"{pci.bus:02X}"),
        Field("pci_device", "Device", f"{pci.device:02X}"),
        Field("pci_domain", "Domain", f"{pci.domain:04X}"),
        Field("pci_device_id", "Device Id", f"{pci.pci_device_id:08X}"),
        Field("pci_bus_id", "Bus Id", pci.bus_id),
        Field("pci_sub_system_id", "Sub System Id", f"{pci.pci_subsystem_id:08X}"),
        group("pci_gpu_link_info", "GPU Link Info", *_link(nvml, handle)),
    )


def _link(nvml: selection.Nvml, handle: client.Handle) -> Iterator[Group]:
    most = nvml.device_get_max_pcie_link_generation(handle)
    now = nvml.device_get_curr_pcie_link_generation(handle)
    yield group(
        *("pcie_gen", "PCIe Generation"),
        Field("max_link_gen", "Max", str(most)),
        Field("current_link_gen", "Current", str(now)),
    )
    yield group(
        *("link_widths", "Link Width"),
        Field("max_link_width", "Max", f"{nvml.device_get_max_pcie_link_width(handle)}x"),
        Field("current_link_width", "Current", f"{nvml.device_get_curr_pcie_link_width(handle)}x"),
    )


def _performance(nvml: selection.Nvml, handle: client.Handle) -> str:
    return f"P{nvml.device_get_performance_state(handle)}"


def _compute_mode(nvml: selection.Nvml, handle: client.Handle) -> str:
    return _MODES[codes.ComputeMode(nvml.device_get_compute_mode(handle))]


def _memory(nvml: selection.Nvml, handle: client.Handle) -> Iterator[Group]:
    yield _fb(nvml, handle)
    yield _bar1(nvml, handle)


def _fb(nvml: selection.Nvml, device: client.Handle) -> Group:
    memory = nvml.device_get_memory_info(device)
    return group(
        *("fb_memory_usage", "FB Memory Usage"),
        Field("total", "Total", words.mib(memory.total)),
        Field("reserved", "Reserved", words.mib(memory.reserved)),
        Field("used", "Used", words.mib(memory.used)),
        Field("free", "Free", words.mib(memory.free)),
    )


def _bar1(nvml: selection.Nvml, device: client.Handle) -> Group:
    memory = nvml.device_get_bar1_memory_info(device)
    return group(
        *("bar1_memory_usage", "BAR1 Memory Usage"),
        Field("total", "Total", words.mib(memory.total)),
        Field("used", "Used", words.mib(memory.used)),
        Field("free", "Free", words.mib(memory.free)),
    )


def _fabric(nvml: selection.Nvml, handle: client.Handle) -> Group:
    info = selection.answer(nvml.device_get_gpu_fabric_info, handle)
    clique = cluster = summary = words.NOT_THERE
    if info:
        clique, cluster = str(info.clique), words.uuid(info.cluster)
        healthy = info.health_summary == codes.FABRIC_HEALTHY
        summary = "Healthy" if healthy else words.NOT_THERE
    return group(
        *("fabric", "Fabric"),
        Field("state", "State", "Completed" if info else words.NOT_THERE),
        Field("status", "Status", "Success" if info else words.NOT_THERE),
        Field("cliqueId", "CliqueId", clique),
        Field("clusterUuid", "ClusterUUID", cluster),
        group("health", "Health", Field("summary", "Summary", summary)),
    )


def _processes(nvml: selection.Nvml, handle: client.Handle) -> Group:
    found = nvml.device_get_compute_running_processes(handle)
    return Group("processes", "Processes", tuple(_process(one) for one in found), none="")


def _process(process: device_calls.Process) -> Group:
    def instance(number: int) -> str:
        return words.NOT_THERE if number == codes.WHOLE_GPU else str(number)

    return group(
        *("process_info", "Process Information"),
        Field("gpu_instance_id", "GPU instance ID", instance(process.gpu_instance_id)),
        Field("compute_instance_id", "Compute instance ID", instance(process.compute_instance_id)),
        Field("pid", "Process ID", str(process.pid)),
        Field("type", "Type", "C"),
        Field("process_name", "Name", words.NOT_THERE),
        Field("used_memory", "Used GPU Memory", words.mib(process.used_gpu_memory)),
    )


def header(nvml: selection.Nvml, now: str) -> tuple[tree.Node, ...]:
    """What stands before the GPUs; `now` is the time in words."""
    cuda = nvml.system_get_cuda_driver_version()
    return (
        Field("timestamp", "Timestamp", now),
        Field("driver_version", "Driver Version", nvml.system_get_driver_version()),
        Field("cuda_version", "CUDA Version", f"{cuda // 1000}.{cuda % 1000 // 10}"),
        Field("attached_gpus", "Attached GPUs", str(nvml.device_get_count())),
    )
