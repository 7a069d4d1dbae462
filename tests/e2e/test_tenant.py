"""A tenant who is root in a container: the attacks of attacks.sh, judged on the node.

RATION_ATTACK_SECONDS=600 python -m pytest -p no:randomly -s tests/e2e/test_tenant.py
"""

import hashlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from driver.kube import client
from hack.cluster import api
from simulator import compiler
from tests.e2e import one_gpu, playground

NODE = "e2e-t"
SECONDS = int(os.environ.get("RATION_ATTACK_SECONDS", "60"))
SCRIPT = Path(__file__).with_name("attacks.sh")
CONTROL = "nvidia-cuda-mps-control"
MIB = 1 << 20
MOST_BYTES = 256 * MIB
"""Of the node's folders without those of containers: records, logs, the simulated driver."""
SHARE = {"memory": "10Gi", "compute": "20"}
_OF_CONTAINERS = {"containerd", "kubelet", "pods", "m", "cni"}


@pytest.fixture(scope="module")
def node(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[str]:
    with one_gpu.a_node(cluster, kube, NODE):
        yield NODE


@pytest.fixture(scope="module")
def control_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The control program as an image without a C library would bring it."""
    return compiler.static(CONTROL, tmp_path_factory.mktemp("static"))


def files_of(folder: Path) -> Iterator[Path]:
    """Every file of the node that is not a container's; what goes meanwhile is left out."""
    for path in folder.iterdir():
        if path.name in _OF_CONTAINERS or path.is_symlink():
            continue
        if path.is_dir():
            yield from files_of(path)
        else:
            yield path


def driver_digests(base: Path) -> Mapping[str, str]:
    """The programs and libraries of the driver, and what each is."""
    return {
        str(path.relative_to(base)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((base / "gpu/driver-root/usr").rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def left_behind(base: Path) -> list[str]:
    """Setuid programs and device nodes outside the simulated /dev."""
    names = []
    for path in files_of(base):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if "driver-root/dev" in str(path):
            continue
        if mode & (stat.S_ISUID | stat.S_ISGID) or stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
            names.append(str(path))
    return names


def size_of(base: Path) -> int:
    """Bytes of the node's files that are not a container's."""
    total = 0
    for path in files_of(base):
        try:
            total += path.lstat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total


def attack(field: playground.Playground, pod: str, control: Path, seconds: int) -> str:
    """Bring script and control program into the pod's container, and run them there."""
    output = ("exec", "-i", "-n", field.namespace, pod, "--", "sh", "-c")
    binary = field.cluster.programs / "kubectl"
    environment = {**os.environ, "KUBECONFIG": str(field.cluster.kubeconfig)}
    for name, data in (("attacks.sh", SCRIPT.read_bytes()), ("control", control.read_bytes())):
        words = f"cat > /tmp/{name} && chmod 755 /tmp/{name}"
        subprocess.run([binary, *output, words], input=data, env=environment, check=True)
    words = f"/tmp/attacks.sh {seconds} /tmp/control"
    done = subprocess.run(
        [binary, *output, words],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds + 600,
    )
    return done.stdout + done.stderr


def started(field: playground.Playground, name: str) -> tuple[str, int]:
    """The container of a pod that runs: its id, and how often it was restarted."""
    (container,) = field.running(name)["status"]["containerStatuses"]
    return container["containerID"], container["restartCount"]


def test_a_tenant_who_is_root_hurts_nobody_but_who_shares_his_daemon(
    field: playground.Playground, node: str, control_program: Path
) -> None:
    base = field.cluster.node_dir(node)
    own, other, whole = (one_gpu.OneGpu(field, node, number) for number in range(3))
    own.ask("tenant", one_gpu.MPS, capacity=SHARE, command="sleep 100000")
    other.ask("neighbour", one_gpu.MPS, capacity=SHARE)
    whole.ask("training", one_gpu.WHOLE)
    others = ("neighbour", "training")
    served = other.sees("neighbour")["mps"]["server"]
    previous = {name: started(field, name) for name in others}
    processes = {role: field.cluster.pid(role, node) for role in ("plugin", "mps", "kubelet")}
    digests = driver_digests(base)
    field.running("tenant")
    message = attack(field, "tenant", control_program, SECONDS)
    sys.stdout.write(message)
    assert "attacks are over" in message
    assert {name: started(field, name) for name in others} == previous
    assert other.sees("neighbour")["mps"]["server"] == served
    assert Path(f"/proc/{served}").exists()
    assert {role: field.cluster.pid(role, node) for role in processes} == processes
    assert driver_digests(base) == digests
    assert left_behind(base) == []
    assert size_of(base) < MOST_BYTES
    own.free()
    own.ask("next", one_gpu.MPS, capacity=SHARE)
    assert own.sees("next")["mps"]["threadPercentage"] == float(SHARE["compute"])
    for gpu in (own, other, whole):
        gpu.free()
