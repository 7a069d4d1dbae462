"""Plays a container of a neighbour's workload, in the driver's image: `program.py CONTAINER ARGS`.

Each part does what its original is documented to do as far as nodes, the kubelet and NVML see it,
by the account and the mounts that its chart gives it:

- worker, master, nfd-master: Node Feature Discovery 0.18; PCI devices to NodeFeature to labels.
- gpu-operator: gpu-operator 26.7, controllers/nodelabeling_controller.go.
- nvidia-device-plugin: the kubelet's device plugin API v1beta1; whole GPUs.
- gpu-feature-discovery: some labels of nvidia.com, as a file for the worker.
- exporter, nvidia-dcgm-exporter: one NVML session for good, with a handle to each GPU.

Others answer their probes and do nothing; those that are done before the rest end at once.
"""

import contextlib
import http.server
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pynvml
import yaml

from driver import errors
from driver.kube import client, gvr

PROBED = "NEIGHBOUR_PORT"
SECOND_S = 1.0
NODE_FEATURES = gvr.Resource("nfd.k8s-sigs.io", "v1alpha1", "nodefeatures", namespaced=True)
POLICIES = gvr.Resource("nvidia.com", "v1", "clusterpolicies", namespaced=False)
FEATURES = Path("/etc/kubernetes/node-feature-discovery/features.d")
WORKER_CONF = FEATURES.parent / "nfd-worker.conf"
PREFIX = "feature.node.kubernetes.io/"
OWNED = "nfd.node.kubernetes.io/feature-labels"
PRESENT, OPERANDS = "nvidia.com/gpu.present", "nvidia.com/gpu.deploy.operands"
DISCOVERED = tuple(f"{PREFIX}pci-{kind}10de.present" for kind in ("", "0300_", "0302_"))
DEPLOYED = tuple(
    f"nvidia.com/gpu.deploy.{operand}"
    for operand in (
        "driver",
        "gpu-feature-discovery",
        "container-toolkit",
        "device-plugin",
        "dcgm",
        "dcgm-exporter",
        "node-status-exporter",
        "operator-validator",
        "client",
    )
)
MIG_MANAGER, MIG_CAPABLE = "nvidia.com/gpu.deploy.mig-manager", "nvidia.com/mig.capable"
Labels = Mapping[str, str]
Patch = dict[str, str | None]
Act = Callable[[], None]


def say(*words: object) -> None:
    """Write a line to the container's log."""
    print(*words, flush=True)  # noqa: T201 - the log


def kube() -> client.KubeClient:
    """The client of the pod's account."""
    return client.KubeClient.connect(None, "neighbour")


# Node Feature Discovery.


def pci_labels(sys_root: Path, conf: Mapping[str, Any]) -> dict[str, str]:
    """The labels of the source `pci`, by its configuration or else its defaults."""
    pci = (conf.get("sources") or {}).get("pci") or {}
    classes = tuple(pci.get("deviceClassWhitelist", ["03", "0b40", "12"]))
    expected = pci.get("deviceLabelFields", ["class", "vendor"])
    labels = {}
    for device in sorted((sys_root / "bus" / "pci" / "devices").glob("*")):
        parts = {
            "class": (device / "class").read_text().strip().removeprefix("0x")[:4],
            "vendor": (device / "vendor").read_text().strip().removeprefix("0x"),
        }
        if parts["class"].startswith(classes):
            labels[f"{PREFIX}pci-{'_'.join(parts[x] for x in expected)}.present"] = "true"
    return labels


def local_labels(folder: Path) -> dict[str, str]:
    """The labels of the source `local`: lines `name=value` of files that others write."""
    lines = [line for path in sorted(folder.glob("*")) for line in path.read_text().splitlines()]
    return dict(line.split("=", 1) for line in lines if "=" in line)


def worker() -> None:
    """Say by a NodeFeature what the node has."""
    api, node = kube(), os.environ["NODE_NAME"]
    namespace = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace").read_text()
    conf = yaml.safe_load(WORKER_CONF.read_text()) if WORKER_CONF.is_file() else None
    shown: Labels | None = None
    for _ in ticks():
        labels = pci_labels(Path("/host-sys"), conf or {}) | local_labels(FEATURES)
        if labels == shown:
            continue
        body: dict[str, Any] = {
            "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
            "kind": "NodeFeature",
            "metadata": {
                "name": node,
                "namespace": namespace,
                "labels": {"nfd.node.kubernetes.io/node-name": node},
            },
            "spec": {"features": {}, "labels": labels},
        }
        try:
            previous = api.get(NODE_FEATURES, node, namespace)
        except errors.NotFound:
            api.create(NODE_FEATURES, body, namespace)
        else:
            body["metadata"]["resourceVersion"] = previous["metadata"]["resourceVersion"]
            api.replace(NODE_FEATURES, node, body, namespace=namespace)
        shown = labels
        say("node has", labels)


