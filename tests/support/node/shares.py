"""Claims for shares of a GPU, prepared and unprepared on a node in memory."""

import dataclasses
import json
from typing import Any

from driver.kubeletplugin import ports
from driver.resources import quantities
from driver.resources.dra import claims
from tests.fakes import gpunode
from tests.support.builders import allocated_claims

GPU = "gpu-0000-53-00-0"
VERSION = "resource.ration.dev/v1alpha1"


def a_share(
    number: int, face: str = "mps", gib: int = 20, percent: int = 25, **more: Any
) -> claims.Claim:
    result = dataclasses.replace(
        allocated_claims.a_result(f"{GPU}-{face}"),
        share_id=f"share-{number}",
        consumed={
            "memory": quantities.parse(f"{gib}Gi"),
            "compute": quantities.parse(str(percent)),
        },
    )
    uid = allocated_claims.numbered_uid(number)
    return allocated_claims.an_allocated_claim(result, uid=uid, name=f"claim-{number}", **more)


def interval(name: str) -> list[dict[str, Any]]:
    sharing = {"strategy": "TimeSlicing", "timeSlicing": {"interval": name}}
    return [{"apiVersion": VERSION, "kind": "GpuConfig", "sharing": sharing}]


def prepare(node: gpunode.GpuNode, claim: claims.Claim) -> ports.Prepared | ports.Refused:
    return node.process().preparer.prepare(node.allocate(claim), gpunode.never)


def release(node: gpunode.GpuNode, claim: claims.Claim) -> None:
    ref = ports.ClaimRef(claim.namespace, claim.name, claim.uid)
    assert node.process().preparer.unprepare(ref) is None


def edits(node: gpunode.GpuNode, claim: claims.Claim) -> Any:
    (device,) = json.loads(node.spec_path(claim.uid).read_bytes())["devices"]
    return device["containerEdits"]


def board(node: gpunode.GpuNode) -> Any:
    machine = node.nvml.machine
    return machine.board(machine.gpus[0])


def uuid(node: gpunode.GpuNode) -> str:
    return node.nvml.machine.gpus[0].uuid


def two_shares(first_gib: int, second_gib: int) -> claims.Claim:
    """One claim with two requests, `first` and `second`, both given shares of one GPU."""
    fields = {"first": (first_gib, 30), "second": (second_gib, 60)}
    results = [
        dataclasses.replace(
            allocated_claims.a_result(f"{GPU}-mps", request=name),
            share_id=f"share-{name}",
            consumed={
                "memory": quantities.parse(f"{gib}Gi"),
                "compute": quantities.parse(str(percent)),
            },
        )
        for name, (gib, percent) in fields.items()
    ]
    return allocated_claims.an_allocated_claim(*results)
