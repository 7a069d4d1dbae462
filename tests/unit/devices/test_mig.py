import pytest

from driver import ids
from driver.devices import mig


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("1g.10gb", "1g10gb"),
        ("1g.10gb+me", "1g10gb-me"),
        ("1g.24gb-me", "1g24gb-nome"),
        ("1g.24gb+me.all", "1g24gb-meall"),
        ("2g.48gb+gfx", "2g48gb-gfx"),
    ],
)
def test_profiles_have_distinct_names_fit_for_a_device(name: str, slug: str) -> None:
    assert mig.Profile(0, name, 1, 1, 1, ()).slug == slug


@pytest.mark.parametrize(
    ("total_mib", "slices", "memory_mib", "name"),
    [
        (183359, 1, 22528, "1g.23gb"),
        (143771, 3, 71424, "3g.71gb"),
        (189471, 2, 46080, "2g.47gb"),
        (81559, 1, 9984, "1g.10gb"),
        (40960, 1, 4864, "1g.5gb"),
        (24576, 2, 11968, "2g.12gb"),
        (97887, 1, 24192, "1g.24gb"),
    ],
)
def test_an_older_drivers_profile_is_named_as_nvidia_names_it(
    total_mib: int, slices: int, memory_mib: int, name: str
) -> None:
    assert mig.profile_name(slices, memory_mib, total_mib << 20) == name


def test_placements_that_share_a_slice_overlap() -> None:
    assert mig.Placement(0, 4).overlaps(mig.Placement(3, 1))
    assert not mig.Placement(0, 4).overlaps(mig.Placement(4, 4))


def test_a_place_holds_the_instance_meant_and_one_that_has_no_device() -> None:
    placement = mig.Placement(4, 4)
    instance = mig.Instance(2, 9, placement, 0, ids.MigUuid("MIG-1"))
    gpu = ids.GpuUuid("GPU-1")
    assert mig.InstanceRef(gpu, 9, placement).matches(instance)
    assert mig.InstanceRef(gpu, 9, placement, ids.MigUuid("MIG-1")).matches(instance)
    assert not mig.InstanceRef(gpu, 9, placement, ids.MigUuid("MIG-2")).matches(instance)
    assert not mig.InstanceRef(gpu, 5, placement).matches(instance)
    assert not mig.InstanceRef(gpu, 9, mig.Placement(0, 4)).matches(instance)
    assert mig.InstanceRef(gpu, 9, placement, ids.MigUuid("MIG-2")).matches(
        mig.Instance(2, 9, placement)
    )


def test_instances_are_told_apart_by_the_places_of_ours() -> None:
    ours, theirs = mig.Instance(1, 9, mig.Placement(0, 4)), mig.Instance(2, 9, mig.Placement(4, 4))
    result = mig.Mig(enabled=True, resetless=True, profiles=(), instances=(ours, theirs))
    instance_ref = mig.InstanceRef(ids.GpuUuid("GPU-1"), 9, ours.placement)
    apart = mig.mark_own(result, [instance_ref])
    assert [instance.ours for instance in apart.instances] == [True, False]
    assert apart.foreign == (theirs,)
    assert apart.find(instance_ref) == apart.instances[0]
    assert mig.mark_own(apart, []) == result
