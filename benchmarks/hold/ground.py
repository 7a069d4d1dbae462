"""An API server with its etcd, alone on loopback: real, and with the chart's rights and policies.

Nobody schedules, runs pods or looks after claims here. The local cluster, where one is up, is left
alone. `Ground` writes kubeconfigs of the accounts that the product has.
"""

import contextlib
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import rich.console

from driver.kube import client, gvr
from hack.cluster import (
    argv,
    certificates,
    configs,
    driver,
    host,
    kubectl,
    layout,
    plan,
    progress,
    toolchain,
    versions,
)

HERE = "127.0.0.1"
CONTROLLER, PLUGIN = "ration-controller", "ration-kubeletplugin"
_LISTENERS = ("etcd", "etcd-peer", "kube-apiserver")
_OF_CLUSTERS = range(plan.FIRST_PORT, plan.FIRST_PORT + 4000)
"""Ports that a cluster which starts meanwhile may be about to take."""
_PROGRAMS = ("etcd", "kube-apiserver", "kubectl")
_WITHIN_S = 60.0
_QUIET = ("--v=0", f"--bind-address={HERE}")


class Ground:
    """An API server that answers while it is up; `kube` is an administrator's client."""

    def __init__(self, where: layout.Layout, ports: Mapping[str, int]) -> None:
        self._where = where
        self._ports = ports
        self._server = f"https://{HERE}:{ports['kube-apiserver']}"
        self._serving: subprocess.Popen[bytes] | None = None
        self.kubeconfig = self._administrator()
        self.kube = client.KubeClient.connect(self.kubeconfig, "ration-bench")

    def up(self) -> None:
        """Have it serve; returns once it is ready."""
        api = argv.kube_apiserver(self._where.program("kube-apiserver"), self._where, self._ports)
        self._serving = _started(self._where, (*api, *_QUIET))
        _wait(self._where, "kube-apiserver", self._ports["kube-apiserver"])
        kubectl.wait(
            "the API server is ready",
            lambda: kubectl.run(self._where, "get", "--raw=/readyz") == "ok",
            _WITHIN_S,
            self._where.logs / "kube-apiserver.log",
        )

    def down(self) -> None:
        """Kill it; what it keeps is etcd's."""
        if self._serving is not None:
            _kill(self._serving)
            self._serving = None

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """It answers nobody until the exit."""
        if self._serving is not None:
            self._serving.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            if self._serving is not None:
                self._serving.send_signal(signal.SIGCONT)

    def drop_connections(self) -> None:
        """As one that restarts."""
        self.down()
        self.up()

    @property
    def audit(self) -> Path:
        """What the product's accounts asked, a line each."""
        return self._where.audit

    @property
    def logs(self) -> Path:
        """Of every process here."""
        return self._where.logs

    def controller(self) -> Path:
        """A kubeconfig of the controller's account."""
        return self._account(CONTROLLER, argv.controller_token())

    def plugin(self, node: str) -> Path:
        """A kubeconfig of the plugin's account, bound to a Node that is there."""
        return self._account(PLUGIN, argv.plugin_token(node))

    def install(self) -> None:
        """What the chart installs, but its pods."""
        driver.apply_chart(self._where)

    def _administrator(self) -> Path:
        leaf = certificates.load(self._where).issue_cert(
            "client.ration", common_name="admin", organization_name="system:masters"
        )
        user = configs.certificate_user(
            leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes()
        )
        return self._kubeconfig(self._where.kubeconfig, user)

    def _account(self, name: str, request: argv.Argv) -> Path:
        token = self._where.key(f"{name}.token")
        certificates.write_secret(token, kubectl.run(self._where, *request).strip().encode())
        return self._kubeconfig(token.with_suffix(".kubeconfig"), {"tokenFile": str(token)})

    def _kubeconfig(self, path: Path, user: configs.Document) -> Path:
        authority = self._where.key("ca.pem").read_bytes()
        document = configs.kubeconfig(self._server, authority, user)
        certificates.write_secret(path, configs.yaml(document).encode())
        return path


@contextlib.contextmanager
def served() -> Iterator[Ground]:
    """Bring it up; all of it ends, and its files go, at the exit."""
    with tempfile.TemporaryDirectory(prefix="hold") as folder, contextlib.ExitStack() as ends:
        where = layout.Layout(Path(folder) / "checkout", Path(folder))
        ports = plan.choose_ports(_LISTENERS, _OF_CLUSTERS, host.is_free)
        _lay_out(where, ports)
        etcd = _started(where, argv.etcd(where.program("etcd"), where, ports))
        ends.callback(_kill, etcd)
        _wait(where, "etcd", ports["etcd"])
        ground = Ground(where, ports)
        ends.callback(ground.down)
        ground.up()
        ground.install()
        yield ground


def namespace(kube: client.KubeClient, name: str) -> None:
    """A namespace that pods can be made in: nobody makes its account but us."""
    accounts = gvr.Resource("", "v1", "serviceaccounts", namespaced=True)
    kube.create(gvr.NAMESPACES, {"metadata": {"name": name}})
    kube.create(accounts, {"metadata": {"name": "default"}}, name)


def _lay_out(where: layout.Layout, ports: argv.Ports) -> None:
    for place in (where.home, where.keys, where.etcd, where.logs, where.programs):
        place.mkdir(mode=0o700, parents=True)
    certificates.create(where, ports)
    where.key("audit.yaml").write_text(configs.yaml(configs.audit(argv.NAMESPACE)))
    console = rich.console.Console(stderr=True)
    steps = progress.Steps(console, toolchain.cache_root() / "timings.json")
    found = toolchain.ensure(versions.load().line(None), steps)
    for name in _PROGRAMS:
        where.program(name).symlink_to(found[name])


def _started(where: layout.Layout, command: argv.Argv) -> subprocess.Popen[bytes]:
    with (where.logs / f"{Path(command[0]).name}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """What it keeps is thrown away: it need not end in order."""
    process.kill()
    process.wait()


def end(process: subprocess.Popen[bytes]) -> None:
    """Have a process end, and wait for it; one that has ended is left alone."""
    process.terminate()
    try:
        process.wait(_WITHIN_S / 2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(where: layout.Layout, name: str, port: int) -> None:
    kubectl.wait(
        f"{name} listens", lambda: not host.is_free(port), _WITHIN_S, where.logs / f"{name}.log"
    )
