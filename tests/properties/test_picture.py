"""The picture of a cluster is that of its objects, whatever happened on the way to them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.resources.dra import claims
from tests.properties import drawing, history


@settings(max_examples=150)
@given(st.lists(st.tuples(history.events, st.booleans()), min_size=5, max_size=40))
def test_the_picture_is_that_of_what_there_is_whatever_came_before(
    told: list[tuple[history.Event, bool]],
) -> None:
    world = history.beginning()
    for event, looked_at in told:
        world.tell(event)
        if looked_at:
            drawing.shown(world.view)
    assert drawing.shown(world.view) == drawing.shown(world.fresh())


@settings(max_examples=75)
@given(st.lists(history.events, max_size=15), st.randoms(use_true_random=False))
def test_the_order_of_changes_leaves_no_trace(told: list[history.Event], chance: object) -> None:
    """Apply only the last change of each object, in another order."""
    world = history.beginning()
    for event in told:
        world.tell(event)
    puts = [
        history.Put(kind, key, one)
        for kind, found in world.there.items()
        for key, one in found.items()
    ]
    last: list[history.Event] = [*puts, *(history.Flight(one) for one in world.flying.values())]
    chance.shuffle(last)  # type: ignore[attr-defined]
    other = history.World()
    for event in last:
        other.tell(event)
    assert drawing.shown(other.view) == drawing.shown(world.view)


@settings(max_examples=75)
@given(st.lists(history.events, max_size=15))
def test_a_mark_tells_every_node_of_which_something_changed(told: list[history.Event]) -> None:
    world = history.beginning()
    for event in told:
        mark, before = world.view.revision, of_nodes(world)
        world.tell(event)
        found = world.view.changed_since(mark)
        after = of_nodes(world)
        changed = {name for name in before | after if before.get(name) != after.get(name)}
        assert found is None or changed <= {*found[1]}


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
                    one.slices,
                    one.problem,
                    dict(view.remaining_counters(one.pool)),
                    held(world, one.pool.name),
                )
                for one in view.reachable_pools(name)
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
