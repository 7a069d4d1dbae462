"""Tests of the toolkit's own reader on our CDI specs, one of each kind of claim."""

from pathlib import Path

import pytest

from driver.kubeletplugin import ports
from hack.cluster import shell
from tests.contract import toolkit
from tests.fakes import gpunode
from tests.fakes.migclaims import WHOLE
from tests.support.node import claim_mps, shares

SERVED, LIMITED = claim_mps.OTHER, {"pinnedMemory": "4Gi", "activeThreadPercentage": 50}
CLAIMS = {
    "whole": claim_mps.a_claim(WHOLE),
    "whole, with MPS of its own": claim_mps.whole(WHOLE, SERVED, **LIMITED),
    "MIG": claim_mps.a_claim(claim_mps.PART),
    "MIG, with MPS of its own": claim_mps.a_part(**LIMITED),
    "MPS share": shares.a_share(1),
    "time-sliced share": shares.a_share(2, "ts", configs=shares.interval("Long")),
}


@pytest.mark.timeout(900)  # the first to use the program builds it
@pytest.mark.parametrize("kind", CLAIMS)
def test_the_toolkit_lists_the_devices_of_every_kind_of_claim(tmp_path: Path, kind: str) -> None:
    node = gpunode.GpuNode(tmp_path)
    answer = shares.prepare(node, CLAIMS[kind])
    assert isinstance(answer, ports.Prepared)
    folder = node.spec_path(CLAIMS[kind].uid).parent
    command = (str(toolkit.program()), "--quiet", "cdi", "list", f"--spec-dir={folder}")
    listed = shell.run(command).split()
    assert sorted(listed) == sorted(name for device in answer.devices for name in device.cdi_ids)
