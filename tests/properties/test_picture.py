"""The picture of a cluster is that of its objects, whatever happened on the way to them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.resources.dra import claims
from tests.properties import drawing, history


@settings(max_examples=150)
@given(st.lists(st.tuples(history.events, st.booleans()), min_size=5, max_size=40))
def test_the_picture_is_that_of_what_there_is_whatever_came_before(
    history_events: list[tuple[history.Event, bool]],
) -> None:
    world = history.beginning()
    for event, looked_at in history_events:
        world.tell(event)
        if looked_at:
            drawing.shown(world.view)
    assert drawing.shown(world.view) == drawing.shown(world.fresh())


@settings(max_examples=75)
@given(st.lists(history.events, max_size=15), st.randoms(use_true_random=False))
def test_the_order_of_changes_leaves_no_trace(
    history_events: list[history.Event], chance: object
) -> None:
    """Apply only the last change of each object, in another order."""
    world = history.beginning()
    for event in history_events:
        world.tell(event)
    puts = [
        history.Put(kind, key, entry)
        for kind, result in world.there.items()
        for key, entry in result.items()
    ]
    last: list[history.Event] = [
        *puts,
        *(history.Flight(in_flight) for in_flight in world.flying.values()),
    ]
    chance.shuffle(last)  # type: ignore[attr-defined]
    other = history.World()
    for event in last:
        other.tell(event)
    assert drawing.shown(other.view) == drawing.shown(world.view)


@settings(max_examples=75)
@given(st.lists(history.events, max_size=15))
def test_a_mark_tells_every_node_of_which_something_changed(
    history_events: list[history.Event],
) -> None:
    world = history.beginning()
    for event in history_events:
        mark, previous = world.view.revision, of_nodes(world)
        world.tell(event)
        changed_value = world.view.changed_since(mark)
        after = of_nodes(world)
        changed = {name for name in previous | after if previous.get(name) != after.get(name)}
        assert changed_value is None or changed <= {*changed_value[1]}


def of_nodes(world: history.World) -> dict[str, object]:
    """All that deciding reads of each node."""
    view = world.view
    rest = dict(view.classes)
    return {
        name: (
            node,
            view.usage.get(name),
            [
                (
                    reachable_pool.slices,
                    reachable_pool.problem,
                    dict(view.remaining_counters(reachable_pool.pool)),
                    held(world, reachable_pool.pool.name),
                )
                for reachable_pool in view.reachable_pools(name)
            ],
            rest,
        )
        for name, node in view.nodes.items()
    }


def held(world: history.World, pool: str) -> list[object]:
    return [
        world.view.holders(claims.DeviceId(world.view.driver, pool, device))
        for device in history.DEVICES
    ]
