"""Use of nodes on demand where no autoscaler is."""

from driver import errors, names
from driver.kube import gvr
from hack.chart import helm
from tests.e2e import leadership, playground, release

ON_DEMAND = {
    "enabled": True,
    "shapes": [
        {"name": "here", "labels": {"kubernetes.io/os": "linux"}, "gpus": 8},
        {"name": "large", "labels": {"example.com/none-has-it": "yes"}, "gpus": 17},
    ],
}
"""Nodes like those there are, and some that nobody brings."""
SEEN = "ration-controller-node-shapes-seen"


def what_was_learned_is_spoilt(field: playground.Playground) -> None:
    """The next leader learns it anew. ConfigMaps: create, get."""
    playground.until(lambda: bool(learned(field)), 60, "what nodes are like is kept")
    spoilt = {"binaryData": dict.fromkeys(learned(field))}
    field.kube.patch(gvr.CONFIG_MAPS, SEEN, spoilt, namespace=helm.NAMESPACE)


def another_replica_leads(field: playground.Playground) -> None:
    """Delete the pod of the leader: a replica that led before learns nothing anew."""
    previous = leadership.holder(field)
    field.kube.delete(gvr.PODS, previous.rpartition("-")[0], helm.NAMESPACE)

    def changed() -> bool:
        return leadership.holder(field) not in {"", previous}

    playground.until(changed, 60, "another replica leads")


def learned(field: playground.Playground) -> dict[str, str]:
    """Return what is kept of shapes."""
    try:
        result = field.kube.get(gvr.CONFIG_MAPS, SEEN, helm.NAMESPACE)
    except errors.NotFound:
        return {}
    return dict(result.get("binaryData") or {})


def a_node_is_asked_for_until_nobody_needs_it(field: playground.Playground) -> None:
    """Pods: create, delete. ConfigMaps: patch. Nodes: patch, of their marks."""
    field.create(playground.a_claim("large", 17), release.a_pod("large", claims=("large",)))
    playground.until(lambda: asking(field), 30, "a pod asks for a node")
    assert marked(field)
    playground.until(lambda: bool(learned(field)), 60, "what nodes are like is kept again")
    field.delete_pod("large")
    playground.until(lambda: not asking(field), 40, "it is not asked for any more")


def asking(field: playground.Playground) -> list[str]:
    """The pods that ask for nodes."""
    items = field.kube.list(gvr.PODS, namespace=helm.NAMESPACE).items
    return [
        item["metadata"]["name"]
        for item in items
        if names.PLACEHOLDER_LABEL in item["metadata"].get("labels", {})
    ]


def marked(field: playground.Playground) -> list[str]:
    """The nodes with a mark of ours."""
    ours = {names.POOL_COMPLETE, names.PROVISIONED_FOR, names.KARPENTER_KEEP, names.AUTOSCALER_KEEP}
    return [
        item["metadata"]["name"]
        for item in field.kube.list(gvr.NODES).items
        if ours & {*item["metadata"].get("labels", {}), *item["metadata"].get("annotations", {})}
    ]
