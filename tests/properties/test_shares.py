"""However shares of a GPU come and go on its node, they are never more than the GPU."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from driver import reasons
from driver.devices import faces
from driver.kubeletplugin import ports
from driver.resources.dra import claims
from tests.fakes import gpunode
from tests.support.node import shares

GIB = 1 << 30
COMES = st.tuples(st.integers(1, 60), st.integers(1, 80))
"""GiB and percent of compute."""
GOES = st.integers(0, 9)
Held = tuple[claims.Claim, int, int]


class Sharing:
    """A node of one way of sharing; nobody says here that a claim is gone but its kubelet."""

    def __init__(self, folder: Path, face: str) -> None:
        self.node = gpunode.GpuNode(folder)
        self.face = face
        self.room = self.node.nvml.inventory().gpus[0].memory_bytes or 0
        self.held: list[Held] = []
        self.number = 0

    def comes(self, gib: int, percent: int) -> None:
        self.number += 1
        claim = shares.a_share(self.number, self.face, gib=gib, percent=percent)
        memory = gib * GIB + sum(row[1] for row in self.held)
        compute = percent + sum(row[2] for row in self.held)
        answer = shares.prepare(self.node, claim)
        if memory <= self.room and compute <= faces.FULL_COMPUTE_PERCENT:
            assert isinstance(answer, ports.Prepared)
            self.held.append((claim, gib * GIB, percent))
            return
        assert isinstance(answer, ports.Refused)
        assert answer.reason is reasons.Reason.DEVICE_OVERLAP
        assert {holder.uid for holder in answer.holders} == {row[0].uid for row in self.held}

    def goes(self, which: int) -> None:
        if self.held:
            shares.release(self.node, self.held.pop(which % len(self.held))[0])


@given(
    st.sampled_from(("mps", "ts")),
    st.lists(st.one_of(COMES, COMES, GOES), min_size=2, max_size=10),
)
def test_a_share_is_given_where_there_is_enough_of_the_gpu_and_only_there(
    face: str, turns: list[tuple[int, int] | int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = Sharing(Path(folder), face)
        for turn in turns:
            if isinstance(turn, int):
                world.goes(turn)
            else:
                world.comes(*turn)
