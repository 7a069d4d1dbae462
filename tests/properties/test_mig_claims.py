"""Whatever comes and goes, dies or is refused: records, CDI specs and MIG instances agree."""

import contextlib
import tempfile
from pathlib import Path

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from driver import errors, ids
from driver.devices import faces, mig, model
from driver.kubeletplugin import ports
from driver.kubeletplugin.records import checkpoint
from simulator import faults, machine
from tests.fakes import gpunode, nvml, partitioning
from tests.support.builders import allocated_claims

PRODUCT = "gb200-tray"
FIRST = nvml.FakeNvml(machine.build(PRODUCT, allocated_claims.NODE)).inventory().gpus[0]
PARTS = st.sampled_from(
    [
        face.name
        for face in faces.all_faces(FIRST)
        if isinstance(face, faces.WholeFace | faces.MigFace)
    ]
)
CLAIMS = st.integers(0, 3)
DEATH = st.one_of(st.none(), st.integers(0, 14))


class ManyClaims(stateful.RuleBasedStateMachine):
    """A node whose claims come and go at random, beside an administrator who makes instances."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.node = gpunode.GpuNode(Path(self.folder.name), product=PRODUCT)
        source = self.node.nvml.machine
        self.board = source.board(source.gpus[0])
        self.theirs: set[ids.MigUuid] = set()
        self.hands = partitioning.FakePartitions(self.node.nvml.library, self.node.follow)

    def teardown(self) -> None:
        self.folder.cleanup()

    @property
    def gpu(self) -> model.Gpu:
        return self.node.nvml.inventory().gpus[0]

    @property
    def instances(self) -> tuple[mig.Instance, ...]:
        assert self.gpu.mig is not None
        return self.gpu.mig.instances

    @property
    def records(self) -> tuple[checkpoint.Record, ...]:
        return checkpoint.Checkpoint(self.node.records, self.node.boot).list_records()

    def ref(self, number: int) -> ports.ClaimRef:
        uid = allocated_claims.numbered_uid(number)
        return ports.ClaimRef("default", f"claim-{number}", uid)

    @stateful.rule(number=CLAIMS, parts=st.lists(PARTS, min_size=1, max_size=2), death=DEATH)
    def prepare(self, number: int, parts: list[str], death: int | None) -> None:
        ref = self.ref(number)
        results = [allocated_claims.a_result(part, request=f"r{n}") for n, part in enumerate(parts)]
        claim = allocated_claims.an_allocated_claim(*results, uid=ref.uid, name=ref.name)
        self.node.reader.claims[claim.key] = claim
        process = self.node.process(gpunode.DiesAt(death))
        with contextlib.suppress(gpunode.Killed, errors.DeviceFault):
            process.preparer.prepare(ref, gpunode.never)

    @stateful.rule(number=CLAIMS, death=DEATH)
    def unprepare(self, number: int, death: int | None) -> None:
        process = self.node.process(gpunode.DiesAt(death))
        with contextlib.suppress(gpunode.Killed, errors.DeviceFault):
            process.preparer.unprepare(self.ref(number))

    @stateful.rule(code=st.sampled_from([19, 23]), times=st.integers(1, 3))
    def refuse(self, code: int, times: int) -> None:
        source = self.node.nvml.machine
        faults.refuse(source, source.gpus[0], code, times)

    @stateful.rule(death=DEATH)
    def restart(self, death: int | None) -> None:
        with contextlib.suppress(gpunode.Killed):
            self.node.process(gpunode.DiesAt(death)).recover()

    @stateful.rule(which=st.integers(0, 2), start=st.integers(0, 6))
    def make_by_hand(self, which: int, start: int) -> None:
        """Not where a claim that is half done was to have one: nothing tells those two apart."""
        assert self.gpu.mig is not None
        profile = self.gpu.mig.profiles[which]
        placement = profile.placements[start % len(profile.placements)]
        held = {
            (device.gpu, device.edits.instance)
            for record in self.records
            for device in record.devices
        }
        instance_ref = mig.InstanceRef(self.gpu.uuid, profile.id, placement)
        if any(
            gpu == instance_ref.gpu and (was is None or was.placement == placement)
            for gpu, was in held
        ):
            return
        with contextlib.suppress(errors.DeviceFault):
            self.hands.enable(instance_ref.gpu)
            mig_uuid = self.hands.create(instance_ref).uuid
            assert mig_uuid is not None
            self.theirs.add(mig_uuid)

    @stateful.rule()
    def destroy_by_hand(self) -> None:
        """One that no claim has."""
        adopted = {
            device.edits.instance.uuid
            for record in self.records
            for device in record.devices
            if device.edits.instance
        }
        for instance in self.instances:
            if instance.uuid in self.theirs and instance.uuid not in adopted:
                instance_ref = mig.InstanceRef(
                    self.gpu.uuid, instance.profile_id, instance.placement, instance.uuid
                )
                with contextlib.suppress(errors.DeviceFault):
                    self.hands.destroy(instance_ref, 10)
                    self.theirs.discard(instance.uuid)
                return

    @stateful.rule()
    def come_to_rest(self) -> None:
        """A start that nothing disturbs: everything agrees after it."""
        self.board.refuse_in_use = self.board.refuse_resources = 0
        assert self.node.process().recover().is_complete
        records = self.records
        assert all(record.state is checkpoint.State.COMPLETED for record in records)
        uids = {f"gpu.ration.dev-claim_{record.uid}.json" for record in records}
        specs = {path.name for path in self.node.cdi.iterdir()} if self.node.cdi.is_dir() else set()
        assert specs == uids
        ours = {fact["uuid"] for record in records for fact in record.facts if "uuid" in fact}
        assert {instance.uuid for instance in self.instances} == ours | self.theirs
        for item in records:
            for device in item.devices:
                whole = faces.gpu_name(device.device) == device.device
                assert not (whole and self.board.mig)

    @stateful.invariant()
    def what_was_made_by_hand_is_there(self) -> None:
        assert self.theirs <= {instance.uuid for instance in self.instances}

    @stateful.invariant()
    def no_part_is_given_twice(self) -> None:
        held = [
            device.edits.instance.placement if device.edits.instance else mig.Placement(0, 8)
            for record in self.records
            for device in record.devices
        ]
        assert not any(
            placement.overlaps(other) for n, placement in enumerate(held) for other in held[n + 1 :]
        )


TestManyClaims = ManyClaims.TestCase
TestManyClaims.settings = hypothesis.settings(max_examples=25, stateful_step_count=25)
