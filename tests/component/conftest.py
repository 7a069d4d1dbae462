from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.kube import client
from tests.fakes.apiserver import server


@pytest.fixture
def api() -> Iterator[server.ApiServer]:
    with server.ApiServer() as running:
        yield running


@pytest.fixture
def kube(api: server.ApiServer, tmp_path: Path) -> client.KubeClient:
    return client.KubeClient.connect(api.kubeconfig(tmp_path), "test")
