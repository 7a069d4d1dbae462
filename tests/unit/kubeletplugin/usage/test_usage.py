import dataclasses
from collections.abc import Mapping

from driver import ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.plan import steps
from driver.kubeletplugin.records import checkpoint
from driver.kubeletplugin.usage import messages as usage_messages
from driver.kubeletplugin.usage import usage
from driver.resources.sharing import compatibility

GIB = 1 << 30
GPU = ids.GpuUuid("GPU-a")
A, B, C = (ports.ClaimRef("team", name, ids.ClaimUid(f"uid-{name}")) for name in "abc")
P, Q, R = (ids.PodUid(f"pod-{name}") for name in "pqr")
NAMES = {P: "team/p", Q: "team/q"}


def held(pid: int, gib: float | None, pod: ids.PodUid = P) -> usage.PodProcess:
    used = None if gib is None else int(gib * GIB)
    return usage.PodProcess(ports.GpuProcess(pid, used), pod)


def uses(
    fields: Mapping[ports.ClaimRef, int],
    pods: Mapping[ports.ClaimRef, set[ids.PodUid]],
    *pod_processes: usage.PodProcess,
) -> dict[ports.ClaimRef, usage.ClaimUse]:
    """Return the usage by claim; the amount is in GiB."""
    sizes = {claim: gib * GIB for claim, gib in fields.items()}
    theirs = {claim.uid: pod for claim, pod in pods.items()}
    return {use.claim: use for use in usage.claim_uses(GPU, sizes, pod_processes, theirs)}


def a_device(gib: int | None, gpu: ids.GpuUuid = GPU) -> steps.PlannedDevice:
    sharing_terms = (
        None if gib is None else compatibility.SharingTerms("mps", "team", gib * GIB, 10)
    )
    name = ids.DeviceName("gpu-0000-53-00-0-mps")
    return steps.PlannedDevice("r", "node-1", name, gpu, "id", steps.Edits(), terms=sharing_terms)


def a_record(claim: ports.ClaimRef, *devices: steps.PlannedDevice) -> checkpoint.Record:
    return checkpoint.Record(claim, checkpoint.State.COMPLETED, "boot-1", devices, ())


def test_shares_are_of_gpus_that_others_may_have_too() -> None:
    other = ids.GpuUuid("GPU-b")
    shared_gpus = usage.shared_gpus(
        [
            a_record(A, a_device(20), a_device(10), a_device(5, other)),
            a_record(B, a_device(30)),
            a_record(C, a_device(None, ids.GpuUuid("GPU-whole"))),
        ]
    )
    assert shared_gpus == {GPU: {A: 30 * GIB, B: 30 * GIB}, other: {A: 5 * GIB}}


def test_a_monitoring_claim_has_no_share() -> None:
    looks = dataclasses.replace(a_device(20), admin_access=True)
    assert usage.shared_gpus([a_record(A, looks)]) == {}


def test_a_gpu_of_claims_without_amounts_is_not_looked_at() -> None:
    assert (
        usage.shared_gpus([a_record(A, a_device(0)), a_record(B, a_device(20), a_device(0))]) == {}
    )


def test_the_processes_of_a_claims_pods_are_summed() -> None:
    claim_uses = uses(
        {A: 20, B: 30},
        {A: {P, Q}, B: {R}},
        *(held(1, 8), held(2, 8), held(3, 6, Q), held(4, 29, R)),
    )
    assert (claim_uses[A].used_bytes, claim_uses[A].is_over) == (22 * GIB, True)
    assert [process.process.pid for process in claim_uses[A].processes] == [1, 2, 3]
    assert (claim_uses[B].used_bytes, claim_uses[B].is_over) == (29 * GIB, False)


def test_all_of_a_share_may_be_used() -> None:
    claim_uses = uses({A: 20}, {A: {P}}, held(1, 20))
    assert not claim_uses[A].is_over
    assert uses({A: 20}, {A: {P}}, held(1, 20), held(2, 1 / GIB))[A].is_over


def test_claims_that_a_pod_has_together_are_compared_together() -> None:
    within = uses({A: 20, B: 10, C: 5}, {A: {P}, B: {P, Q}, C: {R}}, held(1, 18), held(2, 12, Q))
    assert (within[A].used_bytes, within[A].allocated_bytes) == (30 * GIB, 30 * GIB)
    assert within[B].others == (A,)
    assert not any(use.is_over for use in within.values())
    beyond = uses({A: 20, B: 10}, {A: {P}, B: {P}}, held(1, 31))
    assert beyond[A].is_over
    assert beyond[B].is_over


