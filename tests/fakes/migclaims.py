"""Claims of MIG devices on a node in memory, and what became of its GPUs."""

import json

from driver.devices import faces, mig, model
from driver.kubeletplugin import ports
from tests.fakes import gpunode, partitioning
from tests.support.builders import allocated_claims

WHOLE = "gpu-0000-53-00-0"
EIGHTH = f"{WHOLE}-mig-1g10gb-4"
HALF = f"{WHOLE}-mig-3g40gb-4"
OTHER_HALF = f"{WHOLE}-mig-3g40gb-0"


def a_claim(node: gpunode.GpuNode, *devices: str, number: int = 1) -> ports.ClaimRef:
    uid = allocated_claims.numbered_uid(number)
    results = [
        allocated_claims.a_result(device, request=f"r{n}") for n, device in enumerate(devices)
    ]
    return node.allocate(
        allocated_claims.an_allocated_claim(*results, uid=uid, name=f"claim-{number}")
    )


def prepared(node: gpunode.GpuNode, ref: ports.ClaimRef) -> ports.Prepared:
    answer = node.process().preparer.prepare(ref, gpunode.never)
    assert isinstance(answer, ports.Prepared), answer
    return answer


def refused(node: gpunode.GpuNode, ref: ports.ClaimRef) -> ports.Refused:
    answer = node.process().preparer.prepare(ref, gpunode.never)
    assert isinstance(answer, ports.Refused), answer
    return answer


def gpu_of(node: gpunode.GpuNode, name: str = WHOLE) -> model.Gpu:
    gpus = node.nvml.inventory().gpus
    return next(gpu for gpu in gpus if faces.device_name(gpu.pci) == name)


def mig_of(node: gpunode.GpuNode, name: str = WHOLE) -> mig.Mig:
    result = gpu_of(node, name).mig
    assert result is not None
    return result


def by_hand(node: gpunode.GpuNode, profile: str, start: int) -> mig.Instance:
    """Return what an administrator does."""
    gpu = gpu_of(node)
    assert gpu.mig is not None
    chosen = next(item for item in gpu.mig.profiles if item.name == profile)
    placement = next(placement for placement in chosen.placements if placement.start == start)
    hands = partitioning.FakePartitions(node.nvml.library, node.follow)
    hands.enable(gpu.uuid)
    return hands.create(mig.InstanceRef(gpu.uuid, chosen.id, placement))


def spec_nodes(node: gpunode.GpuNode, ref: ports.ClaimRef) -> list[tuple[str, int, int]]:
    (device,) = json.loads(node.spec_path(ref.uid).read_bytes())["devices"]
    nodes = device["containerEdits"]["deviceNodes"]
    return [(node["path"], node["major"], node["minor"]) for node in nodes]
