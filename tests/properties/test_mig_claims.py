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
        of = self.node.nvml.machine
        self.board = of.board(of.gpus[0])
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
        of = self.node.nvml.machine
        faults.refuse(of, of.gpus[0], code, times)

    @stateful.rule(death=DEATH)
    def restart(self, death: int | None) -> None:
        with contextlib.suppress(gpunode.Killed):
            self.node.process(gpunode.DiesAt(death)).recover()

    @stateful.rule(which=st.integers(0, 2), start=st.integers(0, 6))
    def make_by_hand(self, which: int, start: int) -> None:
        """Not where a claim that is half done was to have one: nothing tells those two apart."""
        assert self.gpu.mig is not None
        profile = self.gpu.mig.profiles[which]
        at = profile.placements[start % len(profile.placements)]
        held = {(one.gpu, one.edits.instance) for record in self.records for one in record.devices}
        place = mig.InstanceRef(self.gpu.uuid, profile.id, at)
        if any(gpu == place.gpu and (was is None or was.placement == at) for gpu, was in held):
            return
        with contextlib.suppress(errors.DeviceFault):
            self.hands.enable(place.gpu)
            made = self.hands.create(place).uuid
            assert made is not None
            self.theirs.add(made)

    @stateful.rule()
    def destroy_by_hand(self) -> None:
        """One that no claim has."""
        adopted = {
            one.edits.instance.uuid
            for record in self.records
            for one in record.devices
            if one.edits.instance
        }
        for one in self.instances:
            if one.uuid in self.theirs and one.uuid not in adopted:
                place = mig.InstanceRef(self.gpu.uuid, one.profile_id, one.placement, one.uuid)
                with contextlib.suppress(errors.DeviceFault):
                    self.hands.destroy(place, 10)
                    self.theirs.discard(one.uuid)
                return

    @stateful.rule()
    def come_to_rest(self) -> None:
        """A start that nothing disturbs: everything agrees after it."""
        self.board.refuse_in_use = self.board.refuse_resources = 0
        assert self.node.process().recover().is_complete
        records = self.records
        assert all(one.state is checkpoint.State.COMPLETED for one in records)
        uids = {f"gpu.ration.dev-claim_{one.uid}.json" for one in records}
        specs = {path.name for path in self.node.cdi.iterdir()} if self.node.cdi.is_dir() else set()
        assert specs == uids
        ours = {fact["uuid"] for one in records for fact in one.facts if "uuid" in fact}
        assert {one.uuid for one in self.instances} == ours | self.theirs
        for one in records:
            for device in one.devices:
                whole = faces.gpu_name(device.device) == device.device
                assert not (whole and self.board.mig)

    @stateful.invariant()
    def what_was_made_by_hand_is_there(self) -> None:
        assert self.theirs <= {one.uuid for one in self.instances}

    @stateful.invariant()
    def no_part_is_given_twice(self) -> None:
        held = [
            one.edits.instance.placement if one.edits.instance else mig.Placement(0, 8)
            for record in self.records
            for one in record.devices
        ]
        assert not any(one.overlaps(other) for n, one in enumerate(held) for other in held[n + 1 :])


TestManyClaims = ManyClaims.TestCase
TestManyClaims.settings = hypothesis.settings(max_examples=25, stateful_step_count=25)
