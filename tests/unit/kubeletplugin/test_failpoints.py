"""The process dies after every single act; a new one ends in the same state."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from driver import errors
from driver.api import v1alpha1
from driver.devices import faces
from driver.kubeletplugin import ports
from driver.kubeletplugin.plan import planner, steps
from driver.kubeletplugin.prepare import executor
from driver.kubeletplugin.records import checkpoint
from driver.runtime.files import failpoints
from tests.fakes import gpunode
from tests.support.builders import allocated_claims

MODE = "set"
UNMODE = "clear"


class Hardware:
    """A setting a GPU, as a step of a later sharing mode would change it."""

    def __init__(self) -> None:
        self.settings: dict[str, set[str]] = {}
        self.broken = False

    @property
    def acts(self) -> Mapping[str, executor.Act]:
        return {MODE: self._set, UNMODE: self._clear}

    def _set(self, step: steps.Step) -> checkpoint.Facts:
        if self.broken:
            raise errors.DeviceFault(step.gpu, "set", 19, "In Use")
        self.settings.setdefault(step.gpu, set()).add(str(step.arguments["mode"]))
        return {"made": f"{step.gpu}/{step.arguments['mode']}"}

    def _clear(self, step: steps.Step) -> checkpoint.Facts:
        left = self.settings.get(step.gpu, set()) - {str(step.arguments["mode"])}
        self.settings = {**self.settings, step.gpu: left}
        self.settings = {gpu: modes for gpu, modes in self.settings.items() if modes}
        return {}


def two_steps(node: gpunode.GpuNode) -> planner.Plan:
    """A whole GPU that also needs setting up twice."""
    gpu = node.nvml.inventory().gpus[0]
    grant = steps.Grant("gpu", allocated_claims.NODE, faces.WholeFace(gpu))
    whole = planner.make_plan(allocated_claims.UID, gpunode.KIND, [(grant, v1alpha1.GpuConfig())])
    setting = [steps.Step(MODE, UNMODE, gpu.uuid, {"mode": mode}) for mode in ("a", "b")]
    return planner.Plan(whole.devices, tuple(setting))


def carried_out(
    node: gpunode.GpuNode, hardware: Hardware, watch: failpoints.Observer = failpoints.NO_OBSERVER
) -> None:
    process = node.process(watch, hardware.acts)
    process.executor.carry_out(allocated_claims.a_ref(), two_steps(node), gpunode.never)


def points(tmp_path: Path, *, undo: bool) -> int:
    """Return how many acts there are, for carrying out alone or for taking back alone."""
    node, hardware, watch = gpunode.GpuNode(tmp_path), Hardware(), gpunode.DiesAt()
    carried_out(node, hardware, failpoints.NO_OBSERVER if undo else watch)
    if undo:
        node.process(watch, hardware.acts).preparer.unprepare(allocated_claims.a_ref())
    return len(watch.passed)


def test_every_act_is_a_point(tmp_path: Path) -> None:
    # Record (2), two steps, what is told (2), spec (2), record (2); record (2), two inverses,
    # spec, what was told, record.
    assert points(tmp_path / "a", undo=False) == 10
    assert points(tmp_path / "b", undo=True) == 7


@pytest.mark.parametrize("number", range(10))
def test_a_death_while_carrying_out_is_taken_back_by_the_next_start(
    node: gpunode.GpuNode, number: int
) -> None:
    hardware = Hardware()
    with pytest.raises(gpunode.Killed):
        carried_out(node, hardware, gpunode.DiesAt(number))
    process = node.process(acts=hardware.acts)
    process.recover()
    if number == 9:  # the record was complete
        assert process.records.read(allocated_claims.UID) is not None
        assert hardware.settings
        return
    assert (hardware.settings, node.files()) == ({}, {})
    carried_out(node, hardware)
    assert list(hardware.settings.values()) == [{"a", "b"}]


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("recovers", [False, True])
def test_a_death_while_taking_back_ends_with_nothing(
    node: gpunode.GpuNode, number: int, *, recovers: bool
) -> None:
    hardware = Hardware()
    carried_out(node, hardware)
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(number), hardware.acts).preparer.unprepare(
            allocated_claims.a_ref()
        )
    process = node.process(acts=hardware.acts)
    if recovers:
        process.recover()
    assert process.preparer.unprepare(allocated_claims.a_ref()) is None
    assert (hardware.settings, node.files()) == ({}, {})


def test_a_step_that_fails_is_taken_back_at_once(node: gpunode.GpuNode) -> None:
    hardware = Hardware()
    hardware.broken = True
    with pytest.raises(errors.DeviceFault, match="In Use"):
        carried_out(node, hardware)
    assert (hardware.settings, node.files()) == ({}, {})


def test_facts_are_recorded_by_step(node: gpunode.GpuNode) -> None:
    hardware = Hardware()
    carried_out(node, hardware)
    record = node.process().records.read(allocated_claims.UID)
    assert record is not None
    assert [fact["made"][-1] for fact in record.facts] == ["a", "b"]


def test_after_a_reboot_the_steps_are_done_again(node: gpunode.GpuNode) -> None:
    hardware = Hardware()
    carried_out(node, hardware)
    hardware.settings = {}
    node.boot = "boot-2"
    report = node.process(acts=hardware.acts).recover()
    assert report.restored == [allocated_claims.UID]
    assert list(hardware.settings.values()) == [{"a", "b"}]
    again = node.process(acts=hardware.acts).recover()
    assert again.unchanged == [allocated_claims.UID]


def test_a_step_that_this_version_does_not_know_fails_clearly(node: gpunode.GpuNode) -> None:
    with pytest.raises(errors.NodeFault, match="carry out set: expected one of"):
        node.process().executor.carry_out(allocated_claims.a_ref(), two_steps(node), gpunode.never)


def whole_gpu_points(base: Path) -> Iterator[int]:
    node, watch = gpunode.GpuNode(base), gpunode.DiesAt()
    ref = node.allocate(allocated_claims.an_allocated_claim())
    node.process(watch).preparer.prepare(ref, gpunode.never)
    return iter(range(len(watch.passed)))


def test_prepare_after_a_death_at_any_point_ends_as_if_undisturbed(tmp_path: Path) -> None:
    calm = gpunode.GpuNode(tmp_path / "machine")
    ref = calm.allocate(allocated_claims.an_allocated_claim())
    answer = calm.process().preparer.prepare(ref, gpunode.never)
    expected = calm.files()
    calm.process().preparer.unprepare(ref)
    count = 0
    for number in whole_gpu_points(tmp_path / "count"):
        with pytest.raises(gpunode.Killed):
            calm.process(gpunode.DiesAt(number)).preparer.prepare(ref, gpunode.never)
        process = calm.process()
        assert process.preparer.prepare(ref, gpunode.never) == answer
        assert calm.files() == expected
        assert isinstance(answer, ports.Prepared)
        process.preparer.unprepare(ref)
        count += 1
    assert count == 6
