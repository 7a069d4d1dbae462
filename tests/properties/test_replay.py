"""A replay decides as the controller's picture and allocator do, fed one pod at a time."""

from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.cli.simulation import replay, scheduler
from driver.resources.dra import claims
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.queues import gpu_usage
from tests.properties import drawing
from tests.support import snapshots

_FEWEST, _MOST = 5, 9
moments = st.integers(0, 2)
lengths = st.sampled_from([None, 0, 1, 2, 2, 3, 4])


@st.composite
def tasks(draw: st.DrawFn) -> list[replay.Task]:
    """Pods with one or two claims, that come and mostly go again."""
    results = []
    for number in range(draw(st.integers(_FEWEST, _MOST))):
        workload = draw(drawing.workloads(number))
        lasts = draw(lengths)
        ends = None if lasts is None else float(lasts)
        results.append(replay.Task(workload.pod, workload.open_claims, float(draw(moments)), ends))
    return results


@dataclass
class ByHand:
    """The same, without a clock's tricks: of each decision a new picture and a new allocator."""

    published: list[drawing.Raw]
    there: dict[str, drawing.Written] = field(default_factory=dict)
    ends: dict[str, float | None] = field(default_factory=dict)
    chosen: dict[str, tuple[float, object]] = field(default_factory=dict)

    def run(self, results: list[replay.Task]) -> None:
        waiting: list[replay.Task] = []
        last = max(task.at for task in results) + sum(task.duration_s or 0.0 for task in results)
        now = 0.0
        while now <= last:
            coming = [task for task in results if task.at == now]
            gone = self._gone(now)
            if gone:
                waiting = [task for task in waiting if not self._placed(task, now)]
            waiting += [task for task in coming if not self._placed(task, now)]
            # A pod that lasts no time leaves once all that came with it are decided for.
            while self._gone(now):
                waiting = [task for task in waiting if not self._placed(task, now)]
            now += 1.0

    def _gone(self, now: float) -> bool:
        ending = [name for name, end in self.ends.items() if end is not None and end <= now]
        for name in ending:
            del self.there[name], self.ends[name]
        return bool(ending)

    def _placed(self, task: replay.Task, now: float) -> bool:
        view = drawing.fresh(self.published, [*self.there.values()])
        workload = allocator_types.Workload(task.pod, task.claims)
        answer = dra_allocator.allocate(view, workload, snapshots.DECIDING)
        if isinstance(answer, allocator_types.Unschedulable):
            return False
        name = task.pod.name
        written = drawing.written(view, workload, answer)
        self.there[name] = replace(written, pod=replace(task.pod, node=answer.node))
        self.ends[name] = None if task.duration_s is None else now + task.duration_s
        self.chosen[name] = now, (answer.node, devices(answer))
        return True


def devices(placement: allocator_types.Placement) -> list[claims.DeviceId]:
    return [pick.device for pick in placement.assignments]


def sat_down(published: list[drawing.Raw]) -> scheduler.SimulatedScheduler:
    return scheduler.SimulatedScheduler(drawing.fresh(published), snapshots.DECIDING)


@settings(max_examples=60)
@given(drawing.published(), tasks())
def test_each_pod_gets_what_the_controller_gives_it_and_when(
    published: list[drawing.Raw], tasks: list[replay.Task]
) -> None:
    by_hand = ByHand(published)
    by_hand.run(tasks)
    report = replay.Replay(sat_down(published)).run(tasks)
    chosen = {
        fate.task.pod.name: (
            fate.placed,
            (fate.answer.placement.node, devices(fate.answer.placement)),
        )
        for fate in report.fates
        if isinstance(fate.answer, scheduler.BoundPod)
    }
    assert chosen == by_hand.chosen


@settings(max_examples=30)
@given(drawing.published(), tasks())
def test_after_all_have_left_the_picture_is_as_it_was(
    published: list[drawing.Raw], tasks: list[replay.Task]
) -> None:
    simulated_scheduler = sat_down(published)
    previous = drawing.shown(simulated_scheduler.view)
    ending = [replay.Task(task.pod, task.claims, task.at, task.duration_s or 1.0) for task in tasks]
    report = replay.Replay(simulated_scheduler).run(ending)
    waiting = [fate for fate in report.fates if fate.departed is None]
    assert drawing.shown(simulated_scheduler.view) == previous
    assert not [task_fate for task_fate in waiting if task_fate.placed is not None]
    assert report.course[-1].used == 0


@settings(max_examples=30)
@given(
    drawing.published(),
    tasks(),
    st.sampled_from([replay.ReplayRule(), replay.ReplayRule(wait=False)]),
)
def test_the_reported_usage_equals_the_cluster_state(
    published: list[drawing.Raw], tasks: list[replay.Task], rule: replay.ReplayRule
) -> None:
    simulated_scheduler = sat_down(published)
    report = replay.Replay(simulated_scheduler, rule).run(tasks)
    assert report.used == gpu_usage.allocated(simulated_scheduler.view)
