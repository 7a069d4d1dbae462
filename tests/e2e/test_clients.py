"""A claim means the same whoever wrote it, and however."""

import json

import pytest

from driver.kube import gvr
from driver.kube.http import credentials, transport
from hack.cluster import api
from tests.e2e import playground
from tests.e2e.configured_claims import a_configured_claim


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