def owned(node: Mapping[str, Any]) -> set[str]:
    """The labels of a node that Node Feature Discovery gave it."""
    text = node["metadata"].get("annotations", {}).get(OWNED, "")
    return {name if "/" in name else f"{PREFIX}{name}" for name in text.split(",") if name}


def master() -> None:
    """Give nodes the labels that their NodeFeatures name, and take away those of before."""
    api = kube()
    for _ in ticks():
        named: dict[str, dict[str, str]] = {}
        for feature in api.list(NODE_FEATURES).items:
            node = feature["metadata"]["labels"]["nfd.node.kubernetes.io/node-name"]
            named.setdefault(node, {}).update(feature["spec"].get("labels") or {})
        for node in api.list(gvr.NODES).items:
            give(api, node, named.get(node["metadata"]["name"], {}))


def prune() -> None:
    """Take away all that the master ever gave."""
    api = kube()
    for node in api.list(gvr.NODES).items:
        give(api, node, {})


def give(api: client.KubeClient, node: Mapping[str, Any], labels: Labels) -> None:
    """Make the labels of Node Feature Discovery on a node what they are to be."""
    previous = node["metadata"].get("labels", {})
    change: Patch = {name: None for name in owned(node) - labels.keys() if name in previous}
    change |= {name: value for name, value in labels.items() if previous.get(name) != value}
    marks = ",".join(sorted(name.removeprefix(PREFIX) for name in labels)) or None
    if change or marks != node["metadata"].get("annotations", {}).get(OWNED):
        meta = {"labels": change, "annotations": {OWNED: marks}}
        api.patch(gvr.NODES, node["metadata"]["name"], {"metadata": meta})
        say("labelled", node["metadata"]["name"], change)


# The operator.


def operator() -> None:
    """Label nodes as the operator does while it has a ClusterPolicy."""
    api = kube()
    for _ in ticks():
        if not api.list(POLICIES).items:
            continue
        for node in api.list(gvr.NODES).items:
            labels = node["metadata"].get("labels", {})
            change = operators_change(labels)
            if change:
                name = node["metadata"]["name"]
                api.patch(gvr.NODES, name, {"metadata": {"labels": change}})
                say("labelled", name, change)


def operators_change(labels: Labels) -> Patch:
    """Return the operator's changes of a node's labels. Explicit values are kept."""
    discovered = any(labels.get(name) == "true" for name in DISCOVERED)
    present = labels.get(PRESENT) == "true"
    change: Patch = {}
    if present != discovered:
        change[PRESENT] = "true" if discovered else "false"
    if not discovered or labels.get(OPERANDS) == "false":
        gone = [name for name in (*DEPLOYED, MIG_MANAGER) if name in labels]
        return change | dict.fromkeys(gone)
    change |= {name: "true" for name in DEPLOYED if not labels.get(name)}
    if labels.get(MIG_CAPABLE) == "true" and not labels.get(MIG_MANAGER):
        change[MIG_MANAGER] = "true"
    return change


# What it deploys.


def handles() -> list[Any]:
    """A handle to each GPU, of a session that stays."""
    pynvml.nvmlInit()
    return [
        pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
    ]


def discovery() -> None:
    """Write some of the labels of GPU feature discovery; they go when it ends."""
    file = FEATURES / "gfd"
    gpus = handles()
    modes = [_mig_mode(gpu) for gpu in gpus]
    labels = {
        "nvidia.com/gpu.count": str(len(gpus)),
        "nvidia.com/gpu.product": pynvml.nvmlDeviceGetName(gpus[0]).replace(" ", "-"),
        MIG_CAPABLE: str(None not in modes).lower(),
    }
    pynvml.nvmlShutdown()
    file.write_text("".join(f"{name}={value}\n" for name, value in labels.items()))
    say("wrote", labels)
    try:
        for _ in ticks():
            pass
    finally:
        file.unlink()


def _mig_mode(gpu: Any) -> int | None:
    try:
        return int(pynvml.nvmlDeviceGetMigMode(gpu)[0])
    except pynvml.NVMLError:
        return None


