"""What of a workload its answers depend on: workloads of one shape get the same answers. Pure."""

from collections.abc import Hashable

from driver.resources.core import interpod_affinity, pods
from driver.scheduling.allocator import types as allocator_types


def workload_signature(workload: allocator_types.Workload) -> Hashable:
    """All of a workload that a node's answer depends on, settled claims and `avoid` apart."""
    return (
        device_signature(workload),
        _pod_signature(workload.pod),
        _cross_node_signature(workload.pod),
    )


def single_node_signature(workload: allocator_types.Workload) -> Hashable:
    """All of it that what a node answers by itself depends on."""
    return device_signature(workload), _pod_signature(workload.pod)


def device_signature(workload: allocator_types.Workload) -> Hashable:
    """All of it that matters for devices, but the CPUs of the pod."""
    pod = workload.pod
    named = {entry.claim: entry.name for entry in pod.claims}
    asked_as = tuple((claim.spec, named.get(claim.name)) for claim in workload.open_claims)
    return pod.namespace, asked_as, pod.containers


def _pod_signature(pod: pods.Pod) -> Hashable:
    return (
        tuple(sorted(pod.node_selector.items())),
        pod.affinity,
        tuple((one.key, one.operator, one.value, one.effect) for one in pod.tolerations),
        tuple(sorted(pod.requests.items())),
        pod.host_ports,
        pod.volume_claims,
        pod.disks,
        (pod.ephemeral_claims, pod.uid) if pod.ephemeral_claims else None,
    )


def _cross_node_signature(pod: pods.Pod) -> Hashable:
    """The fields by which it asks for pods of other nodes, or for none; None without any."""
    if not pod.spread and pod.pod_affinity == interpod_affinity.NONE:
        return None
    return pod.spread, pod.pod_affinity, frozenset(pod.labels.items())
