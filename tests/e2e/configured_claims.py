"""Claims with configuration of our driver."""

from typing import Any

PARAMETERS = {
    "apiVersion": "resource.ration.dev/v1alpha1",
    "kind": "GpuConfig",
    "sharing": {"strategy": "TimeSlicing", "timeSlicing": {"interval": "Long"}},
}


def a_configured_claim(name: str) -> dict[str, Any]:
    opaque = {"driver": "gpu.ration.dev", "parameters": PARAMETERS}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu-timeslice.ration.dev"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request], "config": [{"opaque": opaque}]}},
    }
