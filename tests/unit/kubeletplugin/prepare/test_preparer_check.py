"""Looking whether a claim would be prepared: the same answer as Prepare's, and nothing done."""

import pytest

from driver import errors, ids, reasons
from driver.kubeletplugin import ports
from tests.fakes import gpunode
from tests.support.builders import allocated_claims

ODD = {"apiVersion": "resource.ration.dev/v1alpha1", "kind": "GpuConfig", "shape": 1}


def asked(node: gpunode.GpuNode, ref: ports.ClaimRef) -> reasons.Reason | None:
    """Return what a look says, which is what Prepare would say, and leaves no trace."""
    previous = node.files()
    answer = node.process().preparer.check(ref)
    assert node.files() == previous
    prepared = node.process().preparer.prepare(ref, gpunode.never)
    reason = prepared.reason if isinstance(prepared, ports.Refused) else None
    result = answer.reason if answer else None
    assert result is reason
    return result


def test_a_claim_that_could_be_prepared_is_not_refused(node: gpunode.GpuNode) -> None:
    assert asked(node, node.allocate(allocated_claims.an_allocated_claim())) is None


def test_a_device_that_is_held_is_refused_until_it_is_let_go(node: gpunode.GpuNode) -> None:
    holder = node.allocate(allocated_claims.an_allocated_claim())
    assert asked(node, holder) is None
    late = node.allocate(
        allocated_claims.an_allocated_claim(uid=allocated_claims.OTHER_UID, name="two")
    )
    assert asked(node, late) is reasons.Reason.DEVICE_OVERLAP
    node.process().preparer.unprepare(holder)
    assert asked(node, late) is None


def test_a_configuration_that_cannot_be_read_is_refused_for_good(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim(configs=[ODD]))
    assert asked(node, ref) is reasons.Reason.CONFIG_INVALID
    answer = node.process().preparer.check(ref)
    assert answer is not None
    assert answer.permanent


def test_a_driver_that_is_not_there_is_found_out_without_asking_the_api(
    node: gpunode.GpuNode,
) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    (library,) = (node.root / gpunode.LIBRARIES).glob("libcuda.so.1")
    library.rename(library.with_name("away"))
    answer = node.process().preparer.check(ref)
    assert answer is not None
    assert answer.reason is reasons.Reason.DRIVER_NOT_READY
    assert node.reader.reads == 0


def test_a_cdi_folder_that_cannot_be_written_to_is_a_fault(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    node.cdi.write_text("no folder")
    with pytest.raises(errors.NodeFault, match="no folder that can be written to"):
        node.process().preparer.check(ref)
    node.cdi.unlink()
    assert node.process().preparer.check(ref) is None


def test_a_gpu_that_somebody_works_on_is_not_waited_for(node: gpunode.GpuNode) -> None:
    ref = node.allocate(allocated_claims.an_allocated_claim())
    process = node.process()
    (gpu,) = (gpu.uuid for gpu in process.gpus.current().gpus if "53:00" in gpu.pci)
    with process.locks.gpus([ids.GpuUuid(gpu)]), pytest.raises(errors.NodeFault, match="busy"):
        process.preparer.check(ref)
    assert process.preparer.check(ref) is None
