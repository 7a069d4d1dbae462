"""Acts on threads of their own, of which some do not return in time."""

import contextlib
import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from driver import clock, errors
from driver.kubeletplugin.nvml import errors as nvml_errors
from driver.kubeletplugin.nvml import lanes
from tests.fakes import waiting

LIMIT_S = 0.1


class Gpu:
    """One call of a GPU, which returns once it may; `begun` counts how often it was entered."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_return = threading.Event()

    def nvmlDeviceGetMemoryInfo(self) -> int:  # noqa: N802 - as the call is named
        self.begun += 1
        assert self.may_return.wait(20)
        return 7

    def asked(self) -> int:
        return int(nvml_errors.call_nvml("GPU-a", self.nvmlDeviceGetMemoryInfo))


@pytest.fixture
def inside() -> lanes.Lanes:
    return lanes.Lanes(clock.SystemClock(), LIMIT_S)


@pytest.fixture
def sick() -> Iterator[Gpu]:
    gpu = Gpu()
    yield gpu
    gpu.may_return.set()


@pytest.fixture
def hung(inside: lanes.Lanes, sick: Gpu) -> errors.Hung:
    with pytest.raises(errors.Hung) as raised:
        inside.call("GPU-a", sick.asked)
    return raised.value


def test_the_caller_gets_the_result_or_error_of_its_act(inside: lanes.Lanes) -> None:
    assert inside.call("GPU-a", lambda: 3) == 3
    fault = errors.DeviceFault("GPU-a", "nvmlX", 15, "GPU is lost")

    def fail() -> None:
        raise fault

    with pytest.raises(errors.DeviceFault) as raised:
        inside.call("GPU-a", fail)
    assert raised.value is fault


def test_the_error_of_an_act_is_freed_without_the_cyclic_collector(inside: lanes.Lanes) -> None:
    freed: list[weakref.ref[errors.DeviceFault]] = []

    def timeout() -> errors.DeviceFault:
        fault = errors.DeviceFault("GPU-a", "nvmlEventSetWait_v2", 10, "Timeout")
        freed.append(weakref.ref(fault))
        return fault

    def fail() -> None:
        raise timeout()

    gc.disable()
    try:
        for _ in range(2):  # the thread keeps its last act until it gets the next
            with contextlib.suppress(errors.DeviceFault):
                inside.call("GPU-a", fail)
        assert freed[0]() is None
    finally:
        gc.enable()


def test_a_call_that_does_not_return_is_named_and_its_caller_goes(hung: errors.Hung) -> None:
    assert (hung.device, hung.call) == ("GPU-a", "nvmlDeviceGetMemoryInfo")
    assert "nvmlDeviceGetMemoryInfo hangs: it has not returned for 0 s" in str(hung)


@pytest.mark.usefixtures("hung")
def test_a_lane_that_hangs_takes_nothing_until_the_call_returns(
    inside: lanes.Lanes, sick: Gpu
) -> None:
    assert inside.hung_call("GPU-a") is not None
    assert inside.has_hung()
    for _ in range(50):
        with pytest.raises(errors.Hung):
            inside.call("GPU-a", sick.asked)
        with pytest.raises(errors.Hung):
            inside.poll("GPU-a", "what", sick.asked, 1)
    assert sick.begun == 1, "nobody is called into it"
    assert inside.call("GPU-b", lambda: 4) == 4, "other lanes go on"
    sick.may_return.set()
    waiting.until(lambda: inside.hung_call("GPU-a") is None)
    assert inside.call("GPU-a", sick.asked) == 7
    assert not inside.has_hung()


@pytest.mark.usefixtures("hung")
def test_an_act_that_was_given_up_makes_no_further_call(inside: lanes.Lanes) -> None:
    slow, created = Gpu(), []

    def act() -> None:
        slow.asked()
        created.append(nvml_errors.call_nvml("GPU-c", lambda: 1))

    with pytest.raises(errors.Hung):
        inside.call("GPU-c", act)
    slow.may_return.set()
    waiting.until(lambda: inside.hung_call("GPU-c") is None)
    inside.call("GPU-c", lambda: None)
    assert created == []


def test_an_act_of_many_short_calls_is_as_long_as_it_takes(inside: lanes.Lanes) -> None:
    pause = threading.Event()

    def nap() -> int:
        pause.wait(LIMIT_S / 4)
        return 1

    assert (
        inside.call("GPU-a", lambda: sum(nvml_errors.call_nvml("GPU-a", nap) for _ in range(12)))
        == 12
    )


def test_a_repeated_call_gets_the_late_answer(inside: lanes.Lanes, sick: Gpu) -> None:
    assert inside.poll("GPU-a", "signs", sick.asked, 0.01) is None
    waiting.until(lambda: inside.hung_call("GPU-a"))
    with pytest.raises(errors.Hung):
        inside.poll("GPU-a", "signs", sick.asked, 0.01)
    sick.may_return.set()
    value = waiting.value(lambda: _answered(inside, sick), lambda value: value == 7)
    assert (value, sick.begun) == (7, 1)


def _answered(inside: lanes.Lanes, sick: Gpu) -> int | None:
    try:
        return inside.poll("GPU-a", "signs", sick.asked, 0.01)
    except errors.Hung:
        return None


def test_lanes_are_gathered_at_once_and_the_one_that_hangs_is_told(
    inside: lanes.Lanes, sick: Gpu
) -> None:
    acts: dict[str, Callable[[], int]] = {"GPU-a": sick.asked, "GPU-b": lambda: 2}
    gather = inside.gather(acts, 5)
    assert gather["GPU-b"] == 2
    assert isinstance(gather["GPU-a"], errors.Hung)


def test_a_lane_takes_no_more_than_it_can_bear() -> None:
    patient = lanes.Lanes(clock.SystemClock(), 20)
    slow = Gpu()
    for number in range(lanes.MAX_TASKS):
        patient.submit("GPU-a", f"act {number}", slow.asked)
    with pytest.raises(errors.DeviceFault, match="calls are under way"):
        patient.call("GPU-a", slow.asked)
    slow.may_return.set()


def test_a_program_that_hangs_counts_as_a_call(inside: lanes.Lanes, sick: Gpu) -> None:
    with pytest.raises(errors.Hung, match="nvidia-smi hangs"):
        inside.call("GPU-a", lambda: sick.may_return.wait(20), 0.05, "nvidia-smi")


def test_a_thread_without_work_runs_the_next_act(inside: lanes.Lanes) -> None:
    threads = {inside.call(f"GPU-{number}", threading.get_ident) for number in range(20)}
    assert len(threads) == 1


@pytest.mark.usefixtures("hung")
def test_the_thread_of_a_call_that_hangs_runs_no_other(inside: lanes.Lanes) -> None:
    assert [inside.call(f"GPU-{name}", lambda: 1) for name in "bcd"] == [1, 1, 1]
