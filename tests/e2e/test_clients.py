"""A claim means the same whoever wrote it, and however."""

import json
from typing import Any

import pytest

from driver.kube import gvr
from driver.kube.http import credentials, transport
from hack.cluster import api
from tests.e2e import playground

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


@pytest.mark.usefixtures("nodes")
def test_parameters_written_with_spaces_are_no_hindrance(
    field: playground.Playground, cluster: api.Cluster
) -> None:
    wire = transport.Transport(credentials.Credentials(cluster.kubeconfig), "somebody-else")
    path = gvr.RESOURCE_CLAIMS.path(field.namespace)
    written = json.dumps(a_configured_claim("spaced"), indent=2).encode()
    wire.read(transport.Call("POST", path, (5, 10), body=written))
    field.create(playground.a_pod("spaced", claims=("spaced",)))
    field.running("spaced")
    assert field.told("spaced", "Allocated")
    field.says("spaced", "Ready", "True")
