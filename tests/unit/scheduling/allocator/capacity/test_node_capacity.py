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

SLICES = {f"memory-slice-{at}": "1" for at in range(8)}
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
    sets = {f"gpu-{at}": SLICES for at in range(gpus)}
    found = [face for at in range(gpus) for face in faces(at)]
    return snapshots.view(*objects.counting(sets, found), taken=taken)


def room(view: cluster_state.ClusterState) -> base.NodeCapacity:
    return node_capacity.compute_capacity(view, view.nodes[NODE])


def test_faces_of_one_counter_set_are_one_card() -> None:
    found = room(node())
    assert [card.mode for card in found.gpus] == [base.IDLE, base.IDLE]
    (model,) = {card.model for card in found.gpus}
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
    one, two = room(node(*shared, mig)).gpus
    assert (one.mode, one.remaining) == (base.MPS, 250)
    assert (two.mode, two.free_slices) == (base.MIG, 0b01000000)


def test_a_card_that_is_held_whole_has_nothing_left() -> None:
    one, two = room(node(snapshots.holding("x", "node-a", "gpu-1"))).gpus
    assert (one.mode, one.remaining, two.mode, two.remaining) == (base.IDLE, 1000, base.WHOLE, 0)


def test_a_device_without_counters_is_a_card_by_itself_and_a_monitor_is_none() -> None:
    monitor = objects.with_values(objects.a_device("m"), type=names.TYPE_MONITOR)
    view = snapshots.view(objects.a_slice("node-a", [objects.a_device("gpu-0"), monitor]))
    assert len(room(view).gpus) == 1


def test_what_pods_take_of_the_node_is_gone() -> None:
    view = node()
    assert room(view).cpu == 8000
    asking = objects.pod("p", nodeName="node-a")
    view.set_pod(asking.key, asking)
    assert room(view).cpu == 7000


def test_rooms_are_looked_at_again_when_their_node_changed() -> None:
    view, known = node(), node_capacity.NodeCapacityCache()
    known.refresh(view)
    before = known.get(view, view.nodes[NODE])
    assert known.get(view, view.nodes[NODE]) is before
    claim = snapshots.holding("x", "node-a", "gpu-1")
    view.set_claim(claim.key, claim)
    assert not known.refresh(view)
    assert known.get(view, view.nodes[NODE]).gpus[1].mode == base.WHOLE


def test_where_a_gpu_sits_is_read_from_any_of_its_faces() -> None:
    view = node()
    (found,) = (pool_layout.get_layout(share.pool) for share in view.reachable_pools(NODE))
    assert [place.numa_node for place in found.locations] == [1, 1]


def test_what_was_seen_of_a_pool_goes_when_another_takes_its_place() -> None:
    view = node()
    known = node_capacity.NodeCapacityCache()
    known.refresh(view)
    known.get(view, view.nodes[NODE])
    queue_resources.capacity(view)
    queue_resources.requested_amounts(view, [objects.claim("c", objects.a_request())])
    seen = [weakref.ref(one) for one in view.pools.values()]
    del view
    gc.collect()
    assert [one() for one in seen] == [None]
