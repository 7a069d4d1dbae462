"""TaintToleration: NoSchedule and NoExecute taints exclude pods that do not tolerate them. Pure.

PreferNoSchedule taints that a pod does not tolerate are counted for its score.
"""

from driver.resources.core import nodes, pods


def rejection(node: nodes.Node, pod: pods.Pod) -> str:
    """Return why the node excludes the pod, in words; "" if it does not."""
    for taint in node.taints:
        if taint.effect in nodes.BLOCKING and not is_tolerated(taint, pod):
            return f"taint {taint.key}={taint.value}:{taint.effect}"
    return ""


def is_tolerated(taint: nodes.NodeTaint, pod: pods.Pod) -> bool:
    """Return whether a pod has a toleration for a taint."""
    tolerations = pod.tolerations
    return any(t.tolerates(taint.key, taint.value, taint.effect) for t in tolerations)


def count_soft_taints(node: nodes.Node, pod: pods.Pod) -> int:
    """Return the number of PreferNoSchedule taints of the node that the pod does not tolerate."""
    return sum(
        taint.effect == nodes.PREFER_NO_SCHEDULE and not is_tolerated(taint, pod)
        for taint in node.taints
    )
