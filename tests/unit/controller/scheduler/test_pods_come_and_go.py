"""What came and went leaves nothing in a controller that runs for months."""

import gc
from collections import Counter
from collections.abc import Iterator

import pytest

from driver.resources.dra import claims
from tests.fakes.deciding import World
from tests.support.builders import objects

KINDS = (set, claims.Claim)


def come_and_go(world: World, name: str) -> None:
    """A pod and its claim, from the first word of them to the last."""
    entries = [{"name": "gpu", "resourceClaimName": name}]
    containers = [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}]
    pod = objects.a_pod(f"pod-{name}", resourceClaims=entries, containers=containers)
    world.add(objects.a_claim(name), pod)
    world.settle()
    world.change_pod(f"pod-{name}", node=world.node_of(name))
    world.settle()
    world.stores.pods.apply(world.server.newer(world.pods.pop(f"pod-{name}")), deleted=True)
    gone = world.server.claims.pop(f"default/{name}")
    world.stores.claims.apply(world.server.newer(gone), deleted=True)
    world.settle()


@pytest.fixture
def own_objects_only() -> Iterator[None]:
    """Keep objects of earlier tests, which may end at any time, out of `gc.get_objects`."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def held() -> Counter[str]:
    gc.collect()
    kinds = (type(item) for item in gc.get_objects())
    return Counter(kind.__name__ for kind in kinds if kind in KINDS)


@pytest.mark.usefixtures("own_objects_only")
def test_claims_and_pods_that_came_and_went_leave_nothing() -> None:
    world = World(2)
    for number in range(5):
        come_and_go(world, f"early-{number}")
    before = held()
    for number in range(30):
        come_and_go(world, f"late-{number}")
    assert held() == before
