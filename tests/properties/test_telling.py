"""Tests that messages of pending pods equal those of a fresh controller, after any history."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from driver import ids
from driver.controller.commit import write_pool
from driver.controller.scheduler.explain import refresh
from tests.fakes import quickstart
from tests.fakes.deciding import World
from tests.support.builders import objects

NODES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@dataclass(frozen=True)
class Step:
    """A pod of so many GPUs comes, or one of those there goes; then so many seconds pass."""

    comes: int
    goes: int
    seconds: float


STEPS = st.lists(
    st.builds(Step, st.integers(0, 4), st.integers(0, 20), st.sampled_from([0.0, 1.0, 7.0, 40.0])),
    min_size=1,
    max_size=12,
)


def run(world: World, steps: list[Step]) -> list[str]:
    """The pods that are there at the end."""
    names: list[str] = []
    for number, step in enumerate(steps):
        if step.comes:
            name = f"pod-{number:02}"
            world.add(*quickstart.whole(name, step.comes))
            names.append(name)
        elif names:
            name = names.pop(step.goes % len(names))
            world.remove_pod(name)
            world.add(objects.a_claim(f"{name}-gpu"))
        world.settle(step.seconds)
    world.settle(2 * refresh.REFRESH_S)
    world.settle(2 * refresh.REFRESH_S)
    return names


def waiting(world: World, names: list[str]) -> list[str]:
    return [name for name in names if world.device(f"{name}-gpu") is None]


@settings(max_examples=60, deadline=None)
@given(NODES, STEPS)
def test_messages_after_any_history_equal_those_of_a_fresh_controller(
    sizes: list[int], steps: list[Step]
) -> None:
    world = World(*sizes)
    line = waiting(world, run(world, steps))
    events = {name: world.told.last["Pod", name] for name in line}
    conditions = {name: world.waiting_for(name) for name in line}
    answers = {}
    for name in line:
        answer = world.decider.explain_queries.request(ids.Key(f"default/{name}"))
        world.settle(0.0)
        full = answer.result(0)
        assert full is not None
        answers[name] = full.text
    world.decider = world.make_decider()
    for name in line:
        world.items.add(write_pool.WorkItem("pod", ids.Key(f"default/{name}")))
    world.settle()
    for name in line:
        fresh = world.told.last["Pod", name]
        assert events[name] == fresh
        assert answers[name] == fresh[1]
        pending_condition = conditions[name]
        assert pending_condition is not None
        assert (pending_condition.reason, pending_condition.message) == fresh
