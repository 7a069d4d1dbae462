from typing import Any

from hack.cluster import kueue


def of_kind(kind: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": kind.lower()}}


def test_kueue_as_a_process_applies_its_chart_without_the_pod_and_api_service() -> None:
    chart = [of_kind(kind) for kind in ("Secret", "Deployment", "APIService", "Service")]
    installed = kueue.installed(chart)
    assert [entry["kind"] for entry in installed] == ["Namespace", "Secret", "Service"]
    assert installed[0]["metadata"]["name"] == kueue.NAMESPACE


def test_the_webhooks_service_leads_to_the_process() -> None:
    endpoint = kueue.endpoint(21007)
    assert endpoint["metadata"]["labels"]["kubernetes.io/service-name"] == kueue.SERVICE
    assert endpoint["ports"] == [{"name": "", "port": 21007, "protocol": "TCP"}]
    assert endpoint["endpoints"][0]["addresses"] == ["198.19.255.1"]
