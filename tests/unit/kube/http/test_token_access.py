"""Credentials that are read without the official client, and those that are left to it."""

import base64
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver.kube.http import token_access

PEM = "-----BEGIN CERTIFICATE-----\n"
IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def write_kubeconfig(
    folder: Path,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: str = "here",
) -> Path:
    document = {
        "current-context": context,
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443/"} | (cluster or {})}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def service_account(folder: Path, token: str) -> Path:
    (folder / "ca.crt").write_text(PEM)
    (folder / "token").write_text(token)
    return folder


def test_a_pod_reads_its_service_account(tmp_path: Path) -> None:
    access = token_access.read_service_account(service_account(tmp_path, "secret\n"), IN_POD)
    assert access == token_access.TokenAccess("https://10.0.0.1:443", PEM, "secret")
    assert access.authorization == "Bearer secret"


def test_an_ipv6_address_of_the_api_server_is_bracketed(tmp_path: Path) -> None:
    environment = IN_POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}
    access = token_access.read_service_account(service_account(tmp_path, "secret\n"), environment)
    assert access is not None
    assert access.host == "https://[fd00::1]:443"


@pytest.mark.parametrize(
    "environment",
    [
        {},
        IN_POD | {"KUBERNETES_SERVICE_PORT": ""},
        IN_POD | {"HTTPS_PROXY": "http://proxy:3128"},
        IN_POD | {"https_proxy": "http://proxy:3128"},
    ],
)
def test_the_official_client_reads_what_is_no_plain_service_account(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    assert (
        token_access.read_service_account(service_account(tmp_path, "secret\n"), environment)
        is None
    )


def test_an_empty_token_is_left_to_the_official_client(tmp_path: Path) -> None:
    assert token_access.read_service_account(service_account(tmp_path, "\n"), IN_POD) is None


def test_a_kubeconfig_with_a_token_file_beside_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    data = base64.b64encode(PEM.encode()).decode()
    path = write_kubeconfig(tmp_path, {"certificate-authority-data": data}, {"tokenFile": "token"})
    access = token_access.read_kubeconfig(path, {})
    assert access == token_access.TokenAccess("https://api:6443", PEM, "secret")
    assert token_access.find_token_file(path) == tmp_path / "token"


def test_a_kubeconfig_names_its_authority_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(PEM)
    path = write_kubeconfig(tmp_path, {"certificate-authority": "ca.pem"}, {"token": "secret"})
    access = token_access.read_kubeconfig(path, {})
    assert access == token_access.TokenAccess("https://api:6443", PEM, "secret")


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"insecure-skip-tls-verify": True}, {"token": "secret"}),
        ({"proxy-url": "http://proxy:3128"}, {"token": "secret"}),
        ({"tls-server-name": "api"}, {"token": "secret"}),
        ({}, {"exec": {"command": "aws"}}),
        ({}, {"client-certificate": "cert.pem", "client-key": "key.pem"}),
        ({"certificate-authority-data": "no base64"}, {"token": "secret"}),
        ({"certificate-authority": "missing.pem"}, {"token": "secret"}),
        ({}, {"tokenFile": "missing"}),
        ({}, {"token": "secret"}),  # the system's authorities
    ],
)
def test_a_kubeconfig_with_more_than_a_token_is_left_to_the_official_client(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    assert token_access.read_kubeconfig(write_kubeconfig(tmp_path, cluster, user), {}) is None


def test_a_context_that_is_missing_is_left_to_the_official_client(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, {}, {"token": "secret"}, context="elsewhere")
    assert token_access.read_kubeconfig(path, {}) is None
    assert token_access.find_token_file(path) is None


def test_a_server_without_tls_needs_no_authority_and_no_user(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, {"server": "http://127.0.0.1:8001"})
    access = token_access.read_kubeconfig(path, {})
    assert access == token_access.TokenAccess("http://127.0.0.1:8001", "", "")
    assert access.authorization == ""


def test_a_system_without_all_keepalive_options_has_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("socket.TCP_KEEPIDLE")
    pool = token_access.TokenAccess("https://api:6443", PEM, "secret").make_pool(4)
    options = pool.connection_pool_kw["socket_options"]
    assert (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1) in options
    assert (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 9) in options
    assert len(options) == 4
