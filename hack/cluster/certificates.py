"""Certificates of the cluster: one authority for Kubernetes, one for etcd, real names on both."""

import os
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hack.cluster import argv, configs, layout, plan

API_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
    "127.0.0.1",
    plan.API_SERVICE,
    plan.API_ADDRESS,
)
# kubeconfig -> (user, group): the names that Kubernetes' built-in roles are bound to.
USERS = {
    "admin": ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", "ration"),
    "kube-scheduler": ("system:kube-scheduler", "ration"),
    "kube-proxy": ("system:kube-proxy", "ration"),
}


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner reads."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)


def create(where: layout.Layout, ports: argv.Ports) -> None:
    """Make every key, certificate and kubeconfig of the control plane."""
    authority = trustme.CA(organization_name="ration")
    write_secret(where.key("ca.pem"), authority.cert_pem.bytes())
    write_secret(where.key("ca.key"), authority.private_key_pem.bytes())
    serving = authority.issue_cert(*API_NAMES, common_name="kube-apiserver")
    _write_leaf(where.keys, "kube-apiserver", serving)
    client = authority.issue_cert(
        "kubelet-client", common_name="kube-apiserver", organization_name="system:masters"
    )
    _write_leaf(where.keys, "kubelet-client", client)
    for name, (user, group) in USERS.items():
        document = _certificate_kubeconfig(authority, ports, (user, group))
        path = where.kubeconfig if name == "admin" else where.key(f"{name}.kubeconfig")
        write_secret(path, document)
    _create_etcd(where)
    _create_service_account_key(where)


def create_node(where: layout.Layout, node: str, address: str, ports: argv.Ports) -> None:
    """Make a kubelet's serving certificate and its kubeconfig."""
    authority = load(where)
    config = where.node(node).config
    _write_leaf(config, "kubelet", authority.issue_cert(node, address, common_name=node))
    user = (f"system:node:{node}", "system:nodes")
    write_secret(config / "kubelet.kubeconfig", _certificate_kubeconfig(authority, ports, user))


def load(where: layout.Layout) -> trustme.CA:
    """The cluster's authority."""
    return trustme.CA.from_pem(where.key("ca.pem").read_bytes(), where.key("ca.key").read_bytes())


def token_kubeconfig(where: layout.Layout, token: Path, ports: argv.Ports) -> bytes:
    """A kubeconfig whose user shows the token in a file."""
    authority = where.key("ca.pem").read_bytes()
    user: configs.Document = {"tokenFile": str(token)}
    return configs.yaml(configs.kubeconfig(argv.api_server(ports), authority, user)).encode()


def _certificate_kubeconfig(
    authority: trustme.CA, ports: argv.Ports, user: tuple[str, str]
) -> bytes:
    name, group = user
    # trustme wants a subject name; a client certificate's is looked at by nobody.
    leaf = authority.issue_cert("client.ration", common_name=name, organization_name=group)
    document = configs.kubeconfig(
        argv.api_server(ports),
        authority.cert_pem.bytes(),
        configs.certificate_user(leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes()),
    )
    return configs.yaml(document).encode()


def _create_etcd(where: layout.Layout) -> None:
    authority = trustme.CA(organization_name="ration-etcd")
    write_secret(where.key("etcd-ca.pem"), authority.cert_pem.bytes())
    _write_leaf(where.keys, "etcd", authority.issue_cert("127.0.0.1", "localhost"))
    _write_leaf(where.keys, "etcd-client", authority.issue_cert("kube-apiserver"))


def _create_service_account_key(where: layout.Layout) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    write_secret(where.key("service-account.key"), private)
    write_secret(where.key("service-account.pub"), public)


def _write_leaf(folder: Path, name: str, leaf: trustme.LeafCert) -> None:
    write_secret(folder / f"{name}.pem", b"".join(pem.bytes() for pem in leaf.cert_chain_pems))
    write_secret(folder / f"{name}.key", leaf.private_key_pem.bytes())
