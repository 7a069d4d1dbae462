from fractions import Fraction
from typing import Any

from driver import ids, names
from driver.resources.dra import slices
from driver.resources.publish import slice_builder
from driver.scheduling.queues import resources as queue_resources
from driver.scheduling.snapshot import cluster_state
from tests.fakes import simulated_pool
from tests.support import snapshots
from tests.support.builders import objects

GIB = 1 << 30
NODE = ids.NodeName("node-a")
H100 = "NVIDIA H100 80GB HBM3"


def machine(*only: str) -> cluster_state.ClusterState:
    """A node as the plugin publishes it; of its devices those alone that have a part of a name."""
    pool = simulated_pool.of_machine(NODE, "controller", "hgx-h100")
    found = slice_builder.render(pool, slice_builder.Owner(NODE, "uid"), 1)
    for one in found:
        spec: Any = one["spec"]
        kept = [d for d in spec.get("devices", ()) if not only or any(p in d["name"] for p in only)]
        spec["devices"] = kept
    return snapshots.view(*found)


def devices(view: cluster_state.ClusterState, part: str) -> list[slices.Device]:
    pool = next(iter(view.pools.values()))
    return [one for name, one in pool.devices.items() if part in name]


def taken(view: cluster_state.ClusterState, *found: str | objects.Raw) -> queue_resources.Amounts:
    claim = snapshots.holding("x", "node-a", *found)
    assert claim.allocation is not None
    return queue_resources.results_amounts(view, claim.allocation.results)


def asked(view: cluster_state.ClusterState, *requests: objects.Raw) -> queue_resources.Amounts:
    return queue_resources.requested_amounts(view, [objects.claim("x", *requests)])


def of_any(text: str, count: int = 1, **more: object) -> objects.Raw:
    return objects.a_request("gpu", count, text, deviceClassName=snapshots.ANY, **more)


TYPE = f'device.attributes["{snapshots.DRIVER}"].type'
SHARING = f'device.attributes["{snapshots.DRIVER}"].?sharing.orValue("")'


def test_a_fleet_is_the_sum_of_its_gpus_by_model() -> None:
    found = queue_resources.capacity(machine())
    assert found.gpus == 8000
    assert found.compute == 800
    assert found.models == {H100: 8000}
    assert 8 * 79 * GIB < found.memory <= 8 * 80 * GIB


def test_a_whole_gpu_is_one_of_what_there_is_of_it() -> None:
    view = machine()
    whole = next(one.name for one in devices(view, "gpu-") if one.name.count("-") == 4)
    one = taken(view, whole)
    assert one.times(8) == queue_resources.capacity(view)
    assert one.dominant(queue_resources.capacity(view)) == Fraction(1, 8)


def test_a_mig_device_is_its_memory_slices_its_memory_and_its_compute() -> None:
    view = machine()
    part = devices(view, "-mig-3g")[0]
    one = taken(view, part.name)
    assert one.gpus == 500
    assert one.models == {H100: 500}
    assert one.compute == part.capacity["compute"].value.units
    assert one.memory == part.capacity["memory"].value.units


def test_of_a_share_the_scarcest_part_counts_and_the_rest_as_it_is() -> None:
    view = machine()
    share = devices(view, "-mps")[0].name
    one = taken(view, objects.a_share(share, memory="20Gi", compute="50"))
    assert (one.gpus, one.memory, one.compute) == (500, 20 * GIB, 50)


def test_a_gpu_published_only_as_mig_devices_has_the_memory_of_all_slices() -> None:
    view = machine("-mig-1g10gb-")
    one = devices(view, "-mig-")[0].capacity["memory"].value.units
    assert queue_resources.capacity(view).memory == 8 * 7 * one


def test_a_gpu_that_is_offered_in_shares_alone_has_its_memory() -> None:
    view = machine("-mps")
    one = devices(view, "-mps")[0].capacity["memory"].value.units
    assert queue_resources.capacity(view).memory == 8 * one


def test_administrators_and_other_drivers_devices_take_nothing() -> None:
    view = snapshots.fleet({"node-a": 1})
    looking = snapshots.holding("x", "node-a", {"device": "gpu-0", "adminAccess": True})
    foreign = snapshots.holding("y", "node-b", "gpu-0")
    for claim in (looking, foreign):
        assert claim.allocation is not None
        assert (
            queue_resources.results_amounts(view, claim.allocation.results) == queue_resources.ZERO
        )


def test_amounts_add_up_and_take_away_by_model_too() -> None:
    one = queue_resources.Amounts(1000, 10, 100, {"a": 1000})
    two = queue_resources.Amounts(500, 5, 50, {"b": 500})
    assert (one + two) - one == two
    assert one - one == queue_resources.ZERO
    assert not one - one
    assert two.fits(one + two)
    assert not two.fits(one)


def test_what_there_is_none_of_does_not_count() -> None:
    assert queue_resources.Amounts(1000, 5, 100).dominant(queue_resources.Amounts()) == 0
    assert queue_resources.Amounts(1000, 5, 100).share(queue_resources.Amounts(4000)) == 0.25


def test_whole_gpus_are_asked_by_their_number() -> None:
    view = machine()
    four = asked(view, of_any(f'{TYPE} == "gpu"', 4))
    assert four == queue_resources.capacity(view) - four
    assert four.models == {H100: 4000}


def test_a_share_is_asked_by_the_capacity_that_it_names_or_the_default() -> None:
    view = machine()
    mps = f'{SHARING} == "{names.SHARING_MPS}"'
    named = asked(view, of_any(mps, capacity={"requests": {"memory": "20Gi", "compute": "50"}}))
    assert (named.gpus, named.memory, named.compute) == (500, 20 * GIB, 50)
    plain = asked(view, of_any(mps))
    assert 120 <= plain.gpus <= 130


def test_of_devices_that_would_do_the_smallest_is_asked() -> None:
    view = machine()
    mig = asked(view, of_any(f'{TYPE} == "mig"'))
    assert mig.gpus == 125


def test_of_alternatives_the_least_is_asked() -> None:
    view = machine()
    ways = objects.first_available(
        "gpu",
        objects.a_way("large", 2, f'{TYPE} == "gpu"', deviceClassName=snapshots.ANY),
        objects.a_way("small", 1, f'{TYPE} == "gpu"', deviceClassName=snapshots.ANY),
    )
    assert asked(view, ways).gpus == 1000


def test_what_matches_nothing_of_ours_asks_nothing() -> None:
    view = machine()
    assert asked(view, of_any('"a" == "b"', 4)) == queue_resources.ZERO
    assert asked(view, objects.a_request(deviceClassName="gone")) == queue_resources.ZERO
    admin = objects.a_request(adminAccess=True)
    assert asked(view, admin) == queue_resources.ZERO
