"""NodeAffinity: the nodeSelector and the required node affinity must match. Pure."""

from driver.resources.core import nodes, pods


def rejection(node: nodes.Node, pod: pods.Pod) -> str:
    """Say why the pod refuses the node, in words; "" where it does not."""
    for key, value in pod.node_selector.items():
        if node.labels.get(key) != value:
            return f"nodeSelector {key}={value}"
    if pod.affinity is not None and not pod.affinity.matches(node.name, node.labels):
        return "required node affinity"
    return ""


def matches(node: nodes.Node, pod: pods.Pod) -> bool:
    """Tell whether the pod could be on the node as far as its labels and its name go."""
    if not pod.node_selector and pod.affinity is None:
        return True
    return not rejection(node, pod)


def score(node: nodes.Node, pod: pods.Pod) -> int:
    """The weights of the preferred terms that the node matches, together."""
    return sum(
        preference.weight
        for preference in pod.node_preferences
        if preference.term.matches(node.name, node.labels)
    )
