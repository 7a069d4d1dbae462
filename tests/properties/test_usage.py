"""Tests of reports of over-use, for any claims, pods, processes and failures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import prometheus_client
from hypothesis import given
from hypothesis import strategies as st

from driver import errors, ids
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics, ports
from driver.kubeletplugin.plan import steps
from driver.kubeletplugin.records import checkpoint
from driver.kubeletplugin.usage import usage, usage_watch
from driver.resources.dra import claims
from driver.resources.sharing import compatibility
from tests.fakes import clock as fake_clock
from tests.fakes import plugin_shell

GPUS = (ids.GpuUuid("GPU-a"), ids.GpuUuid("GPU-b"))
PODS = tuple(ids.PodUid(f"pod-{number}") for number in range(5))
REFS = tuple(
    ports.ClaimRef("team", f"claim-{number}", ids.ClaimUid(f"uid-{number}")) for number in range(4)
)


@dataclass(frozen=True)
class Held:
    """A claim: bytes of each GPU (absent: it has none of that), and its pods."""

    given: Mapping[ids.GpuUuid, int]
    pods: frozenset[ids.PodUid]


@dataclass(frozen=True)
class Process:
    gpu: ids.GpuUuid
    pod: ids.PodUid | None
    used: int | None


@dataclass(frozen=True)
class Look:
    """Observation by pid, `times` in a row, and the processes that cannot be read."""

    processes: tuple[Process, ...]
    silent: frozenset[ports.ClaimRef] = frozenset()
    lost: frozenset[ids.GpuUuid] = frozenset()
    times: int = 1


held = st.builds(
    Held,
    st.dictionaries(st.sampled_from(GPUS), st.integers(0, 40), min_size=1),
    st.frozensets(st.sampled_from(PODS[:4]), max_size=2),
)
processes = st.builds(
    Process,
    st.sampled_from(GPUS),
    st.one_of(st.none(), st.sampled_from(PODS)),
    st.one_of(st.none(), st.integers(0, 60)),
)
looks = st.builds(
    Look,
    st.lists(processes, max_size=6).map(tuple),
    st.frozensets(st.sampled_from(REFS)),
    st.frozensets(st.sampled_from(GPUS), max_size=1),
    st.integers(1, 3),
)
worlds = st.lists(held, min_size=1, max_size=4)


class World:
    """The node and the API server that a watch sees."""

    def __init__(self, helds: Sequence[Held]) -> None:
        self.there = dict(zip(REFS, helds, strict=False))
        self.now = Look(())
        self.told = plugin_shell.Events()
        node = usage_watch.UsageSources(self.records, self, self.pods_of, self)
        counters = metrics.Metrics(prometheus_client.CollectorRegistry())
        tools = usage_watch.Deps(plugin_events.EventReporter(self.told), self, counters)
        self.watch = usage_watch.UsageWatch(node, tools, 10, fake_clock.FakeClock())

    def records(self) -> tuple[checkpoint.Record, ...]:
        return tuple(
            checkpoint.Record(
                ref,
                checkpoint.State.COMPLETED,
                "boot-1",
                tuple(a_device(gpu, size) for gpu, size in item.given.items()),
                (),
            )
            for ref, item in self.there.items()
        )

    def list_processes(self, gpu: ids.GpuUuid) -> tuple[ports.GpuProcess, ...]:
        if gpu in self.now.lost:
            raise errors.DeviceFault(gpu, "who uses it", 15, "GPU is lost")
        return tuple(
            ports.GpuProcess(pid, process.used)
            for pid, process in enumerate(self.now.processes)
            if process.gpu == gpu
        )

    def pods_of(self, pid: int) -> tuple[ids.PodUid, ...]:
        pod = self.now.processes[pid].pod
        return () if pod is None else (pod,)

    def read(self, ref: ports.ClaimRef) -> claims.Claim:
        if ref in self.now.silent:
            kinds = (errors.Unreachable, errors.Forbidden)
            raise kinds[len(self.now.silent) % 2](0, "", "timed out")
        pods = sorted(self.there[ref].pods)
        consumers = tuple(claims.Consumer("", "pods", pod, pod) for pod in pods)
        return claims.Claim(ref.namespace, ref.name, ref.uid, "1", consumers=consumers)

    def set_condition(self, ref: ports.ClaimRef, word: ports.ConditionUpdate) -> None:
        """Heard by nobody."""

    def look(self, seen: Look) -> set[str]:
        """The claims that are told that they use too much."""
        self.now = seen
        previous = len(self.told.told)
        self.watch.observe()
        return {name for _, name, _, _ in self.told.told[previous:]}

    def over(self, gpu: ids.GpuUuid) -> set[str]:
        """Return those that truly do, by name: with all the claims that their pods link them to."""
        here = {ref: item for ref, item in self.there.items() if gpu in item.given}
        names: set[str] = set()
        for ref, entry in here.items():
            linked, pods = {ref}, entry.pods
            while more := {r for r in here if r not in linked and here[r].pods & pods}:
                linked |= more
                pods = pods.union(*(here[r].pods for r in more))
            sizes = [here[other].given[gpu] for other in linked]
            used = sum(
                process.used or 0
                for process in self.now.processes
                if process.gpu == gpu and process.pod in pods
            )
            if all(sizes) and used > sum(sizes):
                names.add(ref.name)
        return names


def a_device(gpu: ids.GpuUuid, size: int) -> steps.PlannedDevice:
    share = compatibility.SharingTerms("mps", "team", size, 10)
    name = ids.DeviceName("gpu-0000-53-00-0-mps")
    return steps.PlannedDevice("r", "node-1", name, gpu, "id", steps.Edits(), terms=share)


@given(worlds, st.lists(looks, max_size=8))
def test_a_claim_within_its_share_is_never_reported(
    held_claims: list[Held], seen: list[Look]
) -> None:
    world = World(held_claims)
    for look in (each for each in seen for _ in range(each.times)):
        messages = world.look(look)
        assert messages <= world.over(GPUS[0]) | world.over(GPUS[1])


@given(worlds, looks)
def test_a_claim_over_its_share_at_two_checks_is_reported(
    held_claims: list[Held], seen: Look
) -> None:
    world = World(held_claims)
    answered = Look(seen.processes)
    assert world.look(answered) == set()
    look = world.look(answered)
    assert look == world.over(GPUS[0]) | world.over(GPUS[1])
    assert world.look(answered) == set()


@given(worlds, st.lists(processes, max_size=8))
def test_sums_are_exact(held_claims: list[Held], running: list[Process]) -> None:
    world = World(held_claims)
    given_of = {
        ref: item.given[GPUS[0]] for ref, item in world.there.items() if GPUS[0] in item.given
    }
    pods = {ref.uid: item.pods for ref, item in world.there.items()}
    seen = [
        usage.PodProcess(ports.GpuProcess(pid, process.used), process.pod)
        for pid, process in enumerate(running)
        if process.pod is not None
    ]
    for use in usage.claim_uses(GPUS[0], given_of, seen, pods):
        counted = (use.claim, *use.others)
        assert use.allocated_bytes == sum(given_of[claim_ref] for claim_ref in counted)
        theirs = frozenset().union(*(pods[claim_ref.uid] for claim_ref in counted))
        sizes = [
            pod_process.process.used_bytes or 0 for pod_process in seen if pod_process.pod in theirs
        ]
        assert use.used_bytes == sum(sizes)
        assert sorted(process.used_bytes for process in use.processes) == sorted(sizes)
