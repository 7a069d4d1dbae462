import gc
import weakref

from driver import names
from driver.resources.dra import claims
from driver.scheduling.allocator.capacity import node_capacity, pool_layout
from driver.scheduling.allocator.policies import base
from driver.scheduling.queues import resources as queue_resources
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.allocation import NODE
from tests.support.builders import objects

SLICES = {f"memory-slice-{index}": "1" for index in range(8)}
TOLD = {"productName": "H100", names.ATTR_NUMA_NODE: 1}


def faces(gpu: int) -> list[objects.Raw]:
    """A GPU whole, as two of its MIG placements, and shared by MPS and in turns."""
    key = f"gpu-{gpu}"
    half = dict.fromkeys([*SLICES][:4], "1")
    small = {"memory-slice-6": "1"}

    def mig(name: str, profile: str, memory: str, used: dict[str, str]) -> objects.Raw:
        part = objects.drawing(f"{key}-mig-{name}", key, **used)
        part["capacity"] = {"memory": {"value": memory}}
        return objects.with_values(part, type=names.TYPE_MIG, profile=profile)

    def share(name: str, sharing: str) -> objects.Raw:
        uses = objects.drawing("x", key, **SLICES)["consumesCounters"]
        return objects.a_share_device(f"{key}-{name}", sharing, consumesCounters=uses)

    whole = objects.with_values(
        objects.drawing(key, key, **SLICES), productName="H100", **{names.ATTR_NUMA_NODE: 1}
    )
    return [
        whole,
        mig("small", "1g.10gb", "10Gi", small),
        mig("half", "3g.40gb", "40Gi", half),
        share("mps", names.SHARING_MPS),
        share("ts", names.SHARING_TIME_SLICING),
    ]


def node(*taken: claims.Claim, gpus: int = 2) -> cluster_state.ClusterState:
    sets = {f"gpu-{index}": SLICES for index in range(gpus)}
    results = [face for index in range(gpus) for face in faces(index)]
    return snapshots.view(*objects.counting(sets, results), taken=taken)


def room(view: cluster_state.ClusterState) -> base.NodeCapacity:
    return node_capacity.compute_capacity(view, view.nodes[NODE])


def test_faces_of_one_counter_set_are_one_card() -> None:
    capacity = room(node())
    assert [card.mode for card in capacity.gpus] == [base.IDLE, base.IDLE]
    (model,) = {card.model for card in capacity.gpus}
    assert (model.product, model.memory, model.all_slices) == ("H100", 80 << 30, 0b01001111)
    assert {part.profile: part.mask for part in model.placements} == {
        "1g.10gb": 0b01000000,
        "3g.40gb": 0b00001111,
    }


def test_gpus_of_one_kind_are_of_one_object_on_every_node() -> None:
    assert room(node()).gpus[0].model is room(node(gpus=1)).gpus[0].model


def test_a_card_is_as_the_claims_that_hold_its_faces_leave_it() -> None:
    share = objects.a_share("gpu-0-mps", 1, memory="20Gi")
    other = objects.a_share("gpu-0-mps", 2, memory="40Gi")
    mig = snapshots.holding("m", "node-a", "gpu-1-mig-half")
    shared = (snapshots.holding("x", "node-a", share), snapshots.holding("y", "node-a", other))
    gpu_state, two = room(node(*shared, mig)).gpus
    assert (gpu_state.mode, gpu_state.remaining) == (base.MPS, 250)
    assert (two.mode, two.free_slices) == (base.MIG, 0b01000000)


def test_a_card_that_is_held_whole_has_nothing_left() -> None:
    gpu_state, two = room(node(snapshots.holding("x", "node-a", "gpu-1"))).gpus
    assert (gpu_state.mode, gpu_state.remaining, two.mode, two.remaining) == (
        base.IDLE,
        1000,
        base.WHOLE,
        0,
    )


def test_a_device_without_counters_is_a_card_by_itself_and_a_monitor_is_none() -> None:
    monitor = objects.with_values(objects.a_device("m"), type=names.TYPE_MONITOR)
    view = snapshots.view(objects.a_slice("node-a", [objects.a_device("gpu-0"), monitor]))
    assert len(room(view).gpus) == 1


def test_requests_of_pods_reduce_the_nodes_capacity() -> None:
    view = node()
    assert room(view).cpu == 8000
    asking = objects.pod("p", nodeName="node-a")
    view.set_pod(asking.key, asking)
    assert room(view).cpu == 7000


def test_rooms_are_looked_at_again_when_their_node_changed() -> None:
    view, capacity_cache = node(), node_capacity.NodeCapacityCache()
    capacity_cache.refresh(view)
    previous = capacity_cache.get(view, view.nodes[NODE])
    assert capacity_cache.get(view, view.nodes[NODE]) is previous
    claim = snapshots.holding("x", "node-a", "gpu-1")
    view.set_claim(claim.key, claim)
    assert not capacity_cache.refresh(view)
    assert capacity_cache.get(view, view.nodes[NODE]).gpus[1].mode == base.WHOLE


def test_the_location_of_a_gpu_is_read_from_any_face() -> None:
    view = node()
    (layout,) = (pool_layout.get_layout(share.pool) for share in view.reachable_pools(NODE))
    assert [location.numa_node for location in layout.locations] == [1, 1]


def test_cached_capacity_of_a_replaced_pool_is_dropped() -> None:
    view = node()
    capacity_cache = node_capacity.NodeCapacityCache()
    capacity_cache.refresh(view)
    capacity_cache.get(view, view.nodes[NODE])
    queue_resources.capacity(view)
    queue_resources.requested_amounts(view, [objects.claim("c", objects.a_request())])
    seen = [weakref.ref(pool) for pool in view.pools.values()]
    del view
    gc.collect()
    assert [reference_type() for reference_type in seen] == [None]


def test_equivalent_pools_share_a_layout_and_others_do_not() -> None:
    view = snapshots.view(
        objects.a_slice("node-a", 2), objects.a_slice("node-b", 2), objects.a_slice("node-c", 3)
    )
    first, second, other = (pool_layout.get_layout(pool) for _, pool in sorted(view.pools.items()))
    assert first is second
    assert first is not other
    assert (len(first.idle_gpus), len(other.idle_gpus)) == (2, 3)
