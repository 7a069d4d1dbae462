"""However shares of a GPU come and go on its node, they are never more than the GPU."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from driver import reasons
from driver.devices import faces
from driver.kubeletplugin import ports
from driver.resources import claims
from tests.fakes import gpunode
from tests.unit.kubeletplugin import test_prepare_shares as shares

GIB = 1 << 30
COMES = st.tuples(st.integers(1, 60), st.integers(1, 80))
"""GiB and percent of compute."""
GOES = st.integers(0, 9)
Held = tuple[claims.Claim, int, int]


@settings(deadline=None)
@given(
    st.sampled_from(("mps", "ts")),
    st.lists(st.one_of(COMES, COMES, GOES), min_size=2, max_size=10),
)
def test_a_share_is_given_where_there_is_enough_of_the_gpu_and_only_there(
    face: str, turns: list[tuple[int, int] | int]
) -> None:
    """Whatever the API counts: nobody says here that a claim is gone."""
    with tempfile.TemporaryDirectory() as folder:
        node = gpunode.GpuNode(Path(folder))
        room = node.nvml.inventory().gpus[0].memory_bytes or 0
        held: list[Held] = []
        for number, turn in enumerate(turns):
            if isinstance(turn, int):
                if held:
                    shares.release(node, held.pop(turn % len(held))[0])
                continue
            gib, percent = turn
            claim = shares.a_share(number, face, gib=gib, percent=percent)
            memory = gib * GIB + sum(one[1] for one in held)
            compute = percent + sum(one[2] for one in held)
            answer = shares.prepare(node, claim)
            if memory <= room and compute <= faces.FULL_COMPUTE_PERCENT:
                assert isinstance(answer, ports.Prepared)
                held.append((claim, gib * GIB, percent))
                continue
            assert isinstance(answer, ports.Refused)
            assert answer.reason is reasons.Reason.DEVICE_OVERLAP
            assert {one.uid for one in answer.holders} == {one[0].uid for one in held}
