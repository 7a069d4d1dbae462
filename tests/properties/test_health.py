"""Tests of what the health of GPUs never does, whatever is reported and in whatever order."""

import functools

import hypothesis
from hypothesis import strategies as st

from driver import ids
from driver.devices import health, xids
from driver.devices.health import PollResult
from driver.resources.publish import health_taints

GPUS = [ids.GpuUuid(f"GPU-{index}") for index in range(3)]
POLICY = health.Policy(evict=True)
WELL = PollResult(recovery=0, energy_mj=1)
HARMLESS = {xids.XidClass.APPLICATION, xids.XidClass.INFORMATIONAL}

instances = st.none() | st.builds(health.Instance, st.integers(1, 3), st.none() | st.integers(0, 1))
signs = st.builds(
    PollResult,
    problem=st.sampled_from(["", "", "lost"]),
    hung=st.sampled_from(["", "", "nvmlDeviceGetMemoryInfo"]),
    recovery=st.none() | st.integers(0, 9),
    repair_pending=st.booleans(),
    repair_failed=st.booleans(),
    sram_exceeded=st.booleans(),
    unrepairable=st.booleans(),
    energy_mj=st.none() | st.integers(1, 5),
)
codes = st.sampled_from(sorted(xids.TABLE)) | st.integers(1, 999)


def observations(gpus: list[ids.GpuUuid]) -> st.SearchStrategy[health.Observation]:
    gpu = st.sampled_from(gpus)
    return st.one_of(
        st.builds(health.XidEvent, gpu, codes, instances),
        st.builds(health.Polled, gpu, signs),
        st.builds(health.Watched, gpu, st.sampled_from(["", "no"])),
    )


def after(
    story: list[health.Observation], start: health.NodeHealth | None = None
) -> health.NodeHealth:
    return functools.reduce(
        lambda state, item: health.fold(state, item, POLICY), story, start or {}
    )


def recovery(gpu: ids.GpuUuid, way: str) -> list[health.Observation]:
    """Return how a GPU shows that it was made anew."""
    previous = PollResult("lost") if way == "away" else PollResult(recovery=1)
    return [health.Polled(gpu, previous), health.Polled(gpu, WELL), health.Watched(gpu)]


@hypothesis.given(st.lists(observations(GPUS)), st.sampled_from(["away", "asked"]))
def test_any_history_ends_without_ailments_once_the_gpus_have_recovered(
    story: list[health.Observation], way: str
) -> None:
    ending = [entry for gpu in GPUS for entry in recovery(gpu, way)]
    state = after(ending, after(story))
    assert {
        gpu: health.ailments(gpu_health, POLICY) for gpu, gpu_health in state.items()
    } == dict.fromkeys(GPUS, ())


@hypothesis.given(st.lists(observations(GPUS)))
def test_the_trouble_of_one_gpu_is_never_that_of_another(story: list[health.Observation]) -> None:
    together = after(story)
    for gpu in GPUS:
        alone = after([entry for entry in story if entry.gpu == gpu])
        assert together.get(gpu) == alone.get(gpu)


@hypothesis.given(st.lists(observations(GPUS)), st.sampled_from(GPUS), codes, instances)
def test_an_xid_of_a_harmless_class_changes_no_ailment(
    story: list[health.Observation], gpu: ids.GpuUuid, code: int, instance: health.Instance | None
) -> None:
    hypothesis.assume(xids.lookup(xids.TABLE, code).xid_class in HARMLESS)
    previous = after([*story, health.Polled(gpu, WELL)])
    later = health.fold(previous, health.XidEvent(gpu, code, instance), POLICY)
    assert later == previous


@hypothesis.given(st.lists(observations(GPUS[:1]), max_size=80))
def test_ailments_fit_a_device_as_taints(story: list[health.Observation]) -> None:
    for state in after(story).values():
        ailments = health.ailments(state, POLICY)
        for instance in {ailment.instance for ailment in ailments}:
            whole = instance and health.Instance(instance.gpu_instance)
            mine = [ailment for ailment in ailments if ailment.instance in {None, whole, instance}]
            assert len(mine) <= health_taints.MAX_HEALTH_TAINTS
        assert all(0 < len(ailment.value) <= 63 for ailment in ailments)
        assert len({(ailment.key, ailment.value, ailment.instance) for ailment in ailments}) == len(
            ailments
        )
