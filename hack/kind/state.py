"""What a cluster of kind looks like now, for `status`."""

import json

from hack.chart import helm
from hack.cluster import errors
from hack.kind import daemon as daemons
from hack.kind import facts, kube, layout, plan, record


def rows(where: layout.Layout, cache: layout.Cache) -> list[dict[str, str]]:
    """A row a node; none if there is no cluster of that name."""
    kept = record.read(where)
    daemon = daemons.choose(cache, own=False, recorded=kept.host if kept else None)
    seen = facts.read(daemon, where, cache)
    pods = _pods(where) if seen.nodes else {}
    return [
        {
            "node": node.name,
            "container": "running" if node.running else "stopped",
            "gpus": _gpus(node),
            "driver": ", ".join(pods.get(node.name, ())) or "-",
        }
        for node in seen.nodes
    ]


def _gpus(node: plan.Node) -> str:
    if node.role != plan.WORKER:
        return "-"
    return "running" if node.gpus else "not running"


def _pods(where: layout.Layout) -> dict[str, list[str]]:
    """The release's pods by node, each with the state of its containers."""
    try:
        text = kube.run(where, "get", "pods", "-n", helm.NAMESPACE, "--output=json")
    except errors.ClusterError:
        return {}
    by_node: dict[str, list[str]] = {}
    for pod in json.loads(text)["items"]:
        component = pod["metadata"]["labels"].get("app.kubernetes.io/component", "?")
        ready = all(
            c["ready"] for c in pod["status"].get("containerStatuses") or [{"ready": False}]
        )
        word = component if ready else f"{component} (not ready)"
        by_node.setdefault(pod["spec"].get("nodeName", ""), []).append(word)
    return by_node
