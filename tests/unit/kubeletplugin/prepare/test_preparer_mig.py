from pathlib import Path

import pytest

from driver import errors, ids, reasons
from driver.api import offerings
from driver.devices import faces, mig
from driver.resources.publish import slice_builder
from tests.fakes import gpunode, partitioning
from tests.fakes.migclaims import (
    EIGHTH,
    HALF,
    OTHER_HALF,
    WHOLE,
    a_claim,
    by_hand,
    gpu_of,
    mig_of,
    prepared,
    refused,
    spec_nodes,
)
from tests.support.builders import allocated_claims


def test_an_instance_is_made_where_the_face_says_and_given_with_what_opens_it(
    node: gpunode.GpuNode,
) -> None:
    ref = a_claim(node, EIGHTH)
    (device,) = prepared(node, ref).devices
    assert device.device == EIGHTH
    assert device.cdi_ids == (f"gpu.ration.dev/claim={ref.uid}-{EIGHTH}",)
    result = mig_of(node)
    (instance,) = result.instances
    assert (result.enabled, instance.placement) == (True, mig.Placement(4, 1))
    # nv-caps.c: 3 + GPU * 135 + GI * 9, and one more for compute instance 0.
    minor = 3 + instance.gpu_instance * 9
    assert spec_nodes(node, ref) == [
        ("/dev/nvidia0", 195, 0),
        (f"/dev/nvidia-caps/nvidia-cap{minor}", 237, minor),
        (f"/dev/nvidia-caps/nvidia-cap{minor + 1}", 237, minor + 1),
    ]


def test_the_record_has_the_plan_and_what_became_of_it(node: gpunode.GpuNode) -> None:
    ref = a_claim(node, EIGHTH)
    prepared(node, ref)
    record = node.process().executor.records.read(ref.uid)
    assert record is not None
    (instance,) = mig_of(node).instances
    assert [step.act for step in record.steps] == ["mig-on", "mig-make"]
    assert record.facts == (
        {},
        {
            "uuid": instance.uuid,
            "gpu_instance": str(instance.gpu_instance),
            "compute_instance": "0",
        },
    )


def test_unprepare_leaves_the_gpu_as_it_was_and_needs_no_api(node: gpunode.GpuNode) -> None:
    previous = gpu_of(node)
    ref = a_claim(node, EIGHTH)
    prepared(node, ref)
    node.reader.down = True
    for _ in range(2):
        assert node.process().preparer.unprepare(ref) is None
        assert (gpu_of(node), node.files()) == (previous, {})


def test_mig_goes_off_with_the_last_claim_whichever_turned_it_on(node: gpunode.GpuNode) -> None:
    first, second = a_claim(node, EIGHTH), a_claim(node, OTHER_HALF, number=2)
    prepared(node, first)
    prepared(node, second)
    node.process().preparer.unprepare(first)
    assert mig_of(node).enabled
    node.process().preparer.unprepare(second)
    assert not mig_of(node).enabled


def test_mig_that_somebody_else_turned_on_stays_on(node: gpunode.GpuNode) -> None:
    partitioning.FakePartitions(node.nvml.library).enable(gpu_of(node).uuid)
    ref = a_claim(node, EIGHTH)
    prepared(node, ref)
    node.process().preparer.unprepare(ref)
    assert mig_of(node).enabled
    assert not mig_of(node).instances


def test_a_whole_gpu_is_without_mig_while_it_is_held(node: gpunode.GpuNode) -> None:
    partitioning.FakePartitions(node.nvml.library).enable(gpu_of(node).uuid)
    ref = a_claim(node, WHOLE)
    prepared(node, ref)
    assert not mig_of(node).enabled
    node.process().preparer.unprepare(ref)
    assert mig_of(node).enabled


