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
    rendered = slice_builder.render(pool, slice_builder.Owner(NODE, "uid"), 1)
    for entry in rendered:
        spec: Any = entry["spec"]
        ds = [d for d in spec.get("devices", ()) if not only or any(p in d["name"] for p in only)]
        spec["devices"] = ds
    return snapshots.view(*rendered)


def devices(view: cluster_state.ClusterState, part: str) -> list[slices.Device]:
    pool = next(iter(view.pools.values()))
    return [device for name, device in pool.devices.items() if part in name]


def taken(view: cluster_state.ClusterState, *results: str | objects.Raw) -> queue_resources.Amounts:
    claim = snapshots.holding("x", "node-a", *results)
    assert claim.allocation is not None
    return queue_resources.results_amounts(view, claim.allocation.results)


def asked(view: cluster_state.ClusterState, *requests: objects.Raw) -> queue_resources.Amounts:
    return queue_resources.requested_amounts(view, [objects.claim("x", *requests)])


def of_any(text: str, count: int = 1, **more: object) -> objects.Raw:
    return objects.a_request("gpu", count, text, deviceClassName=snapshots.ANY, **more)


TYPE = f'device.attributes["{snapshots.DRIVER}"].type'
SHARING = f'device.attributes["{snapshots.DRIVER}"].?sharing.orValue("")'


def test_a_fleet_is_the_sum_of_its_gpus_by_model() -> None:
    amounts = queue_resources.capacity(machine())
    assert amounts.gpus == 8000
    assert amounts.compute == 800
    assert amounts.models == {H100: 8000}
    assert 8 * 79 * GIB < amounts.memory <= 8 * 80 * GIB


def test_a_whole_gpu_is_one_of_what_there_is_of_it() -> None:
    view = machine()
    whole = next(device.name for device in devices(view, "gpu-") if device.name.count("-") == 4)
    amounts = taken(view, whole)
    assert amounts.times(8) == queue_resources.capacity(view)
    assert amounts.dominant(queue_resources.capacity(view)) == Fraction(1, 8)


def test_a_mig_device_is_its_memory_slices_its_memory_and_its_compute() -> None:
    view = machine()
    part = devices(view, "-mig-3g")[0]
    amounts = taken(view, part.name)
    assert amounts.gpus == 500
    assert amounts.models == {H100: 500}
    assert amounts.compute == part.capacity["compute"].value.units
    assert amounts.memory == part.capacity["memory"].value.units


def test_the_dominant_resource_of_a_share_counts_as_gpus() -> None:
    view = machine()
    share = devices(view, "-mps")[0].name
    amounts = taken(view, objects.a_share(share, memory="20Gi", compute="50"))
    assert (amounts.gpus, amounts.memory, amounts.compute) == (500, 20 * GIB, 50)


def test_a_gpu_published_only_as_mig_devices_has_the_memory_of_all_slices() -> None:
    view = machine("-mig-1g10gb-")
    units = devices(view, "-mig-")[0].capacity["memory"].value.units
    assert queue_resources.capacity(view).memory == 8 * 7 * units


def test_a_gpu_that_is_offered_in_shares_alone_has_its_memory() -> None:
    view = machine("-mps")
    units = devices(view, "-mps")[0].capacity["memory"].value.units
    assert queue_resources.capacity(view).memory == 8 * units


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
    amounts = queue_resources.Amounts(1000, 10, 100, {"a": 1000})
    two = queue_resources.Amounts(500, 5, 50, {"b": 500})
    assert (amounts + two) - amounts == two
    assert amounts - amounts == queue_resources.ZERO
    assert not amounts - amounts
    assert two.fits(amounts + two)
    assert not two.fits(amounts)


def test_absent_resources_do_not_count() -> None:
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


def test_the_smallest_matching_device_is_counted() -> None:
    view = machine()
    mig = asked(view, of_any(f'{TYPE} == "mig"'))
    assert mig.gpus == 125


def test_the_least_alternative_is_counted() -> None:
    view = machine()
    ways = objects.first_available(
        "gpu",
        objects.a_way("large", 2, f'{TYPE} == "gpu"', deviceClassName=snapshots.ANY),
        objects.a_way("small", 1, f'{TYPE} == "gpu"', deviceClassName=snapshots.ANY),
    )
    assert asked(view, ways).gpus == 1000


def test_a_request_without_matching_devices_counts_nothing() -> None:
    view = machine()
    assert asked(view, of_any('"a" == "b"', 4)) == queue_resources.ZERO
    assert asked(view, objects.a_request(deviceClassName="gone")) == queue_resources.ZERO
    admin = objects.a_request(adminAccess=True)
    assert asked(view, admin) == queue_resources.ZERO
