"""Claims travel from the controller's decision to the hardware and back, whatever happens between.

A node publishes two of its GPUs: what the allocator gives of them, the plugin prepares on simulated
hardware. The API may forget a claim before its node does (a force-deleted pod), the plugin may die,
and the kubelet asks in any order and as often as it likes.
"""

import contextlib
import dataclasses
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from driver import ids, names
from driver.devices import faces, model
from driver.kubeletplugin import ports
from driver.kubeletplugin.records import checkpoint
from driver.resources.dra import claims
from driver.resources.publish import slice_builder
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator import types as allocator_types
from tests.fakes import gpunode, simulated_pool
from tests.properties import drawing
from tests.support import snapshots
from tests.support.builders import allocated_claims, objects

PRODUCT = "gb200-tray"
OWN = f'device.attributes["{names.DRIVER}"]'
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "whole": (f'{OWN}.type == "gpu"', {}),
    "small part": (f'{OWN}.type == "mig" && {OWN}.profile.startsWith("1g")', {}),
    "large part": (f'{OWN}.type == "mig" && {OWN}.profile.startsWith("4g")', {}),
    "share": (
        f'{OWN}.type == "gpu-share" && {OWN}.sharing == "time-slicing"',
        {"capacity": {"requests": {"memory": "40Gi", "compute": "60"}}},
    ),
}
WHICH = st.integers(0, 5)
POOL = simulated_pool.of_machine(allocated_claims.NODE, "controller", PRODUCT)
TWO = dataclasses.replace(POOL, groups=POOL.groups[:2])
SLICES = slice_builder.render(
    TWO, slice_builder.Owner(ids.NodeName(allocated_claims.NODE), "uid"), 1
)


