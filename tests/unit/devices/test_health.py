import functools

import pytest

from driver import ids
from driver.devices import health, xids
from driver.devices.health import Ailment, Instance, Polled, PollResult, Watched, XidEvent

GPU, OTHER = ids.GpuUuid("GPU-1"), ids.GpuUuid("GPU-2")
POLICY = health.Policy()
EVICTING = health.Policy(evict=True)
WELL = Polled(GPU, PollResult(recovery=0, energy_mj=900))
LOST = Polled(GPU, PollResult("GPU is lost"))
WANTS_RESET = Polled(GPU, PollResult(recovery=1, energy_mj=900))


def after(*observed: health.Observation, policy: health.Policy = POLICY) -> health.NodeHealth:
    start: health.NodeHealth = {}
    return functools.reduce(lambda state, item: health.fold(state, item, policy), observed, start)


def found(
    *observed: health.Observation, policy: health.Policy = POLICY, gpu: ids.GpuUuid = GPU
) -> tuple[Ailment, ...]:
    return health.ailments(after(*observed, policy=policy)[gpu], policy)


def taints(
    *observed: health.Observation, policy: health.Policy = POLICY
) -> list[tuple[str, str, str]]:
    return [
        (ailment.key, ailment.value, ailment.effect) for ailment in found(*observed, policy=policy)
    ]


def test_a_well_gpu_has_no_ailment() -> None:
    assert found(WELL, Watched(GPU)) == ()
    assert health.is_healthy(()) is True


@pytest.mark.parametrize("code", [13, 31, 43, 45, 137, 63, 92, 94, 109, 144, 154, 998])
def test_an_xid_that_asks_nothing_of_the_gpu_changes_nothing(code: int) -> None:
    assert found(WELL, XidEvent(GPU, code)) == ()


@pytest.mark.parametrize("code", [48, 64, 74, 79, 95, 119, 120])
def test_a_grave_xid_taints_the_gpu_and_says_what_clears_it(code: int) -> None:
    (ailment,) = found(WELL, XidEvent(GPU, code))
    assert (ailment.key, ailment.value) == ("ration.dev/xid", str(code))
    assert ailment.effect == "NoSchedule"
    assert ailment.instance is None
    assert f"Xid {code}: " in ailment.message
    assert "cleared by a reset" in ailment.message
    assert health.is_healthy([ailment]) is False


def test_only_failures_of_a_whole_gpu_or_node_evict_and_only_when_configured() -> None:
    faults: list[health.Observation] = [XidEvent(GPU, 48), XidEvent(GPU, 79), LOST]
    assert {effect for _, _, effect in taints(*faults)} == {"NoSchedule"}
    assert taints(*faults, policy=EVICTING) == [
        ("ration.dev/gpu-lost", "lost", "NoExecute"),
        ("ration.dev/xid", "79", "NoExecute"),
        ("ration.dev/xid", "48", "NoSchedule"),
    ]
    broken = Polled(GPU, PollResult(repair_failed=True, repair_pending=True))
    assert taints(broken, policy=EVICTING) == [
        ("ration.dev/row-remap", "pending", "NoSchedule"),
        ("ration.dev/row-remap", "failed", "NoExecute"),
    ]


def test_an_xid_stays_while_nothing_says_that_the_gpu_was_made_anew() -> None:
    later = Polled(GPU, PollResult(recovery=0, energy_mj=901))
    assert len(found(WELL, XidEvent(GPU, 48), WELL, later, later)) == 1


CALM = [Polled(GPU, PollResult(recovery=0, energy_mj=901)) for _ in range(health.CALM_POLLS)]


#
@pytest.mark.parametrize("code", [48, 62, 95, 119])
def test_a_driver_that_goes_on_asking_for_nothing_is_believed_over_the_xid(code: int) -> None:
    *all_but_one, last = CALM
    story: list[health.Observation] = [WELL, XidEvent(GPU, code), *all_but_one]
    assert len(found(*story)) == 1
    assert found(*story, last) == ()


def test_a_fatal_fault_stays_until_the_gpu_is_reset() -> None:
    assert [value for _, value, _ in taints(WELL, XidEvent(GPU, 79), *CALM, *CALM)] == ["79"]


def test_polls_before_the_last_fault_say_nothing_of_it() -> None:
    story: list[health.Observation] = [
        WELL,
        XidEvent(GPU, 48),
        *CALM[1:],
        XidEvent(GPU, 119),
        CALM[0],
    ]
    assert len(found(*story)) == 2


@pytest.mark.parametrize(
    "between",
    [PollResult(hung="nvmlDeviceGetMemoryInfo"), PollResult(recovery=None)],
    ids=["hung", "old"],
)
def test_a_poll_that_does_not_say_that_nothing_is_asked_begins_the_count_anew(
    between: PollResult,
) -> None:
    story: list[health.Observation] = [
        WELL,
        XidEvent(GPU, 119),
        *CALM[1:],
        Polled(GPU, between),
        CALM[0],
    ]
    assert "119" in [value for _, value, _ in taints(*story)]


def test_a_gpu_whose_call_hangs_is_tainted_with_the_call_until_it_has_returned() -> None:
    hangs = Polled(GPU, PollResult(hung="nvmlDeviceGetMemoryInfo"))
    (ailment,) = found(WELL, hangs, policy=EVICTING)
    assert (ailment.key, ailment.value) == ("ration.dev/gpu-lost", "hung")
    assert ailment.effect == "NoSchedule", "a hang may pass by itself"
    assert "nvmlDeviceGetMemoryInfo does not return" in ailment.message
    assert health.is_healthy([ailment]) is False
    assert found(WELL, hangs, hangs, WELL) == ()


