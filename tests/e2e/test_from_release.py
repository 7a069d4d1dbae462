"""A release, installed from its folder alone by the words of docs/, on either ground.

`make release` has made it: nothing of the checkout is installed but the values that say where a
simulated host is.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver import names
from hack.chart import helm
from hack.cluster import api, chart, toolchain
from tests.e2e import grounds, playground, release
from tests.support import docs_commands

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
field = release.field
DIST = grounds.ROOT / "dist"
HOW_TO = grounds.ROOT / "docs" / "how-to"
INSTALL = docs_commands.commands(HOW_TO / "install.md", "From a release")
MPS = "app.kubernetes.io/component=mps"
"""The pods of supervisors: an update leaves those there are, so there is no rollout to wait for."""
ROLLED_OUT = (
    "daemonset/ration-kubeletplugin",
    "deployment/ration-controller",
    "deployment/ration-admission",
)
NODE_PARTS = ("ration-kubeletplugin", "ration-mps")


@pytest.fixture(scope="module")
def dist() -> Path:
    if not (DIST / "SHA256SUMS").is_file():
        pytest.fail("dist/ holds no release: make release")
    subprocess.run(("sha256sum", "--quiet", "--check", "SHA256SUMS"), cwd=DIST, check=True)
    return DIST


@pytest.fixture(scope="module")
def cluster(dist: Path) -> Iterator[api.Cluster]:
    """A cluster without the driver, whose nodes have the release's image."""
    with release.a_cluster() as present:
        code, words = release.uninstall()
        assert code == 0, words
        (load,) = (line for line in INSTALL if line.startswith("ctr "))
        *command, archive = load.split()
        assert command == ["ctr", "-n", "k8s.io", "images", "import"]
        present.load_image(dist / archive)
        try:
            yield present
        finally:
            release.install()


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Values that say where the simulated host is, and which nodes have GPUs."""
    values = yaml.safe_load(chart.VALUES.read_text())
    del values["image"]
    if grounds.IS_KIND:
        for part in ("kubeletPlugin", "mps"):
            values[part]["nodeSelector"] = {"ration.dev/allocator": "controller"}
    path = tmp_path / "host.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def do(cluster: api.Cluster, line: str, *more: str) -> str:
    """Return what a line of the docs printed, done by a shell in the release's folder."""
    tools = {
        helm.program().parent,
        toolchain.programs(cluster.kubernetes)["kubectl"].parent,
    }
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": os.pathsep.join([*map(str, tools), os.environ["PATH"]]),
    }
    command = " ".join((line, *more))
    done = subprocess.run(
        ("bash", "-o", "pipefail", "-c", command),
        cwd=DIST,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def is_rolled_out(cluster: api.Cluster) -> None:
    for workload in ROLLED_OUT:
        rolled = ("rollout", "status", workload, "-n", helm.NAMESPACE, "--timeout=120s")
        cluster.kubectl(*rolled)
    ready = ("pods", f"--selector={MPS}", "-n", helm.NAMESPACE, "--timeout=120s")
    cluster.kubectl("wait", "--for=condition=Ready", *ready)


def each_mode_runs(field: playground.Playground) -> None:
    """A pod of each mode gets its device, and goes again."""
    for mode in release.MODES:
        field.running(release.of_mode(field, mode))
    for mode in release.MODES:
        field.delete_pod(f"{mode}-pod")


def test_two_commands_install_and_serve_every_kind_of_gpu_and_helm_test(
    cluster: api.Cluster, field: playground.Playground, host: Path, dist: Path, tmp_path: Path
) -> None:
    (install,) = (line for line in INSTALL if line.startswith("helm install"))
    do(cluster, install, f"--values={host}")
    is_rolled_out(cluster)
    (version,) = {path.stem.removeprefix("ration-") for path in dist.glob("ration-*.tgz")}
    assert set().union(*release.images(cluster).values()) == {f"ration:{version}"}
    each_mode_runs(field)
    (archive,) = dist.glob("kubectl-ration-*.tar.gz")
    subprocess.run(("tar", "--extract", f"--file={archive}", f"--directory={tmp_path}"), check=True)
    listed = do(cluster, f"PATH={tmp_path}:$PATH kubectl ration devices --output=json")
    assert {row["node"] for row in json.loads(listed)} == set(cluster.nodes())
    test = f"helm test {helm.RELEASE} --namespace {helm.NAMESPACE} --timeout 2m --logs"
    assert "Succeeded" in do(cluster, test)
    code, words = release.uninstall()
    assert code == 0, words


def test_one_manifest_installs_and_uninstalls_without_helm(
    cluster: api.Cluster, field: playground.Playground, host: Path
) -> None:
    (install,) = (line for line in INSTALL if line.startswith("kubectl apply"))
    do(cluster, install)
    values = yaml.safe_load(host.read_text())
    for name, part in zip(NODE_PARTS, ("kubeletPlugin", "mps"), strict=True):
        on_the_simulated_host(cluster, name, values[part])
    cluster.kubectl("delete", "pods", f"--selector={MPS}", "-n", helm.NAMESPACE)
    is_rolled_out(cluster)
    each_mode_runs(field)
    (leave,) = (line for line in INSTALL if line.startswith("kubectl delete"))
    do(cluster, leave)
    stays = [f"{node}: {names.NODE_CONDITION}" for node in cluster.nodes()]
    # The kubelet deletes the slices of a driver half a minute after its plugin has gone.
    playground.until(
        lambda: release.left_in_the_api(cluster) == stays, 90, "what installed it is gone"
    )


def test_without_hooks_the_same_steps_by_hand_leave_nothing(
    cluster: api.Cluster, field: playground.Playground, host: Path, dist: Path
) -> None:
    (packed,) = dist.glob("ration-*.tgz")
    (install,) = (line for line in INSTALL if line.startswith("helm install"))
    do(cluster, install, f"--values={host}", "--set=uninstall.enabled=false")
    is_rolled_out(cluster)
    each_mode_runs(field)
    lines = docs_commands.commands(HOW_TO / "gitops.md", "Uninstall without hooks")
    after = next(n for n, line in enumerate(lines) if "templates/uninstall/sweep.yaml" in line)
    for line in lines[:after]:
        do(cluster, line.replace("CHART", packed.name))
    do(cluster, f"helm uninstall {helm.RELEASE} --namespace {helm.NAMESPACE} --no-hooks")
    for line in lines[after:]:
        do(cluster, line.replace("CHART", packed.name))
    assert not [name for name in release.left_in_the_api(cluster) if name not in release.KEPT]
    assert release.left_on(cluster) == []


def on_the_simulated_host(cluster: api.Cluster, daemon_set: str, values: Mapping[str, Any]) -> None:
    """Give a DaemonSet what the chart's values would have."""
    pair = (daemon_set, "-n", helm.NAMESPACE)
    document = json.loads(cluster.kubectl("get", "daemonset", *pair, "--output=json"))
    (container,) = document["spec"]["template"]["spec"]["containers"]
    pod = {
        "nodeSelector": values.get("nodeSelector", {}),
        "containers": [
            {"name": container["name"], "args": container["args"] + values["extraArgs"]}
        ],
    }
    patch = {"spec": {"template": {"spec": pod}}}
    cluster.kubectl("patch", "daemonset", *pair, f"--patch={json.dumps(patch)}")