def test_a_pod_may_join_claims_that_came_apart() -> None:
    claim_uses = uses({A: 1, B: 1, C: 1}, {A: {P}, B: {Q}, C: {P, Q}}, held(1, 3))
    assert {use.allocated_bytes for use in claim_uses.values()} == {3 * GIB}
    assert claim_uses[C].others == (A, B)


def test_a_claim_without_an_amount_and_those_counted_with_it_are_not_judged() -> None:
    claim_uses = uses({A: 0, B: 10, C: 10}, {A: {P}, B: {P}, C: {Q}}, held(1, 50))
    assert list(claim_uses) == [C]


def test_missing_memory_figures_count_as_zero() -> None:
    claim_uses = uses({A: 20}, {A: {P}}, held(1, None), held(2, 19))
    assert claim_uses[A].used_bytes == 19 * GIB


def test_a_process_is_of_the_outermost_pod_that_is_known() -> None:
    assert usage.owning_pod((R, Q, P), {P, Q}) == Q
    assert usage.owning_pod((R,), {P, Q}) is None
    assert usage.owning_pod((), {P}) is None


def a_use(gib: float) -> usage.ClaimUse:
    return uses({A: 20}, {A: {P}}, held(1, gib))[A]


def test_two_consecutive_checks_make_an_over_use() -> None:
    now, news = usage.next_episode(usage.Episode(), a_use(30), 0)
    assert (now.is_overuse, news) == (False, usage.UsageChange.NOTHING)
    assert usage.next_episode(now, a_use(20), 10) == (usage.Episode(), usage.UsageChange.NOTHING)
    now, news = usage.next_episode(now, a_use(30), 10)
    assert (now.is_overuse, news) == (True, usage.UsageChange.BEGAN)


def test_it_is_over_at_the_first_look_within_the_share() -> None:
    episode = usage.Episode(5, 30 * GIB, 10)
    assert usage.next_episode(episode, a_use(20), 20) == (usage.Episode(), usage.UsageChange.ENDED)


def test_overuse_is_reported_again_after_a_tenth_more_and_some_time() -> None:
    episode = usage.Episode(2, 30 * GIB, 100)
    assert usage.next_episode(episode, a_use(40), 399)[1] is usage.UsageChange.NOTHING
    assert usage.next_episode(episode, a_use(31.9), 400)[1] is usage.UsageChange.NOTHING
    again, news = usage.next_episode(episode, a_use(32), 400)
    assert news is usage.UsageChange.GREW
    assert (again.reported_bytes, again.reported_at_s) == (32 * GIB, 400)
    assert usage.next_episode(again, a_use(33.9), 1000)[1] is usage.UsageChange.NOTHING


def test_the_words_name_amounts_processes_and_pods() -> None:
    use = uses({A: 20}, {A: {P, Q}}, held(123, 16), held(456, 15), held(7, 0.5, Q))[A]
    assert usage_messages.overuse_message(use, NAMES) == (
        "uses 31.5 GiB of GPU-a, was given 20.0 GiB: pids 123 (16.0 GiB), 456 (15.0 GiB) of pod "
        "team/p; pid 7 (0.5 GiB) of pod team/q"
    )
    assert usage_messages.overuse_message(use, {}).endswith(
        "of pod pod-p; pid 7 (0.5 GiB) of pod pod-q"
    )


def test_claims_that_are_counted_together_are_named() -> None:
    use = uses({A: 20, B: 10}, {A: {P}, B: {P}}, held(1, 31))[A]
    text = "uses 31.0 GiB of GPU-a, was given 30.0 GiB together with team/b"
    assert usage_messages.usage_message(use) == text


def test_a_little_over_is_told_in_units_that_show_it() -> None:
    some = uses({A: 20}, {A: {P}}, held(1, 20), held(2, 2 / 1024))[A]
    assert "uses 20482 MiB of GPU-a, was given 20480 MiB" in usage_messages.overuse_message(
        some, NAMES
    )
    hardly = dataclasses.replace(some, used_bytes=20 * GIB + 1)
    assert usage_messages.usage_message(hardly).startswith("uses 21474836481 bytes")
    exact = dataclasses.replace(some, used_bytes=20 * GIB)
    assert usage_messages.usage_message(exact) == "uses 20.0 GiB of GPU-a, was given 20.0 GiB"


def test_a_text_names_ten_processes_at_most_the_largest_first() -> None:
    many = (held(pid, pid) for pid in range(1, 41))
    text = usage_messages.overuse_message(uses({A: 20}, {A: {P}}, *many)[A], NAMES)
    assert "pids 40 (40.0 GiB), 39 (39.0 GiB)" in text
    assert text.endswith(" and 30 more processes")
    assert len(text) < 1024
