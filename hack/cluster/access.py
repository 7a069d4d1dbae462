"""Access of a component to the API server: a bound token and a kubeconfig, for the owner only."""

from pathlib import Path

from hack.cluster import argv, certificates, kubectl, layout


def write(
    where: layout.Layout, token: Path, kubeconfig: Path, request: argv.Argv, ports: argv.Ports
) -> Path:
    """Write the token that kubectl's words request, and a kubeconfig that shows it; return that."""
    certificates.write_secret(token, kubectl.run(where, *request).strip().encode())
    certificates.write_secret(kubeconfig, certificates.token_kubeconfig(where, token, ports))
    return kubeconfig