def test_two_parts_of_one_gpu_and_one_of_another_are_one_claim(node: gpunode.GpuNode) -> None:
    ref = a_claim(node, HALF, OTHER_HALF, "gpu-0000-64-00-0-mig-7g80gb-0")
    assert len(prepared(node, ref).devices) == 3
    assert len(mig_of(node).instances) == 2
    assert len(mig_of(node, "gpu-0000-64-00-0").instances) == 1
    node.process().preparer.unprepare(ref)
    assert not mig_of(node).enabled
    assert not mig_of(node, "gpu-0000-64-00-0").enabled


@pytest.mark.parametrize("taker", [WHOLE, HALF])
def test_an_overlapping_mig_device_is_refused_with_its_holder(
    node: gpunode.GpuNode, taker: str
) -> None:
    first, second = a_claim(node, EIGHTH), a_claim(node, taker, number=2)
    prepared(node, first)
    answer = refused(node, second)
    assert (answer.reason, answer.permanent) == (reasons.Reason.DEVICE_OVERLAP, False)
    assert answer.holders == (first,)
    node.process().preparer.unprepare(first)
    prepared(node, second)


def test_a_part_is_refused_while_the_whole_is_held(node: gpunode.GpuNode) -> None:
    prepared(node, a_claim(node, WHOLE))
    assert refused(node, a_claim(node, EIGHTH, number=2)).reason is reasons.Reason.DEVICE_OVERLAP


def test_an_instance_made_by_hand_is_given_as_it_is_and_outlives_the_claim(
    node: gpunode.GpuNode,
) -> None:
    instance = by_hand(node, "3g.40gb", 4)
    ref = a_claim(node, HALF)
    prepared(node, ref)
    record = node.process().executor.records.read(ref.uid)
    assert record is not None
    assert record.steps == ()
    assert len(spec_nodes(node, ref)) == 3
    assert refused(node, a_claim(node, HALF, number=2)).reason is reasons.Reason.DEVICE_OVERLAP
    node.process().preparer.unprepare(ref)
    assert [instance.uuid for instance in mig_of(node).instances] == [instance.uuid]


@pytest.mark.parametrize("device", [WHOLE, EIGHTH, f"{WHOLE}-mps"])
def test_a_face_that_an_instance_made_by_hand_hides_is_unknown(
    node: gpunode.GpuNode, device: str
) -> None:
    by_hand(node, "3g.40gb", 4)
    answer = refused(node, a_claim(node, device))
    assert answer.reason is reasons.Reason.DEVICE_UNKNOWN
    assert device in answer.message
    assert node.files() == {}


@pytest.mark.parametrize("name", ["mig-1g10gb-7", "mig-1g11gb-0", "mig-1g10gb", "mig-"])
def test_a_part_that_no_gpu_has_is_unknown(node: gpunode.GpuNode, name: str) -> None:
    answer = refused(node, a_claim(node, f"{WHOLE}-{name}"))
    assert answer.reason is reasons.Reason.DEVICE_UNKNOWN


def test_with_static_mig_no_instance_is_created(node: gpunode.GpuNode) -> None:
    rule = offerings.Rule(mig=faces.MigMode.STATIC)
    node.rules = offerings.NodeOfferings(rules=(rule,))
    answer = refused(node, a_claim(node, EIGHTH))
    assert answer.reason is reasons.Reason.DEVICE_UNKNOWN
    by_hand(node, "1g.10gb", 4)
    prepared(node, a_claim(node, EIGHTH))


def test_an_administrator_looks_at_the_instance_of_a_claim_and_at_nothing_else(
    node: gpunode.GpuNode,
) -> None:
    result = allocated_claims.a_result(EIGHTH, admin_access=True)
    looking = allocated_claims.an_allocated_claim(
        result, uid=allocated_claims.OTHER_UID, name="admin"
    )
    admin = node.allocate(looking)
    assert refused(node, admin).reason is reasons.Reason.DEVICE_UNKNOWN
    held = a_claim(node, EIGHTH)
    prepared(node, held)
    prepared(node, admin)
    assert spec_nodes(node, admin) == spec_nodes(node, held)
    node.process().preparer.unprepare(admin)
    assert len(mig_of(node).instances) == 1


