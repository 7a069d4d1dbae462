"""Both directions of the resource API: what is written is what is read."""

from hypothesis import given
from hypothesis import strategies as st

from driver import ids
from driver.devices import model
from driver.resources import claims, quantity, selectors, slices
from tests import objects


@st.composite
def gpus(draw: st.DrawFn) -> tuple[model.Gpu, ...]:
    buses = draw(st.lists(st.integers(0, 255), unique=True, max_size=80))
    return tuple(
        model.Gpu(
            uuid=ids.GpuUuid(f"GPU-{bus}"),
            pci=ids.PciAddress(f"0000:{bus:02x}:00.0"),
            minor=index,
            product=draw(st.text(st.characters(codec="ascii", categories=["L"]), max_size=90)),
            brand="Nvidia",
            architecture="Hopper",
            cuda_capability=(9, 0),
            driver_version=draw(st.sampled_from(["580.105.08", "535.54.03", "1", ""])),
            cuda_driver_version=(13, 0),
            memory_bytes=draw(st.none() | st.integers(0, 2**40)),
            numa_node=draw(st.none() | st.integers(0, 7)),
            pcie_root=draw(st.none() | st.just("pci0000:50")),
        )
        for index, bus in enumerate(buses)
    )


@given(gpus(), st.sampled_from(["controller", "scheduler"]))
def test_every_inventory_makes_slices_within_the_limits_that_read_back_equal(
    found: tuple[model.Gpu, ...], allocator: str
) -> None:
    inventory = model.Inventory(found)
    node = ids.NodeName("node-a")
    pool = slices.pool_of(inventory, "gpu.ration.dev", node, allocator)
    rendered = slices.render(pool, slices.Owner(node, "uid"), 3)
    read = [slices.parse(one) for one in rendered]
    assert tuple(device for one in read for device in one.devices) == pool.devices
    assert all(len(one.devices) <= slices.MAX_DEVICES for one in read)
    assert {one.slice_count for one in read} == {len(read)}
    assert [one.name for one in read] == sorted(one.name for one in read)
    assert all(device.tainted_for("controller") for device in pool.devices) or (
        allocator == "scheduler" or not pool.devices
    )


@given(gpus())
def test_the_order_of_discovery_does_not_change_what_is_published(
    found: tuple[model.Gpu, ...],
) -> None:
    node = ids.NodeName("node-a")
    there = slices.pool_of(model.Inventory(found), "d.example.com", node, "controller")
    back = slices.pool_of(model.Inventory(found[::-1]), "d.example.com", node, "controller")
    assert there == back


@given(st.integers(-(10**30), 10**30), st.sampled_from(["", "m", "k", "Ki", "Gi", "n", "E"]))
def test_a_quantity_is_the_amount_its_text_says(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    read = quantity.parse(text)
    assert read.text == text
    assert quantity.parse(f"{number + 1}{suffix}").nanos >= read.nanos


names = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)


@given(st.lists(st.tuples(names, names), max_size=32), names)
def test_an_allocation_reads_back_as_it_was_written(
    found: list[tuple[str, str]], node: str
) -> None:
    allocation = claims.Allocation(
        results=tuple(
            claims.Result(request, claims.DeviceId("gpu.ration.dev", node, device))
            for request, device in found
        ),
        configs=(claims.AllocatedConfig(from_class=True, requests=("a",), opaque={"driver": "d"}),),
        selector=selectors.only(ids.NodeName(node)),
        stamped="2026-11-21T09:00:00Z",
    )
    status = {"allocation": claims.render_allocation(allocation)}
    assert objects.claim("c", status=status).allocation == allocation
