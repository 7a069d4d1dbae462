"""Sixty-four claims at once, on eight GPUs in three modes, with slow hardware."""

import dataclasses
import os
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import pytest

from driver import clock
from driver.devices import faces, mig, model
from driver.kubeletplugin import composition, ports
from driver.resources import quantities
from driver.resources.dra import claims
from tests.fakes import gpunode, mpsnode, supervised
from tests.support.builders import allocated_claims

TIME = clock.SystemClock()
PARTS, SERVED, TURNS = range(3), range(3, 6), range(6, 8)
SLOW_MS = {"device_create_gpu_instance_with_placement": 1000, "mps_daemon": 2000}


@pytest.fixture
def node() -> Iterator[mpsnode.Node]:
    with supervised.node() as created:
        yield created


@pytest.fixture
def reader() -> gpunode.FakeReader:
    return gpunode.FakeReader()


@pytest.fixture
def core(node: mpsnode.Node, reader: gpunode.FakeReader) -> Iterator[composition.Core]:
    with supervised.core(node, reader) as created:
        yield created


def devices(gpus: tuple[model.Gpu, ...]) -> Iterator[str]:
    """Yield the device of each claim, 64 of them."""
    for number in PARTS:
        offered_faces = faces.offered_faces(gpus[number], faces.Offering())
        yield from (
            offered_face.name
            for offered_face in offered_faces
            if isinstance(offered_face, faces.MigFace) and _smallest(offered_face.profile)
        )
    for number in SERVED:
        yield from [f"{faces.device_name(gpus[number].pci)}-mps"] * 8
    for number, count in zip(TURNS, (10, 9), strict=True):
        yield from [f"{faces.device_name(gpus[number].pci)}-ts"] * count


def _smallest(profile: mig.Profile) -> bool:
    return profile.name == "1g.10gb"


def a_claim(number: int, device: str) -> claims.Claim:
    amounts = {"memory": quantities.parse("5Gi"), "compute": quantities.parse("9")}
    result = dataclasses.replace(
        allocated_claims.a_result(device), consumed={} if "-mig-" in device else amounts
    )
    uid = allocated_claims.numbered_uid(number)
    return allocated_claims.an_allocated_claim(result, uid=uid, name=f"claim-{number}")


@pytest.mark.skipif(os.geteuid() != 0, reason="MIG and device nodes are root's")
def test_sixty_four_claims_at_once_wait_for_their_own_gpu_only(
    node: mpsnode.Node, core: composition.Core, reader: gpunode.FakeReader
) -> None:
    gpus = core.read_gpus().gpus
    request = {
        claim.name: (claim, device)
        for number, device in enumerate(devices(gpus))
        for claim in (a_claim(number, device),)
    }
    assert len(request) == 64
    reader.claims.update({claim.key: claim for claim, _ in request.values()})
    for call, milliseconds in SLOW_MS.items():
        node.slow(call, milliseconds)

    def prepare(name: str) -> tuple[str, ports.Prepared | ports.Refused, float]:
        claim, device = request[name]
        ref = ports.ClaimRef(claim.namespace, claim.name, claim.uid)
        return device, core.preparation.prepare(ref, gpunode.never), TIME.monotonic()

    with futures.ThreadPoolExecutor(64) as pool:
        done = list(pool.map(prepare, request))
        assert [answer for _, answer, _ in done if not isinstance(answer, ports.Prepared)] == []
        taking_turns = max(time_s for device, _, time_s in done if device.endswith("-ts"))
        parts = [time_s for device, _, time_s in done if "-mig-" in device]
        # Instances of a GPU come one a second; what has nothing to do with them is long there.
        assert taking_turns < sorted(parts)[len(parts) // 2]
        gone = pool.map(
            lambda item: core.preparation.unprepare(
                ports.ClaimRef(item[0].namespace, item[0].name, item[0].uid)
            ),
            request.values(),
        )
        assert set(gone) == {None}
    assert core.records() == ()
    left = core.read_gpus().gpus
    assert not any(gpu.mig and gpu.mig.instances for gpu in left)
    assert not list(Path(node.own / "s/desired").iterdir())
    assert not list((node.own / "cdi").iterdir())
