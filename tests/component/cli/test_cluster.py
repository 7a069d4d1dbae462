"""Tests of which cluster and which namespace commands mean."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml

from driver.cli import cluster
from tests.fakes.apiserver import server as api_server


@pytest.fixture
def api() -> Iterator[api_server.ApiServer]:
    with api_server.ApiServer() as running:
        yield running


def test_the_namespace_is_the_one_named_else_the_contexts_else_default(
    api: api_server.ApiServer, tmp_path: Path
) -> None:
    path = api.kubeconfig(tmp_path)
    assert cluster.resolve_namespace(None, path) == "default"
    document = yaml.safe_load(path.read_text())
    document["contexts"][0]["context"]["namespace"] = "team-a"
    path.write_text(yaml.safe_dump(document))
    assert cluster.resolve_namespace(None, path) == "team-a"
    assert cluster.resolve_namespace("team-b", path) == "team-b"
    assert cluster.resolve_namespace("team-b", path, everywhere=True) is None


def test_a_server_below_the_floor_is_one_line(
    api: api_server.ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = api.kubeconfig(tmp_path)
    cluster.connect_supported(path)
    api.pretend("v1.36.2")
    with pytest.raises(typer.Exit) as ended:
        cluster.connect_supported(path)
    assert ended.value.exit_code == 3
    assert capsys.readouterr().err == (
        "Kubernetes is v1.36.2, below 1.36.4: upgrade it, or ask `ration doctor` what works there\n"
    )
