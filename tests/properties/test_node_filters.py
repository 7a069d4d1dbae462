"""Filters that look beyond a node, on random histories of a small cluster."""

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.resources.core import pods
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import types as allocator_types
from tests.properties import history
from tests.support import snapshots
from tests.support.builders import objects
from tests.support.scenarios import affinity


def asking(name: str, **spec: object) -> allocator_types.Workload:
    raw = objects.a_pod(name, name, **spec)
    raw["metadata"]["labels"] = {"app": "web"}
    return allocator_types.Workload(pods.parse(raw), (objects.claim(name),))


MOUNTED = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
CHOSEN = affinity.term("web", namespaceSelector={"matchLabels": {"team": "x"}})
WORKLOADS = (
    asking("plain"),
    asking("apart", affinity=affinity.apart(affinity.term("db"))),
    asking("near", affinity=affinity.near(CHOSEN)),
    asking("spread", topologySpreadConstraints=[affinity.spread("web", affinity.HOST)]),
    asking("mounting", volumes=MOUNTED),
    asking("first", priority=5),
)


@settings(max_examples=75)
@given(st.lists(history.events, max_size=12))
def test_cached_and_uncached_placements_of_claimless_pods_are_equal(
    history_events: list[history.Event],
) -> None:
    world, remembering = history.beginning(), dra_allocator.Allocator(snapshots.DECIDING)
    for event in history_events:
        world.tell(event)
        for workload in WORKLOADS:
            answer = remembering.decide(world.view, workload)
            assert answer == dra_allocator.allocate(world.fresh(), workload, snapshots.DECIDING)
