"""Programs nobody here wrote, on every simulated machine: what they say of it is right."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from driver import ids
from driver.devices import mig, model
from driver.kubeletplugin.cdi import metadata_files, spec_writer, store
from driver.kubeletplugin.cdi.driver import files as driver_files
from driver.kubeletplugin.host import capabilities as opened
from driver.kubeletplugin.host import discovery, driver_root
from driver.kubeletplugin.nvml import library as nvml
from driver.kubeletplugin.plan import steps
from driver.kubeletplugin.records import checkpoint
from hack.cluster import shell
from simulator import capabilities, control, layout, machine, profile
from simulator import store as machines
from tests.contract import toolkit, worlds
from tests.support.builders import allocated_claims

KIND = "gpu.ration.dev/claim"
WIDE = {"COLUMNS": "120", "LINES": "200"}
ROW = re.compile(r"\|\s+(\d+)\s{2}(\S.*?)\s+(On|Off) \| (\S+) ")
MIG_ROW = re.compile(r"\|\s*(\d+):(\d+)\s+(\S+) @ GI/CI:\s*(\d+)/(\d+)\s")
WHOLE = str(0xFFFFFFFF)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="device nodes and MIG are root's")


@pytest.fixture(params=profile.names(), scope="module")
def base(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A machine, running, as it was born."""
    path = tmp_path_factory.mktemp("machine")
    with worlds.running(path, str(request.param)):
        yield path


@pytest.fixture
def parted(tmp_path: Path) -> Iterator[Path]:
    """An H100 machine with a 3g and a 1g MIG device on GPU 2."""
    with worlds.running(tmp_path, "hgx-h100") as library, worlds.initialised(library):
        gpu = pynvml.nvmlDeviceGetHandleByIndex(2)
        assert pynvml.nvmlDeviceSetMigMode(gpu, 1) == pynvml.NVML_SUCCESS
        for gpu_profile, compute_profile in ((9, 2), (19, 0)):
            gpu_instance = pynvml.nvmlDeviceCreateGpuInstance(gpu, gpu_profile)
            pynvml.nvmlGpuInstanceCreateComputeInstance(gpu_instance, compute_profile)
        yield tmp_path


def run(base: Path, *argv: str) -> str:
    """A Python program as a user starts it, with the machine's NVML in the loader's path."""
    libraries = str(layout.Layout(base).libraries)
    environment = {**os.environ, **WIDE, "LD_LIBRARY_PATH": libraries}
    return shell.run((sys.executable, "-m", *argv), env=environment)


def gpus(base: Path) -> tuple[machine.Gpu, ...]:
    """In the order NVML numbers them."""
    return machines.load(base).gpus


def test_gpustat_lists_every_gpu_with_its_name_and_figures(base: Path) -> None:
    document = json.loads(run(base, "gpustat", "--json"))
    assert document["driver_version"] == machines.load(base).driver_version
    for index, (row, gpu) in enumerate(zip(document["gpus"], gpus(base), strict=True)):
        assert (row["index"], row["uuid"]) == (index, gpu.uuid)
        assert row["name"] == gpu.product.name
        assert row["memory.total"] == gpu.product.memory_mib.total
        assert row["temperature.gpu"] == gpu.product.idle_celsius
        assert row["enforced.power.limit"] == gpu.product.power_w.default
        assert row["utilization.gpu"] == 0


def test_nvitop_lists_every_gpu_with_its_address(base: Path) -> None:
    message = run(base, "nvitop", "-1", "--ascii")
    rows = [ROW.match(line) for line in message.splitlines()]
    groups = [row.groups() for row in rows if row]
    for index, (row, gpu) in enumerate(zip(groups, gpus(base), strict=True)):
        number, name, persistence, bus_id = row
        assert (number, persistence, bus_id) == (str(index), "On", gpu.bus_id)
        assert gpu.product.name.endswith(name.removeprefix(".."))  # a long one is cut in front
    assert f"Driver Version: {machines.load(base).driver_version}" in message
    with_mig = any(gpu.product.mig for gpu in gpus(base))
    assert ("Disabled" in message) == with_mig


@needs_root
def test_nvitop_and_gpustat_show_processes_and_mig_devices(parted: Path) -> None:
    pid = str(os.getpid())
    control.send(parted, "process", "3", pid, str(2 << 30), WHOLE, WHOLE)
    message = run(parted, "nvitop", "-1", "--ascii")
    rows = [MIG_ROW.match(line) for line in message.splitlines()]
    groups = [row.groups() for row in rows if row]
    assert groups == [("2", "0", "3g.40gb", "1", "0"), ("2", "1", "1g.10gb", "11", "0")]
    assert re.search(rf"\|\s+3\s+{pid}\s.*2048MiB", message)
    listed = json.loads(run(parted, "gpustat", "--json"))["gpus"]
    assert [(p["pid"], p["gpu_memory_usage"]) for p in listed[3]["processes"]] == [
        (os.getpid(), 2048)
    ]
    assert listed[2]["utilization.gpu"] is None  # no such reading while MIG is on


