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
    found = []
    for number in range(draw(st.integers(_FEWEST, _MOST))):
        one = draw(drawing.workloads(number))
        lasts = draw(lengths)
        ends = None if lasts is None else float(lasts)
        found.append(replay.Task(one.pod, one.open_claims, float(draw(moments)), ends))
    return found


@dataclass
class ByHand:
    """The same, without a clock's tricks: of each decision a new picture and a new allocator."""

    published: list[drawing.Raw]
    there: dict[str, drawing.Written] = field(default_factory=dict)
    ends: dict[str, float | None] = field(default_factory=dict)
    chosen: dict[str, tuple[float, object]] = field(default_factory=dict)

    def run(self, found: list[replay.Task]) -> None:
        waiting: list[replay.Task] = []
        last = max(task.at for task in found) + sum(task.duration_s or 0.0 for task in found)
        now = 0.0
        while now <= last:
            coming = [task for task in found if task.at == now]
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
        asked = allocator_types.Workload(task.pod, task.claims)
        answer = dra_allocator.allocate(view, asked, snapshots.DECIDING)
        if isinstance(answer, allocator_types.Unschedulable):
            return False
        name = task.pod.name
        written = drawing.written(view, asked, answer)
        self.there[name] = replace(written, pod=replace(task.pod, node=answer.node))
        self.ends[name] = None if task.duration_s is None else now + task.duration_s
        self.chosen[name] = now, (answer.node, devices(answer))
        return True


def devices(found: allocator_types.Placement) -> list[claims.DeviceId]:
    return [pick.device for pick in found.assignments]


def sat_down(published: list[drawing.Raw]) -> scheduler.SimulatedScheduler:
    return scheduler.SimulatedScheduler(drawing.fresh(published), snapshots.DECIDING)


@settings(max_examples=60)
@given(drawing.published(), tasks())
def test_each_pod_gets_what_the_controller_gives_it_and_when(
    published: list[drawing.Raw], found: list[replay.Task]
) -> None:
    by_hand = ByHand(published)
    by_hand.run(found)
    report = replay.Replay(sat_down(published)).run(found)
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
    published: list[drawing.Raw], found: list[replay.Task]
) -> None:
    at = sat_down(published)
    before = drawing.shown(at.view)
    ending = [replay.Task(one.pod, one.claims, one.at, one.duration_s or 1.0) for one in found]
    report = replay.Replay(at).run(ending)
    waiting = [one for one in report.fates if one.departed is None]
    assert drawing.shown(at.view) == before
    assert not [one for one in waiting if one.placed is not None]
    assert report.course[-1].used == 0


@settings(max_examples=30)
@given(
    drawing.published(),
    tasks(),
    st.sampled_from([replay.ReplayRule(), replay.ReplayRule(wait=False)]),
)
def test_what_is_told_to_be_in_use_is_what_the_picture_says(
    published: list[drawing.Raw], found: list[replay.Task], rule: replay.ReplayRule
) -> None:
    at = sat_down(published)
    report = replay.Replay(at, rule).run(found)
    assert report.used == gpu_usage.allocated(at.view)
