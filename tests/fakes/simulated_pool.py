"""A node's devices as its plugin would publish them, without a node: of a simulated machine."""

from driver import ids, names
from driver.devices import faces
from driver.kubeletplugin.host import discovery
from driver.resources.dra import slices
from driver.resources.publish import slice_builder
from simulator import machine
from tests.fakes import nvml


def node_name(name: str) -> ids.NodeName:
    return ids.NodeName(name)


def of_machine(
    node: str,
    allocator: str,
    product: str = "hgx-h100",
    kinds: frozenset[faces.Kind] = faces.DEFAULT_KINDS,
    taints: tuple[slices.Taint, ...] = (),
) -> slice_builder.Pool:
    """The pool of a node of that product: every face of its GPUs, tainted as D2 says.

    `taints` are put on every device beside those.
    """
    gpus = discovery.Discovery(nvml.FakeNvml(machine.build(product, seed=node)))
    inventory = gpus.refresh()
    offered = {gpu.uuid: faces.Offering(kinds) for gpu in inventory.all_gpus}
    terms = slice_builder.PublishTerms(names.DRIVER, node_name(node), allocator, offered)
    ailing = {
        face.name: taints for gpu in inventory.all_gpus for face in faces.all_faces(gpu) if taints
    }
    pool, refused = slice_builder.build_pool(inventory, terms, ailing)
    assert not refused
    return pool
