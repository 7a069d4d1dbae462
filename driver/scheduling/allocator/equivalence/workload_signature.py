"""Workload signatures: workloads of one signature get the same results. Pure."""

from collections.abc import Hashable

from driver.resources.core import interpod_affinity, pods
from driver.scheduling.allocator import types as allocator_types


def workload_signature(workload: allocator_types.Workload) -> Hashable:
    """Return all that a node's result depends on, but allocated claims and avoided nodes."""
    return (
        device_signature(workload),
        _pod_signature(workload.pod),
        _cross_node_signature(workload.pod),
    )


def single_node_signature(workload: allocator_types.Workload) -> Hashable:
    """Return all that a node's own result depends on, without other nodes' pods."""
    return device_signature(workload), _pod_signature(workload.pod)


def device_signature(workload: allocator_types.Workload) -> Hashable:
    """Return all that matters for devices, but the CPUs of the pod."""
    pod = workload.pod
    entry_names: dict[str | None, tuple[str, ...]] = {}
    for entry in pod.claims:
        entry_names[entry.claim] = (*entry_names.get(entry.claim, ()), entry.name)
    requested = tuple(
        (claim.spec, entry_names.get(claim.name)) for claim in workload.unallocated_claims
    )
    return pod.namespace, requested, len(workload.open_claims), pod.containers


def _pod_signature(pod: pods.Pod) -> Hashable:
    return (
        tuple(sorted(pod.node_selector.items())),
        pod.affinity,
        tuple(
            (toleration.key, toleration.operator, toleration.value, toleration.effect)
            for toleration in pod.tolerations
        ),
        tuple(sorted(pod.requests.items())),
        pod.host_ports,
        pod.volume_claims,
        pod.disks,
        (pod.ephemeral_claims, pod.uid) if pod.ephemeral_claims else None,
    )


def _cross_node_signature(pod: pods.Pod) -> Hashable:
    """Return the fields that refer to pods of other nodes; None without any."""
    if not pod.spread_constraints and pod.pod_affinity == interpod_affinity.NONE:
        return None
    return pod.spread_constraints, pod.pod_affinity, frozenset(pod.labels.items())
