"""Both directions of the resource API: what is written is what is read."""

from hypothesis import given
from hypothesis import strategies as st

from driver import ids
from driver.devices import faces, mig, model
from driver.resources import quantities
from driver.resources.core import node_selectors
from driver.resources.dra import claims, slices
from driver.resources.publish import slice_builder
from tests.support.builders import objects


@st.composite
def migs(draw: st.DrawFn) -> mig.Mig:
    """Halves and quarters, one of which may exist already."""
    places = [mig.Placement(start, 2) for start in (0, 2, 4, 6)]
    quarters = mig.Profile(14, "2g.20gb", 2, 20480, 4, tuple(places), mig.Engines(32, 2, 1))
    halves = mig.Profile(
        9, "3g.40gb", 3, 40448, 2, (mig.Placement(0, 4), mig.Placement(4, 4)), mig.Engines(60, 3, 2)
    )
    taken = draw(st.none() | st.sampled_from(places))
    enabled = draw(st.booleans())
    present = (mig.Instance(3, 14, taken, 0, ids.MigUuid("MIG-1")),) if taken and enabled else ()
    return mig.Mig(enabled, draw(st.booleans()), (quarters, halves), present)


OFFERINGS = st.builds(
    faces.Offering,
    kinds=st.frozensets(st.sampled_from(list(faces.Kind))),
    mig=st.sampled_from(list(faces.MigMode)),
    mps_shares=st.integers(1, 48),
    time_slices=st.integers(1, 200),
    memory_factor=st.fractions(1, 4),
)
NODE = ids.NodeName("node-a")


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
            mig=draw(st.none() | migs()),
        )
        for index, bus in enumerate(buses)
    )


@given(
    results=gpus(),
    offering=OFFERINGS,
    allocator=st.sampled_from(["controller", "scheduler"]),
    plain=st.booleans(),
)
def test_every_inventory_makes_slices_within_the_limits_that_read_back_equal(
    results: tuple[model.Gpu, ...], offering: faces.Offering, allocator: str, *, plain: bool
) -> None:
    each = {gpu.uuid: offering for gpu in results}
    terms = slice_builder.PublishTerms("gpu.ration.dev", NODE, allocator, each, plain)
    pool, refused = slice_builder.build_pool(model.Inventory(results), terms, {})
    assert not refused
    read = [
        slices.parse(entry)
        for entry in slice_builder.render(pool, slice_builder.Owner(NODE, "uid"), 3)
    ]
    assert tuple(device for item in read for device in item.devices) == pool.devices
    assert all(len(item.devices) <= slice_builder.MAX_DEVICES for item in read)
    assert all(len(item.counter_sets) <= slice_builder.MAX_COUNTER_SETS for item in read)
    assert not any(item.devices and item.counter_sets for item in read)
    assert {item.slice_count for item in read} == {len(read)}
    assert [item.name for item in read] == sorted(item.name for item in read)
    for device in pool.devices:
        monitor = device.attributes["type"] == "gpu-monitor"
        assert device.is_tainted_for("controller") == (allocator == "controller" and not monitor)


@given(gpus(), OFFERINGS)
def test_a_gpu_is_in_one_slice_and_its_devices_consume_its_counters(
    drawn: tuple[model.Gpu, ...], offering: faces.Offering
) -> None:
    each = {gpu.uuid: offering for gpu in drawn}
    pool, _ = slice_builder.build_pool(
        model.Inventory(drawn), slice_builder.PublishTerms("d", NODE, "controller", each), {}
    )
    read = [
        slices.parse(entry)
        for entry in slice_builder.render(pool, slice_builder.Owner(NODE, "uid"), 1)
    ]
    sets = {shared.name: shared.counters for item in read for shared in item.counter_sets}
    homes: dict[str, set[str]] = {}
    for element in read:
        for device in element.devices:
            homes.setdefault(str(faces.gpu_name(device.name)), set()).add(element.name)
            for use in device.consumes:
                assert all(amount <= sets[use.set][key] for key, amount in use.counters.items())
    assert all(len(slices_of) == 1 for slices_of in homes.values())


@given(gpus(), OFFERINGS)
def test_amounts_a_request_may_name_are_whole_steps_within_the_capacity(
    drawn: tuple[model.Gpu, ...], offering: faces.Offering
) -> None:
    each = {gpu.uuid: offering for gpu in drawn}
    pool, _ = slice_builder.build_pool(
        model.Inventory(drawn), slice_builder.PublishTerms("d", NODE, "controller", each), {}
    )
    shared = [device for device in pool.devices if device.allow_multiple]
    for capacity in (capacity for device in shared for capacity in device.capacity.values()):
        policy = capacity.policy
        assert policy is not None
        assert policy.default <= capacity.value
        if policy.range is None:
            assert policy.default in policy.values
            continue
        low, high, step = policy.range.minimum, policy.range.maximum, policy.range.step
        assert high is not None
        assert step is not None
        assert low.nanos + step.nanos <= capacity.value.nanos
        assert high <= capacity.value
        assert (high.nanos - low.nanos) % step.nanos == 0
        assert (policy.default.nanos - low.nanos) % step.nanos == 0


@given(gpus())
def test_the_order_of_discovery_does_not_change_what_is_published(
    drawn: tuple[model.Gpu, ...],
) -> None:
    terms = slice_builder.PublishTerms("d.example.com", NODE, "controller", {})
    pool = slice_builder.build_pool(model.Inventory(drawn), terms, {})
    assert pool == slice_builder.build_pool(model.Inventory(drawn[::-1]), terms, {})


@given(st.integers(-(10**30), 10**30), st.sampled_from(["", "m", "k", "Ki", "Gi", "n", "E"]))
def test_a_quantity_is_the_amount_its_text_says(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    read = quantities.parse(text)
    assert read.text == text
    assert quantities.parse(f"{number + 1}{suffix}").nanos >= read.nanos


names = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)


@given(st.lists(st.tuples(names, names), max_size=32), names, st.sampled_from(["", "share-1"]))
def test_an_allocation_reads_back_as_it_was_written(
    drawn: list[tuple[str, str]], node: str, share: str
) -> None:
    allocation = claims.Allocation(
        results=tuple(
            claims.Result(
                request,
                claims.DeviceId("gpu.ration.dev", node, device),
                share_id=share,
                consumed={"memory": quantities.from_bytes(len(device) << 30)} if share else {},
            )
            for request, device in drawn
        ),
        configs=(claims.AllocatedConfig(from_class=True, requests=("a",), opaque={"driver": "d"}),),
        selector=node_selectors.single_node_selector(ids.NodeName(node)),
        stamped="2026-11-21T09:00:00Z",
    )
    status = {"allocation": claims.render_allocation(allocation)}
    assert objects.claim("c", status=status).allocation == allocation
