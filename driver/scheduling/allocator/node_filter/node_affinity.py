"""NodeAffinity: the nodeSelector and the required node affinity must match. Pure."""

from driver.resources.core import nodes, pods


def rejection(node: nodes.Node, pod: pods.Pod) -> str:
    """Return why the pod excludes the node, in words; "" if it does not."""
    for key, value in pod.node_selector.items():
        if node.labels.get(key) != value:
            return f"nodeSelector {key}={value}"
    if pod.affinity is not None and not pod.affinity.matches(node.name, node.labels):
        return "required node affinity"
    return ""


def matches(node: nodes.Node, pod: pods.Pod) -> bool:
    """Return whether the node's labels and name fit the pod."""
    if not pod.node_selector and pod.affinity is None:
        return True
    return not rejection(node, pod)


def score(node: nodes.Node, pod: pods.Pod) -> int:
    """Return the sum of the weights of the preferred terms that the node matches."""
    return sum(
        preference.weight
        for preference in pod.node_preferences
        if preference.term.matches(node.name, node.labels)
    )
