"""Whole pictures for tests: caches and views made of a few objects."""

from collections.abc import Iterable
from typing import Any

from driver import ids, names
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes, slices
from driver.scheduling.allocator import policies, settings
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.snapshot import cluster_state, snapshot
from tests.support.builders import objects

DRIVER = names.DRIVER
DECIDING = settings.Settings(
    ranking.parse_policies(",".join(policies.DEFAULT)), device_filter.ControllerRules(DRIVER)
)
"""As the controller decides."""


def caches(
    found_nodes: Iterable[nodes.Node] = (),
    found_slices: Iterable[slices.Slice] = (),
    found_claims: Iterable[claims.Claim] = (),
    found_pods: Iterable[pods.Pod] = (),
    found_classes: Iterable[device_classes.DeviceClass] | None = None,
) -> cluster_state.CachedObjects:
    classes = [objects.device_class()] if found_classes is None else list(found_classes)
    return cluster_state.CachedObjects(
        nodes={ids.Key(found_node.name): found_node for found_node in found_nodes},
        slices={ids.Key(found_slice.name): found_slice for found_slice in found_slices},
        classes={ids.Key(device_class.name): device_class for device_class in classes},
        claims={found_claim.key: found_claim for found_claim in found_claims},
        pods={found_pod.key: found_pod for found_pod in found_pods},
    )


ANY = "any"
"""A class of `view` that every device is of."""


def view(
    *found_slices: objects.Raw,
    taken: Iterable[claims.Claim] = (),
    more_nodes: Iterable[nodes.Node] = (),
    found_classes: Iterable[device_classes.DeviceClass] = (),
) -> cluster_state.ClusterState:
    """Slices, the nodes that they name, and claims that hold devices.

    There are the class of whole GPUs and ANY, and what classes are named beside them.
    """
    parsed = [slices.parse(found_slice) for found_slice in found_slices]
    local = {item.node for item in parsed if item.node is not None}
    classes = [objects.device_class(), objects.device_class(ANY, "true"), *found_classes]
    existing = [*(objects.node(name) for name in sorted(local)), *more_nodes]
    state = cluster_state.build(DRIVER, caches(existing, parsed, taken, found_classes=classes))
    assert isinstance(state, cluster_state.ClusterState)
    return state


def fleet(sizes: dict[str, int], *taken: claims.Claim) -> snapshot.Snapshot:
    """Nodes by name with so many GPUs each, and claims that hold some of them."""
    return cluster_state.build(
        DRIVER,
        caches(
            [objects.node(name) for name in sizes],
            [objects.a_parsed_slice(name, count) for name, count in sizes.items()],
            taken,
        ),
    )


def holding(name: str, node: str, *devices: str | objects.Raw, **more: Any) -> claims.Claim:
    """A claim that holds devices of a node, or shares (`objects.a_share`)."""
    return objects.claim(name, status=objects.allocated(node, *devices), **more)
