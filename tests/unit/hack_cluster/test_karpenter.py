from pathlib import Path
from typing import Any

from hack.cluster import karpenter


def of_kind(kind: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": kind.lower()}}


def test_karpenter_as_a_process_applies_its_chart_without_the_pod_and_its_crds() -> None:
    chart = [of_kind(kind) for kind in ("PodDisruptionBudget", "Deployment", "ClusterRole")]
    installed = karpenter.installed(chart, [of_kind("CustomResourceDefinition")])
    kinds = [entry["kind"] for entry in installed]
    assert kinds == ["Namespace", "CustomResourceDefinition", "ClusterRole"]
    assert installed[0]["metadata"]["name"] == karpenter.NAMESPACE


def test_it_is_told_where_to_listen_whom_to_ask_and_what_can_be_bought() -> None:
    ports = {karpenter.COMPONENT: 21007, "karpenter-health": 21008}
    environment = karpenter.environment(Path("/keys/kubeconfig"), Path("/types.json"), ports)
    assert environment["METRICS_PORT"] == "21007"
    assert environment["HEALTH_PROBE_PORT"] == "21008"
    assert environment["KUBECONFIG"] == "/keys/kubeconfig"
    assert environment["INSTANCE_TYPES_FILE_PATH"] == "/types.json"
    assert environment["SYSTEM_NAMESPACE"] == karpenter.NAMESPACE
    assert all(isinstance(value, str) for value in environment.values())
