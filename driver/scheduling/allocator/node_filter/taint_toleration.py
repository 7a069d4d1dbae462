"""TaintToleration: taints NoSchedule and NoExecute keep pods away that do not tolerate them. Pure.

Of taints PreferNoSchedule the ones that a pod does not tolerate are counted for its score.
"""

from driver.resources.core import nodes, pods


def rejection(node: nodes.Node, pod: pods.Pod) -> str:
    """Say why the node refuses the pod, in words; "" where it does not."""
    for taint in node.taints:
        if taint.effect in nodes.BLOCKING and not is_tolerated(taint, pod):
            return f"taint {taint.key}={taint.value}:{taint.effect}"
    return ""


def is_tolerated(taint: nodes.NodeTaint, pod: pods.Pod) -> bool:
    """Tell whether a pod has a toleration for a taint."""
    tolerations = pod.tolerations
    return any(t.tolerates(taint.key, taint.value, taint.effect) for t in tolerations)


def count_soft_taints(node: nodes.Node, pod: pods.Pod) -> int:
    """Count how many taints PreferNoSchedule of the node the pod does not tolerate."""
    return sum(
        taint.effect == nodes.PREFER_NO_SCHEDULE and not is_tolerated(taint, pod)
        for taint in node.taints
    )