@needs_root
@pytest.mark.timeout(900)  # the first of them builds the program
def test_nvidia_ctk_gives_a_container_what_we_give(base: Path) -> None:
    theirs, ours = toolkit.generate(base), spec_of_all(base)
    devices = {device["name"]: device["containerEdits"] for device in ours["devices"]}
    named = {device["name"]: device["containerEdits"] for device in theirs["devices"]}
    assert devices.keys() == {gpu.uuid for gpu in gpus(base)}
    for uuid, edits in devices.items():
        assert nodes(named[uuid]) == nodes(edits)
    assert len(named) == 2 * len(devices) + 1  # by index and by UUID, and all of them
    assert nodes(theirs["containerEdits"]) == nodes(ours["containerEdits"])
    assert files(theirs) == files(ours)
    assert set(ours["containerEdits"]["env"]) <= set(theirs["containerEdits"]["env"])


@needs_root
@pytest.mark.timeout(900)
def test_nvidia_ctk_names_the_capabilities_of_mig_devices(parted: Path) -> None:
    spec = toolkit.generate(parted)
    named = {device["name"]: device["containerEdits"] for device in spec["devices"]}
    assert {name for name in named if re.match(r"\d", name)} == {
        *("0", "1", "2:0", "2:1", "3", "4", "5", "6", "7")
    }
    load = machines.load(parted)
    (gpu,) = (gpu for gpu in load.gpus if load.board(gpu).mig)
    for instance in load.board(gpu).instances:
        minors = capabilities.access(gpu.slot.minor, instance, instance.compute[0])
        expected = {(f"nvidia{gpu.slot.minor}", 195, gpu.slot.minor)}
        expected |= {(f"nvidia-cap{minor}", 237, minor) for minor in minors}
        edits = named[instance.compute[0].uuid]
        assert {(path.name, major, minor) for path, major, minor in nodes(edits)} == expected
    for entry in spec_of_parts(parted, gpu.uuid)["devices"]:
        theirs = nodes(named[entry["name"]])
        ours = nodes(entry["containerEdits"])
        assert {(path.name, major, minor) for path, major, minor in ours} == {
            (path.name, major, minor) for path, major, minor in theirs
        }


def spec_of_all(base: Path) -> Any:
    """Return what our plugin writes for a claim on every GPU; devices are named by UUID here."""
    with worlds.loaded(layout.Layout(base).libraries / "libnvidia-ml.so.1"):
        return spec_of(base, lambda gpu: [planned(gpu, gpu.uuid, steps.Edits((gpu.uuid,)))])


def spec_of_parts(base: Path, uuid: str) -> Any:
    """Return the same for a claim on every MIG device of a GPU that somebody else has made."""

    def devices(gpu: model.Gpu) -> list[steps.PlannedDevice]:
        if gpu.uuid != uuid or gpu.mig is None:
            return []
        places = (
            mig.InstanceRef(gpu.uuid, instance.profile_id, instance.placement, instance.uuid)
            for instance in gpu.mig.instances
        )
        return [
            planned(gpu, str(instance_ref.uuid), steps.Edits((gpu.uuid,), instance_ref))
            for instance_ref in places
        ]

    return spec_of(base, devices)


def spec_of(base: Path, devices: Callable[[model.Gpu], list[steps.PlannedDevice]]) -> Any:
    position = layout.Layout(base)
    library = nvml.NvmlLibrary(position.driver_root, position.host_root)
    seen = discovery.Discovery(library)
    planned_devices = tuple(device for gpu in seen.refresh().gpus for device in devices(gpu))
    root = driver_files.DriverFiles(
        driver_root.DriverRoot(position.driver_root), position.host_root
    )
    opening = opened.Capabilities(position.host_root)
    reported = metadata_files.MetadataFiles(base / "told")
    files = spec_writer.ClaimFiles(store.SpecStore(base, KIND), reported)
    writer = spec_writer.CdiSpecWriter(KIND, seen, root, files, opening)
    started = checkpoint.State.STARTED
    text = writer.render(
        checkpoint.Record(allocated_claims.a_ref(), started, "boot", planned_devices, ())
    )
    library.close()
    return json.loads(text)


def planned(gpu: model.Gpu, name: str, edits: steps.Edits) -> steps.PlannedDevice:
    return steps.PlannedDevice(
        request="gpus",
        pool="node",
        device=ids.DeviceName("any"),
        gpu=gpu.uuid,
        cdi_id=f"{KIND}={name}",
        edits=edits,
    )


def nodes(edits: Any) -> set[tuple[Path, int, int]]:
    """Return where on the host, major, minor; theirs leave a minor out that is 0."""
    return {
        (Path(node["hostPath"]), node["major"], node.get("minor", 0))
        for node in edits["deviceNodes"]
    }


def files(spec: Any) -> set[Path]:
    """The files of the driver that are mounted, without the programs of MPS, which we leave out."""
    paths = (Path(mount["hostPath"]) for mount in spec["containerEdits"]["mounts"])
    return {path for path in paths if not path.name.startswith("nvidia-cuda-mps-")}
