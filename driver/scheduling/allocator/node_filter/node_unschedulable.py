"""NodeUnschedulable: a cordoned node takes pods that tolerate the cordon's taint. Pure."""

from driver.resources.core import nodes, pods

CORDON_TAINT = "node.kubernetes.io/unschedulable"


def rejection(node: nodes.Node, pod: pods.Pod) -> str:
    """Return why the node excludes the pod, in words; "" if it does not."""
    tolerated = not node.cordoned or any(
        toleration.tolerates(CORDON_TAINT, "", "NoSchedule") for toleration in pod.tolerations
    )
    return "" if tolerated else "cordoned"
