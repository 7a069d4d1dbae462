"""Tests of the invariants of a quarantine, across any faults of a GPU and plugin restarts."""

import tempfile
from pathlib import Path

import hypothesis
from hypothesis import strategies as st

from driver import ids
from driver.devices import quarantine_policy as rules
from driver.kubeletplugin.records import quarantine
from driver.resources.core import nodes
from tests.fakes import clock as fake_clock

GPUS = [ids.GpuUuid(f"GPU-{index}") for index in range(2)]
Event = str | tuple[ids.GpuUuid, bool, float]
looks = st.tuples(st.sampled_from(GPUS), st.booleans(), st.sampled_from([1.0, 3600.0, 40_000.0]))
events = st.lists(looks | st.sampled_from(["restart", "GPU-0", "all", ""]), max_size=40)


class Model:
    """The definition, taken literally: every look at one GPU, from the last clearing on."""

    def __init__(self) -> None:
        self.ill = False
        self.ends: list[float] = []
        self.out = False

    def look(self, now: float, *, ill: bool) -> None:
        if self.ill and not ill:
            self.ends.append(now)
            recent = [end for end in self.ends if now - end < rules.WINDOW_S]
            self.out = self.out or len(recent) >= rules.FAILURE_LIMIT
        self.ill = ill

    def clear(self) -> None:
        self.ends, self.out = [], False


class World:
    """A node's memory, and beside it what the definition says."""

    def __init__(self, base: str) -> None:
        self.file = Path(base) / "quarantine.json"
        self.time = fake_clock.FakeClock()
        self.models = {gpu: Model() for gpu in GPUS}
        self.asked = ""
        self.restart()

    def restart(self) -> None:
        self.kept = quarantine.Quarantine(self.file, self.time)

    def look(self, gpu: ids.GpuUuid, after_s: float, *, ill: bool) -> None:
        self.time.advance(after_s)
        self.kept.record(gpu, ill=ill)
        self.models[gpu].look(self.time.now().timestamp(), ill=ill)

    def annotate(self, value: str) -> None:
        self.kept.update(nodes.Node(ids.NodeName("n"), "u", clear_quarantine=value))
        again, self.asked = value == self.asked, value
        named = [gpu for gpu in GPUS if value in {gpu, "all"}]
        for gpu in () if again else named:
            self.models[gpu].clear()

    def happens(self, event: Event) -> None:
        match event:
            case (gpu, ill, after_s):
                self.look(gpu, after_s, ill=ill)
            case "restart":
                self.restart()
            case str():
                self.annotate(event)


@hypothesis.given(events)
def test_a_gpu_is_quarantined_from_its_third_failure_in_a_day_until_cleared(
    story: list[Event],
) -> None:
    with tempfile.TemporaryDirectory() as base:
        world = World(base)
        for event in story:
            world.happens(event)
            out = {gpu for gpu, model in world.models.items() if model.out}
            assert set(world.kept.all_ailments()) == out
