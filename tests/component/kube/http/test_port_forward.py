"""A request to a pod's own port, through an API server's websocket."""

from pathlib import Path

import pytest
import yaml

from driver import errors
from driver.kube.http import port_forward
from tests.fakes import portforward

PORT = 8081
BODY = b'{"nodes": 2}' * 40


def a_kubeconfig(folder: Path, url: str, token: str) -> Path:
    user = {"token": token} if token else {}
    file = folder / "kubeconfig"
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "a",
                "clusters": [{"name": "a", "cluster": {"server": url}}],
                "users": [{"name": "a", "user": user}],
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            }
        )
    )
    return file


def a_tunnel(folder: Path, url: str, token: str = "") -> port_forward.Tunnel:
    return port_forward.Tunnel(a_kubeconfig(folder, url, token), "ration-system", "leader-1", PORT)


def test_requests_follow_each_other_through_one_tunnel(tmp_path: Path) -> None:
    server = portforward.Server(BODY)
    with portforward.serving(server, PORT) as url:
        through = a_tunnel(tmp_path, url)
        assert through.get("/api/v1/fleet") == (200, BODY)
        assert through.get("/api/v1/nodes?limit=1") == (200, BODY)
    path = "/api/v1/namespaces/ration-system/pods/leader-1/portforward?ports=8081"
    assert server.opened == [f"GET {path} HTTP/1.1"]
    lines = [request.partition(b"\r\n")[0] for request in server.requests]
    assert lines == [b"GET /api/v1/fleet HTTP/1.1", b"GET /api/v1/nodes?limit=1 HTTP/1.1"]


def test_the_token_of_the_kubeconfig_goes_along(tmp_path: Path) -> None:
    server = portforward.Server(BODY)
    with portforward.serving(server, PORT) as url:
        a_tunnel(tmp_path, url, "secret").get("/")
    assert server.authorizations == ["Bearer secret"]


def test_no_header_is_made_of_no_token(tmp_path: Path) -> None:
    server = portforward.Server(BODY)
    with portforward.serving(server, PORT) as url:
        a_tunnel(tmp_path, url).get("/")
    assert server.authorizations == [None]


def test_a_refusal_says_what_the_server_said(tmp_path: Path) -> None:
    server = portforward.Server(BODY, refusal="403 Forbidden")
    with portforward.serving(server, PORT) as url, pytest.raises(errors.Unreachable, match="403"):
        a_tunnel(tmp_path, url).get("/")


def test_a_kubeconfig_that_is_none_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(errors.BadInput):
        port_forward.Tunnel(tmp_path / "none", "ration-system", "leader-1", PORT).get("/")
