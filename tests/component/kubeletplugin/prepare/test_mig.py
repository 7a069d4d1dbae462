"""MIG claims through the whole core, real pynvml and a simulated machine's library and files."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest

from driver import clock, errors, reasons
from driver.devices import faces, mig
from driver.kubeletplugin import composition, config, ports
from driver.kubeletplugin.nvml import errors as nvml_errors
from tests.fakes import gpunode, simulated_node
from tests.support.builders import allocated_claims

IN_USE, NO_RESOURCES = 19, 23

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="device nodes and MIG are root's")


@pytest.fixture
def product() -> str:
    return "hgx-h100"


@pytest.fixture
def node(tmp_path: Path, product: str) -> Iterator[simulated_node.SimulatedNode]:
    with simulated_node.running(tmp_path, product) as running:
        if not (running.at.driver_root / "dev/nvidia0").is_char_device():
            pytest.skip("this user may not make device nodes")
        yield running


def a_claim(node: simulated_node.SimulatedNode, *parts: str, number: int = 1) -> ports.ClaimRef:
    """A claim on parts of GPUs, named `<index>-mig-...`; `<index>` alone is the whole GPU."""
    wholes = [faces.device_name(gpu.pci) for gpu in node.gpus()]
    results = []
    for part in parts:
        index, dash, rest = part.partition("-")
        results.append(allocated_claims.a_result(f"{wholes[int(index)]}{dash}{rest}", request=part))
    uid = allocated_claims.numbered_uid(number)
    claim = allocated_claims.an_allocated_claim(*results, uid=uid, name=f"claim-{number}")
    node.reader.claims[claim.key] = claim
    return ports.ClaimRef(claim.namespace, claim.name, claim.uid)


def prepare(process: gpunode.Process, ref: ports.ClaimRef) -> None:
    answer = process.preparer.prepare(ref, gpunode.never)
    assert isinstance(answer, ports.Prepared), answer


def nodes(node: simulated_node.SimulatedNode, ref: ports.ClaimRef) -> list[tuple[str, str]]:
    """The device nodes of a claim's one device: path in the container and on the host."""
    (path,) = (path for path in node.cdi.iterdir() if ref.uid in path.name)
    (device,) = json.loads(path.read_bytes())["devices"]
    device_nodes = device["containerEdits"]["deviceNodes"]
    for device_node in device_nodes:
        host = os.stat(device_node["hostPath"])  # noqa: PTH116 - the numbers of a device node
        numbers = (os.major(host.st_rdev), os.minor(host.st_rdev))
        assert numbers == (device_node["major"], device_node["minor"])
    return [(entry["path"], entry["hostPath"]) for entry in device_nodes]


@pytest.mark.parametrize(
    ("product", "part", "start"),
    [
        ("hgx-h100", "0-mig-1g10gb-4", 4),
        ("hgx-h100", "2-mig-1g20gb-6", 6),
        ("dgx-a100", "0-mig-1g5gb-me-3", 3),
        ("a30", "1-mig-2g12gb-2", 2),
        ("rtx-pro-6000", "3-mig-1g24gb-gfx-9", 9),
    ],
)
def test_a_part_is_made_given_and_taken_back(
    node: simulated_node.SimulatedNode, part: str, start: int
) -> None:
    index = int(part[0])
    previous = node.gpus()
    ref = a_claim(node, part)
    process = node.process()
    prepare(process, ref)
    (instance,) = node.parts(index).instances
    assert instance.placement.start == start
    (gpu, *caps) = [path for path, _ in nodes(node, ref)]
    assert gpu == f"/dev/nvidia{index}"
    listed = (node.at.host_root / "proc/driver/nvidia-caps/mig-minors").read_text().splitlines()
    minors = dict(line.split() for line in listed)
    gi = f"gpu{index}/gi{instance.gpu_instance}"
    assert caps == [
        f"/dev/nvidia-caps/nvidia-cap{minors[name]}"
        for name in (f"{gi}/access", f"{gi}/ci{instance.compute_instance}/access")
    ]
    assert node.process().recover().unchanged == [ref.uid]
    assert process.preparer.unprepare(ref) is None
    assert (node.gpus(), node.files()) == (previous, [])


def test_three_parts_and_other_gpus_in_other_modes_at_once(
    node: simulated_node.SimulatedNode,
) -> None:
    previous = node.gpus()
    process = node.process()
    refs = [
        a_claim(node, "0-mig-1g10gb-0", number=1),
        a_claim(node, "0-mig-2g20gb-2", number=2),
        a_claim(node, "0-mig-3g40gb-4", number=3),
        a_claim(node, "1", number=4),
        a_claim(node, "2-mig-7g80gb-0", "3-mig-4g40gb-0", "3-mig-1g10gb-me-5", number=5),
    ]
    for ref in refs:
        prepare(process, ref)
    assert [len(node.parts(index).instances) for index in range(4)] == [3, 0, 1, 2]
    for ref in refs:
        process.preparer.unprepare(ref)
    assert (node.gpus(), node.files()) == (previous, [])