def test_published_devices_stay_the_same_while_mig_devices_change(node: gpunode.GpuNode) -> None:
    def published() -> list[dict[str, object]]:
        inventory = node.process().gpus.current()
        terms = slice_builder.PublishTerms(
            "gpu.ration.dev", ids.NodeName(allocated_claims.NODE), "scheduler", {}
        )
        pool, problems = slice_builder.build_pool(inventory, terms, {})
        assert not problems
        return [
            dict(entry)
            for entry in slice_builder.render(pool, slice_builder.Owner(terms.node, "uid"), 1)
        ]

    previous = published()
    ref = a_claim(node, EIGHTH, OTHER_HALF)
    prepared(node, ref)
    assert published() == previous
    with pytest.raises(gpunode.Killed):
        node.process(gpunode.DiesAt(1)).preparer.unprepare(ref)
    assert published() == previous
    node.process().preparer.unprepare(ref)
    assert published() == previous


def test_our_own_instances_hide_no_face(node: gpunode.GpuNode) -> None:
    prepared(node, a_claim(node, EIGHTH))
    process = node.process()
    (gpu, *_) = process.gpus.current().gpus
    undivided = [face.name for face in faces.offered_faces(gpu_of(node, WHOLE), faces.Offering())]
    assert WHOLE not in undivided  # as anybody else would see it
    shown = [face.name for face in faces.offered_faces(gpu, faces.Offering())]
    assert {WHOLE, EIGHTH, HALF, OTHER_HALF, f"{WHOLE}-mps"} <= set(shown)


@pytest.mark.parametrize(
    ("product", "device", "start"),
    [
        ("hgx-h100", "mig-1g20gb-6", 6),
        ("hgx-h100", "mig-1g10gb-me-3", 3),
        ("hgx-b200", "mig-2g45gb-2", 2),
        ("rtx-pro-6000", "mig-1g24gb-gfx-9", 9),
    ],
)
def test_every_kind_of_profile_can_be_had(
    tmp_path: Path, product: str, device: str, start: int
) -> None:
    node = gpunode.GpuNode(tmp_path, product=product)
    gpu = node.nvml.inventory().gpus[0]
    name = faces.device_name(gpu.pci)
    ref = a_claim(node, f"{name}-{device}")
    prepared(node, ref)
    (instance,) = mig_of(node, name).instances
    assert instance.placement.start == start
    assert instance.uuid is not None
    node.process().preparer.unprepare(ref)
    assert mig_of(node, name) == gpu.mig


def test_mig_devices_that_need_a_reset_are_created_once_mig_is_enabled(
    tmp_path: Path,
) -> None:
    node = gpunode.GpuNode(tmp_path, product="dgx-a100")
    machine = node.nvml.machine
    name = faces.device_name(node.nvml.inventory().gpus[0].pci)
    ref = a_claim(node, f"{name}-mig-1g5gb-0")
    assert refused(node, ref).reason is reasons.Reason.DEVICE_UNKNOWN
    board = machine.board(machine.gpus[0])
    board.mig = board.mig_pending = True
    prepared(node, ref)
    assert len(mig_of(node, name).instances) == 1
    node.process().preparer.unprepare(ref)
    assert (mig_of(node, name).enabled, mig_of(node, name).instances) == (True, ())


def test_missing_device_nodes_are_granted_by_number_and_wrong_ones_are_refused(
    node: gpunode.GpuNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = a_claim(node, EIGHTH)
    numbers = node.numbers
    monkeypatch.setattr(
        node, "numbers", lambda path: (237, 1) if "nvidia-cap" in path.name else numbers(path)
    )
    with pytest.raises(errors.NodeFault, match="is 237:1, expected 237:"):
        prepared(node, ref)
    assert (mig_of(node).enabled, node.files()) == (False, {})
    monkeypatch.undo()
    assert node.numbers(node.root / "dev/nvidia-caps/nvidia-cap102") is None
    prepared(node, ref)
