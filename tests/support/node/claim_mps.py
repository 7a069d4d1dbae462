"""Claims with an MPS daemon of their own, prepared on a node in memory."""

from typing import Any

from driver import names
from driver.kubeletplugin import ports
from driver.resources.dra import claims
from tests.fakes import gpunode
from tests.fakes.migclaims import WHOLE
from tests.support.builders import allocated_claims
from tests.support.node.shares import prepare

OTHER = "gpu-0000-64-00-0"
PART = f"{WHOLE}-mig-1g10gb-0"


def mps(settings: dict[str, Any] | None = None, kind: str = "GpuConfig") -> dict[str, Any]:
    sharing: dict[str, Any] = {"strategy": "MPS"}
    if settings is not None:
        sharing["mps"] = settings
    return {"apiVersion": names.CONFIG_VERSION, "kind": kind, "sharing": sharing}


def a_claim(*devices: str, configs: tuple[dict[str, Any], ...] = ()) -> claims.Claim:
    results = [
        allocated_claims.a_result(device, request=f"r{index}")
        for index, device in enumerate(devices)
    ]
    return allocated_claims.an_allocated_claim(*results, configs=configs)


def whole(*devices: str, **settings: Any) -> claims.Claim:
    return a_claim(*(devices or (WHOLE,)), configs=(mps(settings),))


def a_part(**settings: Any) -> claims.Claim:
    return a_claim(PART, configs=(mps(settings, "MigDeviceConfig"),))


def prepared(node: gpunode.GpuNode, claim: claims.Claim) -> ports.Prepared:
    answer = prepare(node, claim)
    assert isinstance(answer, ports.Prepared), answer
    return answer


def modes(node: gpunode.GpuNode) -> list[int]:
    machine = node.nvml.machine
    return [machine.board(gpu).compute_mode for gpu in machine.gpus]
