"""kube-scheduler's message of an unschedulable pod, read for the node that we chose. Pure.

The message counts reasons over nodes (`FitError.Error`, pkg/scheduler/framework/types.go):
`0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 resourceclaim not
available on the node. preemption: ...`. Once all claims of a pod are allocated on one node, the
other nodes lack the claim, or fail an earlier filter; what is left is the reason of our node.
"""

import re

_HEAD = re.compile(r"^0/\d+ nodes are available: (?P<reasons>\d.*?)(?:\.(?: |$)|$)", re.DOTALL)
_SPLIT = re.compile(r", (?=\d+ )")
_ELSEWHERE = "resourceclaim not available on the node"
"""A node that the allocation does not reach (dynamicresources.go, Filter)."""
_UNALLOCATED = ("cannot allocate all claims", "in the process of being allocated", "timed out")
"""The attempt began before it saw our allocation, or does not show whether it did."""
_ACROSS_NODES = ("topology spread", "affinity rules")
"""Reasons that depend on the pods of other nodes."""
_BY_OTHER_PODS = ("topology spread", "pod affinity rules")
"""Reasons that a pod added to some node may lift."""


def definite_reasons(message: str) -> str:
    """Return the reasons for which our node was refused; "" if the message leaves that open.

    A definite reason does not pass by waiting: the filters saw the allocation and the node.
    """
    head = _HEAD.match(message)
    if head is None:
        return ""
    reasons = [part.partition(" ")[2] for part in _SPLIT.split(head["reasons"])]
    if any(marker in reason for reason in reasons for marker in _UNALLOCATED):
        return ""
    return ", ".join(reason for reason in reasons if reason != _ELSEWHERE)


def spans_nodes(message: str) -> bool:
    """Return whether a reason may pass by what happens on other nodes."""
    return any(marker in message for marker in _ACROSS_NODES)


def awaits_pods(message: str) -> bool:
    """Return whether a reason passes once other pods are bound, as ours in flight soon are."""
    return any(marker in message for marker in _BY_OTHER_PODS)