def test_an_instance_made_by_hand_is_never_destroyed(node: simulated_node.SimulatedNode) -> None:
    half = mig.InstanceRef(node.gpus()[0].uuid, 9, mig.Placement(4, 4))
    uuid = node.by_hand(half)
    process = node.process()
    adopted = a_claim(node, "0-mig-3g40gb-4", number=1)
    beside = a_claim(node, "0-mig-1g10gb-1", number=2)
    for ref in (adopted, beside):
        prepare(process, ref)
        process.preparer.unprepare(ref)
    (left,) = node.parts().instances
    assert (left.uuid, node.parts().enabled, node.files()) == (uuid, True, [])


def calls_of(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[str]:
    """The calls of NVML that an act makes."""
    calls: list[str] = []
    call_nvml = nvml_errors.call_nvml

    def counted(device: str, call: Callable[..., object], *arguments: object) -> object:
        calls.append(call.__name__)
        return call_nvml(device, call, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(nvml_errors, "call_nvml", counted)
        act()
    return calls


def test_a_part_takes_few_calls_once_the_profiles_are_known(
    node: simulated_node.SimulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref, process = a_claim(node, "0-mig-1g10gb-4"), node.process()
    prepare(process, ref)
    process.preparer.unprepare(ref)
    assert calls_of(monkeypatch, lambda: prepare(process, ref)) == [
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceSetMigMode",
        "nvmlDeviceGetMinorNumber",
        "nvmlDeviceCreateGpuInstanceWithPlacement",
        "nvmlGpuInstanceCreateComputeInstance",
        "nvmlGpuInstanceGetInfo",
        "nvmlComputeInstanceGetInfo",
        "nvmlDeviceGetUUID",
    ]
    assert calls_of(monkeypatch, lambda: process.preparer.unprepare(ref)) == [
        "nvmlDeviceGetGpuInstanceById",
        "nvmlGpuInstanceGetComputeInstanceById",
        "nvmlComputeInstanceGetInfo",
        "nvmlDeviceGetUUID",
        "nvmlComputeInstanceDestroy",
        "nvmlGpuInstanceDestroy",
        "nvmlDeviceGetGpuInstanceRemainingCapacity",
        "nvmlDeviceSetMigMode",
        "nvmlDeviceGetMinorNumber",
    ]


def test_a_driver_whose_compute_instances_name_the_gpu_has_its_devices_searched(
    node: simulated_node.SimulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    info_of = pynvml.nvmlComputeInstanceGetInfo

    def with_parent(compute: object) -> object:
        info = info_of(compute)
        info.device = pynvml.nvmlDeviceGetHandleByIndex(0)
        return info

    monkeypatch.setattr(pynvml, "nvmlComputeInstanceGetInfo", with_parent)
    ref, process = a_claim(node, "0-mig-1g10gb-4"), node.process()
    prepare(process, ref)
    (instance,) = node.parts().instances
    assert process.records.list_records()[0].facts[-1]["uuid"] == instance.uuid
    process.preparer.unprepare(ref)
    assert (node.parts().enabled, node.files()) == (False, [])


def test_an_instance_made_by_hand_after_the_last_reading_is_used_and_stays(
    node: simulated_node.SimulatedNode,
) -> None:
    process = node.process()
    uuid = node.by_hand(mig.InstanceRef(node.gpus()[0].uuid, 9, mig.Placement(4, 4)))
    ref = a_claim(node, "0-mig-3g40gb-4")
    prepare(process, ref)
    assert process.records.list_records()[0].steps == ()
    process.preparer.unprepare(ref)
    assert [instance.uuid for instance in node.parts().instances] == [uuid]


def test_what_overlaps_an_instance_made_by_hand_is_refused_by_nvml_and_then_unknown(
    node: simulated_node.SimulatedNode,
) -> None:
    claimed, process = a_claim(node, "0-mig-1g10gb-0"), node.process()
    prepare(process, claimed)
    uuid = node.by_hand(mig.InstanceRef(node.gpus()[0].uuid, 9, mig.Placement(4, 4)))
    ref = a_claim(node, "0-mig-1g20gb-6", number=2)
    with pytest.raises(errors.Unchanged, match=f"NVML error {NO_RESOURCES}"):
        process.preparer.prepare(ref, gpunode.never)
    current = process.gpus.current().gpus[0].mig
    assert current is not None
    assert [instance.uuid for instance in current.foreign] == [uuid]
    answer = process.preparer.prepare(ref, gpunode.never)
    assert isinstance(answer, ports.Refused)
    assert answer.reason is reasons.Reason.DEVICE_UNKNOWN


@pytest.mark.parametrize("code", [IN_USE, NO_RESOURCES])
def test_a_mig_device_that_the_gpu_refuses_is_rolled_back_and_retried(
    node: simulated_node.SimulatedNode, code: int
) -> None:
    previous = node.gpus()
    ref = a_claim(node, "0-mig-1g10gb-4")
    node.fault("refuse", 0, code, 1000)
    process = node.process()
    with pytest.raises(errors.Unchanged, match=f"NVML error {code}"):
        process.preparer.prepare(ref, gpunode.never)
    assert (node.gpus(), node.files()) == (previous, [])
    node.fault("refuse", 0, code, 0)
    prepare(process, ref)


OTHER_CLIENT = """
import ctypes, sys
nvml = ctypes.CDLL(sys.argv[1])
assert nvml.nvmlInit_v2() == 0
print("open", flush=True)
sys.stdin.read()
"""


#
def test_while_another_program_has_the_gpu_open_the_mode_is_refused_and_put_back(
    node: simulated_node.SimulatedNode,
) -> None:
    previous = node.gpus()
    node.fault("shy", 0, 1)
    ref, process = a_claim(node, "0-mig-1g10gb-4"), node.process()
    library = str(node.at.libraries / "libnvidia-ml.so.1")
    command = [sys.executable, "-c", OTHER_CLIENT, library]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(errors.Unchanged, match="another program"):
            process.preparer.prepare(ref, gpunode.never)
        assert (node.gpus(), node.files()) == (previous, [])
        other.communicate()
    prepare(process, ref)


def test_a_busy_instance_is_waited_for_and_stays_on_record_beyond_that(
    node: simulated_node.SimulatedNode,
) -> None:
    ref = a_claim(node, "0-mig-3g40gb-0")
    process = node.process()
    prepare(process, ref)
    (instance,) = node.parts().instances
    node.fault("process", 0, 4242, 1 << 30, instance.gpu_instance, 0)
    with pytest.raises(errors.DeviceFault, match="NVML error 19"):
        process.preparer.unprepare(ref)
    other = a_claim(node, "1-mig-3g40gb-0", number=2)
    prepare(process, other)
    node.fault("process", 0, 4242, 0, instance.gpu_instance, 0)
    process.preparer.unprepare(ref)
    assert node.parts().instances == ()


def test_a_gpu_that_moves_with_its_mode_is_given_by_its_new_minor(
    node: simulated_node.SimulatedNode,
) -> None:
    node.fault("moves", 0)
    ref = a_claim(node, "0-mig-1g10gb-4")
    process = node.process()
    prepare(process, ref)
    assert nodes(node, ref)[0][0] == "/dev/nvidia8"
    node.fault("moves", 8)
    process.preparer.unprepare(ref)
    whole = a_claim(node, "0", number=2)
    prepare(process, whole)
    assert nodes(node, whole)[0][0] == "/dev/nvidia0"


def deaths(node: simulated_node.SimulatedNode) -> tuple[int, int]:
    """Return how many acts prepare and unprepare of a claim are."""
    ref, watch = a_claim(node, "0-mig-1g23gb-5"), gpunode.DiesAt()
    prepare(node.process(watch), ref)
    count = len(watch.passed)
    node.process(watch).preparer.unprepare(ref)
    return count, len(watch.passed) - count


@pytest.mark.parametrize("product", ["gb200-tray"])
def test_a_death_at_any_act_of_prepare_or_unprepare_ends_in_the_right_state(
    node: simulated_node.SimulatedNode,
) -> None:
    previous = node.gpus()
    preparing, unpreparing = deaths(node)
    assert (preparing, unpreparing) == (13, 10)
    ref = a_claim(node, "0-mig-1g23gb-5")
    for number in range(preparing - 1):
        with pytest.raises(gpunode.Killed):
            node.process(gpunode.DiesAt(number)).preparer.prepare(ref, gpunode.never)
        if number % 2:
            assert node.process().recover().rolled_back == ([ref.uid] if number else [])
            assert (node.gpus(), node.files()) == (previous, [])
        process = node.process()
        prepare(process, ref)
        assert len(node.parts().instances) == 1
        process.preparer.unprepare(ref)
        assert (node.gpus(), node.files()) == (previous, [])
    for number in range(unpreparing):
        prepare(node.process(), ref)
        with pytest.raises(gpunode.Killed):
            node.process(gpunode.DiesAt(number)).preparer.unprepare(ref)
        process = node.process()
        if number % 2:
            assert process.recover().is_complete
        assert process.preparer.unprepare(ref) is None
        assert (node.gpus(), node.files()) == (previous, [])


def test_after_a_reboot_the_claim_has_its_part_again(node: simulated_node.SimulatedNode) -> None:
    ref = a_claim(node, "0-mig-1g10gb-4")
    prepare(node.process(), ref)
    node.fault("reboot")
    node.library.close()
    process = node.process()
    assert process.recover().restored == [ref.uid]
    assert len(nodes(node, ref)) == 3
    process.preparer.unprepare(ref)
    assert (node.parts().enabled, node.files()) == (False, [])


class Gate:
    """Holds the first one that has made a GPU instance until another GPU's claim is prepared."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()
        self.in_time = False

    def on_point(self, point: str) -> None:
        if point == "GPU instance made" and not self.reached.is_set():
            self.reached.set()
            self.in_time = self.opened.wait(20)


def test_making_an_instance_holds_up_no_other_gpu(node: simulated_node.SimulatedNode) -> None:
    gate = Gate()
    process = node.process(gate)
    slow = a_claim(node, "0-mig-3g40gb-0", number=1)
    thread = threading.Thread(target=process.preparer.prepare, args=(slow, gpunode.never))
    thread.start()
    assert gate.reached.wait(20)
    prepare(process, a_claim(node, "1-mig-3g40gb-0", number=2))
    gate.opened.set()
    thread.join(20)
    assert gate.in_time
    assert len(node.parts().instances) == 1


def test_looking_at_the_gpus_while_parts_come_and_go_finds_all_of_them(
    node: simulated_node.SimulatedNode,
) -> None:
    process = node.process()
    refs = [a_claim(node, f"{gpu}-mig-3g40gb-0", number=gpu + 1) for gpu in range(2)]
    done = threading.Event()

    def come_and_go(ref: ports.ClaimRef) -> None:
        for _ in range(4):
            process.preparer.prepare(ref, gpunode.never)
            process.preparer.unprepare(ref)
        done.set()

    threads = [threading.Thread(target=come_and_go, args=(ref,)) for ref in refs]
    for thread in threads:
        thread.start()
    looks = []
    while not done.is_set():
        looks.append(process.gpus.refresh())
    for thread in threads:
        thread.join(60)
    assert looks
    for look in looks:
        assert (len(look.gpus), look.broken) == (8, ())
        assert not any(gpu.mig.foreign for gpu in look.gpus if gpu.mig)


def test_every_part_of_two_gpus_at_once(node: simulated_node.SimulatedNode) -> None:
    previous = node.gpus()
    process = node.process()
    refs = [
        a_claim(node, f"{gpu}-mig-1g10gb-{start}", number=gpu * 8 + start)
        for gpu in range(2)
        for start in range(7)
    ]
    answers: list[ports.Prepared | ports.Refused] = []

    def work(mine: list[ports.ClaimRef]) -> None:
        answers.extend(process.preparer.prepare(ref, gpunode.never) for ref in mine)

    threads = [threading.Thread(target=work, args=(refs[number::8],)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(isinstance(answer, ports.Prepared) for answer in answers) == 14
    assert [len(gpu.mig.instances) for gpu in node.gpus()[:2] if gpu.mig] == [7, 7]
    for ref in refs:
        process.preparer.unprepare(ref)
    assert (node.gpus(), node.files()) == (previous, [])


def test_the_plugin_as_it_is_put_together_makes_parts_where_mig_is_not_static(
    node: simulated_node.SimulatedNode, tmp_path: Path
) -> None:
    rules = tmp_path / "offerings.yaml"
    rules.write_text(
        "apiVersion: resource.ration.dev/v1alpha1\nkind: NodeOfferings\n"
        "rules:\n- gpus: {index: [1]}\n  mig: static\n"
    )
    claim_ref = a_claim(node, "0-mig-1g10gb-4", number=1)
    flags = {
        "driver-root": node.at.driver_root,
        "host-root": node.at.host_root,
        "cdi-root": node.cdi,
        "state-dir": tmp_path / "state",
        "node-name": allocated_claims.NODE,
        "offerings": rules,
    }
    plugin = config.PluginConfig.read([f"--{name}={value}" for name, value in flags.items()])
    static = a_claim(node, "1-mig-1g10gb-4", number=2)
    node.library.close()
    core = composition.build_core(plugin, node.reader, clock.SystemClock())
    assert core.recover() == ()
    assert isinstance(core.preparation.prepare(claim_ref, gpunode.never), ports.Prepared)
    answer = core.preparation.prepare(static, gpunode.never)
    assert isinstance(answer, ports.Refused)
    assert answer.reason is reasons.Reason.DEVICE_UNKNOWN
    result = core.read_gpus().gpus[0].mig
    assert result is not None
    assert [instance.ours for instance in result.instances] == [True]
    assert core.held_devices() == {core.records()[0].devices[0].device}
    assert core.preparation.unprepare(claim_ref) is None
    core.close()
