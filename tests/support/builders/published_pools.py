"""Pools as the plugin publishes them."""

from driver import ids
from driver.devices import faces, model
from driver.kubeletplugin.publish import in_use_devices
from driver.resources.publish import slice_builder

NODE = ids.NodeName("node-a")
ALL = faces.Offering(kinds=frozenset(faces.Kind))


def pool(
    *gpus: model.Gpu,
    allocator: str = "controller",
    offering: faces.Offering = ALL,
    taints: slice_builder.Taints | None = None,
) -> slice_builder.Pool:
    each = {gpu.uuid: offering for gpu in gpus}
    terms = slice_builder.PublishTerms("gpu.ration.dev", NODE, allocator, each)
    return slice_builder.build_pool(model.Inventory(gpus), terms, taints or {})[0]


def kept(
    expected: slice_builder.Pool, previous: slice_builder.Pool, *holding: str
) -> slice_builder.Pool:
    return in_use_devices.retain_in_use(expected, previous, frozenset(map(ids.DeviceName, holding)))