def exporter() -> None:
    """Read every GPU each second, as monitoring does, and never let go of it."""
    gpus = handles()
    watched = [pynvml.NVML_FI_DEV_POWER_INSTANT, pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX]
    for rounds in ticks():
        for gpu in gpus:
            pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU)
            pynvml.nvmlDeviceGetMemoryInfo(gpu)
            pynvml.nvmlDeviceGetFieldValues(gpu, watched)
        say("read", rounds + 1, "of", len(gpus))


def device_plugin() -> None:
    """Serve the node's GPUs as nvidia.com/gpu until told to end."""
    gpus = [pynvml.nvmlDeviceGetUUID(gpu) for gpu in handles()]
    folder, name = Path("/var/lib/kubelet/device-plugins"), "nvidia-gpu.sock"
    (folder / name).unlink(missing_ok=True)
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((DevicePlugin(gpus),))
    server.add_insecure_port(f"unix://{folder / name}")
    server.start()
    with grpc.insecure_channel(f"unix://{folder / 'kubelet.sock'}") as channel:
        plugin = channel.unary_unary("/v1beta1.Registration/Register", None, None)
        data = field(1, b"v1beta1") + field(2, name.encode()) + field(3, b"nvidia.com/gpu")
        plugin(data, timeout=10)
    say("registered", len(gpus))
    try:
        for _ in ticks():
            pass
    finally:
        server.stop(0.5).wait()


class DevicePlugin(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # not at run time
    """The service v1beta1.DevicePlugin, in bytes: its messages have strings and messages alone."""

    def __init__(self, gpus: list[str]) -> None:
        devices = [field(1, field(1, gpu.encode()) + field(2, b"Healthy")) for gpu in gpus]
        self._devices = b"".join(devices)

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        """The handler of a call."""
        handlers: Mapping[str, Any] = {
            "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(lambda _, __: b""),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self._list_and_watch),
            "Allocate": grpc.unary_unary_rpc_method_handler(self._allocate),
        }
        return handlers.get(details.method.rpartition("/")[2])

    def _list_and_watch(self, _: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        yield self._devices
        while context.is_active():
            time.sleep(SECOND_S)

    def _allocate(self, request: bytes, _: grpc.ServicerContext) -> bytes:
        answers = []
        for container in strings(request):
            gpus = b",".join(strings(container))
            variable = field(1, b"NVIDIA_VISIBLE_DEVICES") + field(2, gpus)
            answers.append(field(1, field(1, variable)))
        say("allocated", request)
        return b"".join(answers)


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field of a protobuf message."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def strings(message: bytes) -> list[bytes]:
    """The contents of a message whose fields are all length-delimited and of number 1."""
    bodies, index = [], 0
    while index < len(message):
        length, index = _read_varint(message, index + 1)
        bodies.append(message[index : index + length])
        index += length
    return bodies


def _read_varint(message: bytes, index: int) -> tuple[int, int]:
    """The number that begins there, and where it has ended."""
    low = message[index] & 0x7F
    if low == message[index]:
        return low, index + 1
    rest, end = _read_varint(message, index + 1)
    return low | rest << 7, end


# All of them.


class Probe(http.server.BaseHTTPRequestHandler):
    """Answers every GET with 200."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing of it."""


_ended = threading.Event()


def ticks() -> Iterator[int]:
    """Numbers from 0 on, one a second, until told to end."""
    for number in itertools.count():
        yield number
        if _ended.wait(SECOND_S):
            return


def idle() -> None:
    """Do nothing."""
    _ended.wait()


def done() -> None:
    """End at once."""


PARTS: Mapping[str, Act] = {
    "worker": worker,
    "master": master,
    "gc": idle,
    "gpu-operator": operator,
    "gpu-feature-discovery": discovery,
    "nvidia-device-plugin": device_plugin,
    "nvidia-dcgm-exporter": exporter,
    "exporter": exporter,
    "toolkit-validation": done,
    "cleanup-gpucluster": done,
    "upgrade-crd": done,
}


def main(container: str, *arguments: str) -> None:
    """Play a container."""
    signal.signal(signal.SIGTERM, lambda *_: _ended.set())
    if port := os.environ.get(PROBED):
        server = http.server.ThreadingHTTPServer(("", int(port)), Probe)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    if "-prune" in arguments:
        prune()
        return
    while not _ended.is_set():
        with contextlib.suppress(errors.ApiError):
            PARTS[container]()
            return
        _ended.wait(SECOND_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
