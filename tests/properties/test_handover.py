"""Whatever is labelled, dies, fails or is wiped, and when: no device is two allocators' at once."""

import tempfile
from pathlib import Path

import hypothesis
import pytest
from hypothesis import stateful
from hypothesis import strategies as st

from driver.kubeletplugin.publish import handover
from driver.resources.publish import slice_builder
from tests.fakes import handing, plugin_shell

LABELS = st.sampled_from([None, *handover.ALLOCATORS, *handover.ALLOCATORS, "me"])
FLAGS = st.sampled_from(handover.ALLOCATORS)
GPUS = 4


class Handovers(stateful.RuleBasedStateMachine):
    """A node whose label changes, under plugins that come and go: the last is the newest."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.patch = pytest.MonkeyPatch()
        self.node = handing.Node(Path(self.folder.name), GPUS)
        self.plugins = [handing.Plugin(self.node)]

    def teardown(self) -> None:
        self.come_to_rest()
        self.patch.undo()
        self.folder.cleanup()

    @stateful.initialize(most=st.sampled_from([4, slice_builder.MAX_DEVICES]))
    def cut_slices(self, most: int) -> None:
        """A slice a GPU or two, so that a new state is several writes; or one for all."""
        self.patch.setattr(slice_builder, "MAX_DEVICES", most)

    @stateful.rule(label=LABELS)
    def label(self, label: str | None) -> None:
        self.node.label = label
        self.turn(None)

    @stateful.rule(seconds=st.sampled_from([0.5, 10.0, 29.5, 29.5, 30.0, 31.0]))
    def pass_time(self, seconds: float) -> None:
        self.node.clock.advance(seconds)

    @stateful.rule(flags=st.permutations(handover.ALLOCATORS), seconds=st.floats(25.0, 35.0))
    def flip_and_pass_time(self, flags: list[str], seconds: float) -> None:
        for flag in flags:
            self.node.label = flag
            self.turn(None)
        self.node.clock.advance(seconds)
        self.turn(None)

    @stateful.rule(flags=st.permutations(handover.ALLOCATORS), taken=st.integers(1, 4))
    def think_better_of_a_state_half_written(self, flags: list[str], taken: int) -> None:
        for flag in flags:
            self.node.label = flag
            self.turn(None)
            self.node.clock.advance(31)
            self.turn(taken)
        self.node.label = flags[0]
        self.turn(None)
        self.turn(None)

    @stateful.rule(taken=st.none() | st.integers(0, 4))
    def turn(self, taken: int | None) -> None:
        """The older plugins see that they are not the newest; of its writes so many are taken."""
        for older in self.plugins[:-1]:
            older.allocator.reset()
        self.node.fail_after(taken)
        try:
            self.plugins[-1].turn()
        except handing.Unanswered:
            assert taken is not None
        finally:
            self.node.fail_after(None)

    @stateful.rule(flag=FLAGS)
    def restart(self, flag: str) -> None:
        self.plugins[-1] = handing.Plugin(self.node, flag)
        self.turn(None)

    @stateful.rule(flag=FLAGS)
    def begin_a_newer_one(self, flag: str) -> None:
        self.plugins.append(handing.Plugin(self.node, flag))
        self.turn(None)

    @stateful.precondition(lambda self: len(self.plugins) > 1)
    @stateful.rule()
    def end_the_newest(self) -> None:
        self.plugins.pop()

    @stateful.rule()
    def wipe(self) -> None:
        self.node.wipe()

    @stateful.rule(count=st.integers(0, GPUS))
    def other_gpus(self, count: int) -> None:
        self.node.gpus.found = plugin_shell.inventory(count)

    @stateful.rule(every=st.integers(1, 3))
    def hold_some(self, every: int) -> None:
        """Claims hold what is published, now that and now that of it."""
        devices = [
            device["name"]
            for obj in self.node.objects.values()
            for device in obj["spec"].get("devices") or ()
        ]
        self.node.holding = set(devices[::every])

    @stateful.invariant()
    def nobody_follows_another_within_thirty_seconds_or_in_the_same_generation(self) -> None:
        assert not self.node.judge.breaches

    def come_to_rest(self) -> None:
        """Left alone for a minute, the devices are whose the label says, or the flag."""
        self.node.gpus.found = plugin_shell.inventory(GPUS)
        for _ in range(35):
            self.node.clock.advance(1)
            self.turn(None)
        allocators = self.node.allocators()
        assert len(allocators) == 1
        if self.node.label in handover.ALLOCATORS:
            assert allocators == {self.node.label}


TestHandovers = Handovers.TestCase
TestHandovers.settings = hypothesis.settings(max_examples=60, stateful_step_count=30)