class Travel(stateful.RuleBasedStateMachine):
    """`known` is what the API server has; `records` what the node holds."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.node = gpunode.GpuNode(Path(self.folder.name), product=PRODUCT)
        self.gpus = {gpu.uuid: gpu for gpu in self.node.nvml.inventory().gpus}
        self.process = self.node.process()
        self.view = snapshots.view(*SLICES)
        self.empty = drawing.shown(self.view)
        self.known: list[drawing.Written] = []
        self.asked = 0

    @property
    def records(self) -> tuple[checkpoint.Record, ...]:
        return checkpoint.Checkpoint(self.node.records, self.node.boot).list_records()

    @stateful.rule(
        kind=st.sampled_from(sorted(KINDS)),
        count=st.sampled_from((1, 1, 1, 2)),
        started=st.sampled_from((True, True, False)),
    )
    def pod_comes(self, kind: str, count: int, *, started: bool) -> None:
        self.asked += 1
        selector, more = KINDS[kind]
        request = objects.a_request("gpu", count, selector, deviceClassName=snapshots.ANY, **more)
        claim = objects.claim(f"claim-{self.asked}", request)
        pod = objects.pod(f"pod-{self.asked}", claim.name)
        workload = allocator_types.Workload(pod, (claim,))
        previous = drawing.shown(self.view)
        answer = dra_allocator.allocate(self.view, workload, snapshots.DECIDING)
        assert drawing.shown(self.view) == previous
        if isinstance(answer, allocator_types.Unschedulable):
            assert self.known, f"nothing is used, and there is no {kind}"
            return
        written = drawing.written(self.view, workload, answer)
        drawing.put(self.view, written)
        self.known.append(written)
        self.node.allocate(written.claims[0])
        if started:
            self.prepare(len(self.known) - 1)

    @stateful.precondition(lambda self: self.known)
    @stateful.rule(which=WHICH)
    def prepare_again(self, which: int) -> None:
        self.prepare(which)

    def prepare(self, which: int) -> None:
        (claim,) = self.known[which % len(self.known)].claims
        ref = ports.ClaimRef(claim.namespace, claim.name, claim.uid)
        others = [record for record in self.records if record.uid != claim.uid]
        answer = self.process.preparer.prepare(ref, gpunode.never)
        if isinstance(answer, ports.Prepared):
            assert self.process.preparer.prepare(ref, gpunode.never) == answer
            names_in_file = {device["name"] for device in self.spec(claim.uid)["devices"]}
            messages = {
                name.partition("=")[2] for device in answer.devices for name in device.cdi_ids
            }
            assert messages <= names_in_file
            return
        assert isinstance(answer, ports.Refused)
        live = {claim.uid for claim in self.live()}
        stale = {
            device.gpu for record in others if record.uid not in live for device in record.devices
        }
        assert stale & {self.face(result.device.device).gpu.uuid for result in results_of(claim)}

    @stateful.precondition(lambda self: self.known)
    @stateful.rule(which=WHICH, force=st.booleans())
    def pod_ends(self, which: int, *, force: bool) -> None:
        """The node lets go first; of a pod that is deleted by force it may hold on."""
        gone = self.known.pop(which % len(self.known))
        if not force:
            self.release(gone.claims[0].uid)
        drawing.take_away(self.view, gone)
        self.node.reader.claims.pop(gone.claims[0].key)

    @stateful.precondition(lambda self: self.records)
    @stateful.rule(which=WHICH)
    def let_go(self, which: int) -> None:
        """The kubelet has any of the node's claims unprepared, and again."""
        uid = self.records[which % len(self.records)].uid
        self.release(uid)
        self.release(uid)

    @stateful.rule(death=st.one_of(st.none(), st.integers(0, 14)))
    def restart(self, death: int | None) -> None:
        with contextlib.suppress(gpunode.Killed):
            self.node.process(gpunode.DiesAt(death)).recover()
        self.process = self.node.process()
        assert self.process.recover().is_complete

    @stateful.invariant()
    def what_the_api_server_knows_overlaps_nowhere(self) -> None:
        used = [
            (self.face(result.device.device), result)
            for claim in self.live()
            for result in results_of(claim)
        ]
        assert_apart([face for face, _ in used])
        memory: dict[ids.GpuUuid, int] = {}
        for face, result in used:
            if isinstance(face, faces.ShareFace):
                taken = result.consumed["memory"].units
                memory[face.gpu.uuid] = memory.get(face.gpu.uuid, 0) + taken
        assert all(taken <= (self.gpus[gpu].memory_bytes or 0) for gpu, taken in memory.items())

    @stateful.invariant()
    def what_the_node_holds_overlaps_nowhere(self) -> None:
        held = [device for record in self.records for device in record.devices]
        assert_apart([self.face(planned_device.device) for planned_device in held])
        for gpu in {planned_device.gpu for planned_device in held}:
            sharing_terms = [
                planned_device.terms
                for planned_device in held
                if planned_device.terms and planned_device.gpu == gpu
            ]
            memory = sum(sharing_term.memory_bytes for sharing_term in sharing_terms)
            assert memory <= (self.gpus[gpu].memory_bytes or 0)
            assert (
                sum(sharing_term.compute_percent for sharing_term in sharing_terms)
                <= faces.FULL_COMPUTE_PERCENT
            )

    @stateful.invariant()
    def what_a_container_of_all_claims_would_get_agrees(self) -> None:
        """A runtime merges the edits of all: of two that differ, one would silently lose."""
        variables: dict[str, str] = {}
        mounts: dict[str, str] = {}
        for uid in (record.uid for record in self.records):
            whole = self.spec(uid)
            for edits in (whole, *whole["devices"]):
                for text in edits["containerEdits"].get("env", ()):
                    name, _, value = text.partition("=")
                    assert variables.setdefault(name, value) == value
                for entry in edits["containerEdits"].get("mounts", ()):
                    container_path = entry["containerPath"]
                    assert mounts.setdefault(container_path, entry["hostPath"]) == entry["hostPath"]

    def spec(self, uid: ids.ClaimUid) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.node.spec_path(uid).read_text())
        return document

    def live(self) -> list[claims.Claim]:
        return [claim for written in self.known for claim in written.claims]

    def face(self, name: str) -> faces.Face:
        results = [faces.find_face(gpu, name) for gpu in self.gpus.values()]
        (face,) = [result for result in results if result is not None]
        return face

    def release(self, uid: ids.ClaimUid) -> None:
        ref = ports.ClaimRef("default", "whatever", uid)
        assert self.process.preparer.unprepare(ref) is None

    def teardown(self) -> None:
        """Everything ends: nothing is left anywhere."""
        while self.known:
            self.pod_ends(0, force=False)
        for record in self.records:
            self.release(record.uid)
        assert drawing.shown(self.view) == self.empty
        assert not self.node.files()
        now: tuple[model.Gpu, ...] = self.node.nvml.inventory().gpus
        assert not [instance for gpu in now if gpu.mig for instance in gpu.mig.instances]
        self.folder.cleanup()


def results_of(claim: claims.Claim) -> tuple[claims.Result, ...]:
    assert claim.allocation is not None
    return claim.allocation.results


def assert_apart(results: list[faces.Face]) -> None:
    """A GPU is one claim's, or cut into parts that do not overlap, or shared in one way."""
    for entry, other in itertools.combinations(results, 2):
        if entry.gpu.uuid != other.gpu.uuid:
            continue
        match entry, other:
            case faces.MigFace(), faces.MigFace():
                assert not entry.placement.overlaps(other.placement)
            case faces.ShareFace(), faces.ShareFace():
                assert entry.sharing is other.sharing
            case _:
                raise AssertionError((entry.name, other.name))


TestTravel = Travel.TestCase
TestTravel.settings = hypothesis.settings(max_examples=15, stateful_step_count=30)
