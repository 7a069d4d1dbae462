"""Patch of a pod's status, which kube-scheduler and the kubelet write too."""

from collections.abc import Mapping

from driver.controller import ports
from driver.kube import client, gvr
from driver.resources.core import pods


def patch_status(writer: ports.Writer, pod: pods.Pod, body: Mapping[str, object]) -> None:
    """Change the fields of `body` and no other. Raises ApiError."""
    writer.patch(
        gvr.PODS,
        pod.name,
        body,
        namespace=pod.namespace,
        subresource="status",
        kind=client.PatchType.STRATEGIC,
    )