def test_a_late_return_of_a_call_is_no_reset() -> None:
    story: list[health.Observation] = [
        WELL,
        XidEvent(GPU, 79),
        Polled(GPU, PollResult(hung="nvmlDeviceGetMemoryInfo")),
        WELL,
    ]
    assert [value for _, value, _ in taints(*story)] == ["79"]


def test_an_xid_is_over_when_the_recovery_action_is_none_again() -> None:
    story: list[health.Observation] = [WELL, XidEvent(GPU, 48), WANTS_RESET]
    assert taints(*story) == [
        ("ration.dev/xid", "48", "NoSchedule"),
        ("ration.dev/recovery", "GPU_RESET", "NoSchedule"),
    ]
    assert found(*story, WELL) == ()


def test_an_xid_is_over_when_a_lost_gpu_is_back_whatever_the_driver_knows() -> None:
    old_driver = Polled(GPU, PollResult(recovery=None))
    story: list[health.Observation] = [old_driver, XidEvent(GPU, 79), LOST]
    assert [key for key, _, _ in taints(*story)] == ["ration.dev/gpu-lost", "ration.dev/xid"]
    assert found(*story, old_driver) == ()


def test_an_xid_is_over_when_the_energy_counter_fell() -> None:
    at_fault, anew = (Polled(GPU, PollResult(energy_mj=mj)) for mj in (1_000, 10))
    assert found(WELL, XidEvent(GPU, 119), at_fault, anew) == ()


def test_a_reset_from_before_an_xid_does_not_clear_it() -> None:
    previous, at_fault = (Polled(GPU, PollResult(energy_mj=mj)) for mj in (1_000, 10))
    assert len(found(previous, XidEvent(GPU, 119), at_fault)) == 1


def test_an_xid_is_not_over_while_the_gpu_still_asks_for_something() -> None:
    story: list[health.Observation] = [WELL, XidEvent(GPU, 48), LOST, WANTS_RESET]
    assert [value for _, value, _ in taints(*story)] == ["48", "GPU_RESET"]


@pytest.mark.parametrize(
    ("action", "value", "effect"),
    [
        (1, "GPU_RESET", "NoSchedule"),
        (2, "NODE_REBOOT", "NoExecute"),
        (7, "SYSTEM_REBOOT", "NoExecute"),
        (99, "ACTION_99", "NoSchedule"),
    ],
)
def test_a_recovery_action_is_a_taint_of_its_own(action: int, value: str, effect: str) -> None:
    polled = Polled(GPU, PollResult(recovery=action))
    assert taints(polled, policy=EVICTING) == [("ration.dev/recovery", value, effect)]


def test_a_repair_is_pending_until_a_poll_no_longer_finds_it() -> None:
    pending = Polled(GPU, PollResult(repair_pending=True))
    assert taints(pending) == [("ration.dev/row-remap", "pending", "NoSchedule")]
    assert found(pending, WELL) == ()


def test_memory_beyond_repair_is_told() -> None:
    broken = Polled(GPU, PollResult(sram_exceeded=True, unrepairable=True))
    assert [value for _, value, _ in taints(broken)] == ["sram-threshold", "unrepairable"]


def test_faults_of_a_gpu_stay_while_it_is_lost() -> None:
    pending = Polled(GPU, PollResult(repair_pending=True))
    unwatched = Watched(GPU, "GPU is lost")
    assert [value for _, value, _ in taints(pending, LOST, unwatched)] == ["lost", "pending"]


def test_a_gpu_whose_events_cannot_be_had_is_no_worse_for_it() -> None:
    (ailment,) = found(WELL, Watched(GPU, "Not Supported"))
    assert (ailment.key, ailment.effect) == ("ration.dev/unmonitored", "None")
    assert health.is_healthy([ailment]) is None
    assert found(WELL, Watched(GPU, "Not Supported"), Watched(GPU)) == ()


def test_a_mig_instances_fault_is_its_own_and_the_gpus_affects_all() -> None:
    first, second = Instance(7, 0), Instance(8, 0)
    both = found(XidEvent(GPU, 48, first), XidEvent(GPU, 119), XidEvent(GPU, 95, Instance(7)))
    assert [
        instance_ailment.value for instance_ailment in health.instance_ailments(both, first)
    ] == ["48", "95", "119"]
    assert [
        instance_ailment.value for instance_ailment in health.instance_ailments(both, second)
    ] == ["119"]
    assert [
        instance_ailment.value
        for instance_ailment in health.instance_ailments(both, Instance(7, 1))
    ] == ["95", "119"]


def test_the_gravest_of_many_xids_are_shown() -> None:
    codes = [46, 48, 62, 64, 95, 79]
    story: list[health.Observation] = [XidEvent(GPU, code) for code in codes]
    assert [value for _, value, _ in taints(*story, policy=EVICTING)] == ["79", "46", "48"]


def test_faults_of_a_gpu_do_not_affect_another() -> None:
    state = after(WELL, XidEvent(OTHER, 79), Polled(OTHER, PollResult("gone")))
    assert health.ailments(state[GPU], POLICY) == ()
    assert len(health.ailments(state[OTHER], POLICY)) == 2


def test_an_override_decides_what_taints() -> None:
    policy = health.Policy(
        xids.build_table({79: xids.XidClass.APPLICATION, 13: xids.XidClass.HARDWARE}), evict=True
    )
    story: list[health.Observation] = [XidEvent(GPU, 79), XidEvent(GPU, 13)]
    assert taints(*story, policy=policy) == [("ration.dev/xid", "13", "NoExecute")]
