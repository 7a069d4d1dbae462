from pathlib import Path
from typing import Any

from hack.cluster import karpenter


def of_kind(kind: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": kind.lower()}}


def test_karpenter_as_a_process_applies_its_chart_without_the_pod_and_its_crds() -> None:
    chart = [of_kind(kind) for kind in ("PodDisruptionBudget", "Deployment", "ClusterRole")]
    kept = karpenter.installed(chart, [of_kind("CustomResourceDefinition")])
    kinds = [one["kind"] for one in kept]
    assert kinds == ["Namespace", "CustomResourceDefinition", "ClusterRole"]
    assert kept[0]["metadata"]["name"] == karpenter.NAMESPACE


def test_it_is_told_where_to_listen_whom_to_ask_and_what_can_be_bought() -> None:
    ports = {karpenter.COMPONENT: 21007, "karpenter-health": 21008}
    told = karpenter.environment(Path("/keys/kubeconfig"), Path("/types.json"), ports)
    assert told["METRICS_PORT"] == "21007"
    assert told["HEALTH_PROBE_PORT"] == "21008"
    assert told["KUBECONFIG"] == "/keys/kubeconfig"
    assert told["INSTANCE_TYPES_FILE_PATH"] == "/types.json"
    assert told["SYSTEM_NAMESPACE"] == karpenter.NAMESPACE
    assert all(isinstance(value, str) for value in told.values())
