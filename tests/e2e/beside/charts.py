"""Neighbours' charts as they are, but that `program.py` runs in their containers.

RATION_CHARTS names a folder with the charts `gpu-operator`, `node-feature-discovery` and
`dcgm-exporter`, and `assets` of the operator's repository, of which it makes what it deploys.
Nothing of a pod changes but its image and command, the patience of its probes, and where its host
is: several nodes share this machine, and each has a simulated one beside it. What NVIDIA's
runtime would put into a container, the driver's library, is mounted.
"""

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.chart import helm
from hack.cluster import api, configs, layout
from simulator import layout as machine
from tests.e2e.beside import program

Raw = dict[str, Any]
OPERANDS = {
    "gpu-feature-discovery": "gpu-feature-discovery",
    "device-plugin": "state-device-plugin",
    "dcgm-exporter": "state-dcgm-exporter",
}
"""Those that matter to us, by the folder of `assets` that has them."""
_AT = "/neighbour"
_DRIVER = "/run/nvidia/driver"
_OWN = ("/var/lib/kubelet", _DRIVER, "/var/run/cdi")
"""What a node's namespace shows where a real node has it."""
_WITHOUT_CONFIG = frozenset({"config-manager", "config-manager-init"})
"""Containers that the operator leaves out where its device plugin has no configuration."""
_GIVEN_DEVICES = frozenset({"exporter"})
"""Containers that may open the GPUs by NVIDIA's runtime alone, which is not here."""
_OF_OPENSHIFT = ("openshift", "scc")
_WAIT = ("--wait=legacy", "--timeout=180s")


def folder(name: str) -> Path:
    """A folder of RATION_CHARTS; the test is skipped where there is none."""
    text = os.environ.get("RATION_CHARTS", "")
    path = Path(text) / name
    if not text or not path.is_dir():
        pytest.skip(f"no {name}: RATION_CHARTS names the folder that has it")
    return path


def install(cluster: api.Cluster, chart: str, scratch: Path, *flags: str) -> None:
    """Install a chart in a namespace of its name, as the release of its name."""
    path = write(chart, scratch / chart, *flags)
    values = (f"--namespace={chart}", "--create-namespace")
    cluster.helm("install", chart, str(path), *values, *_WAIT)


def uninstall(cluster: api.Cluster, chart: str) -> None:
    """Uninstall it, by its own hooks too; its namespace goes."""
    cluster.helm("uninstall", chart, f"--namespace={chart}", "--wait", "--timeout=180s")
    cluster.kubectl("delete", "namespace", chart, "--wait=true")


def write(chart: str, into: Path, *flags: str) -> Path:
    """A chart that renders to what the neighbour's does, with our programs; its folder."""
    source = folder(chart)
    text = helm.template(*flags, release=chart, namespace=chart, hooks=True, chart=source)
    assert "{{" not in text
    objects = [*played(helm.objects(text)), script(chart)]
    (into / "templates").mkdir(parents=True)
    (into / "templates" / "all.yaml").write_text(yaml.safe_dump_all(objects))
    described = yaml.safe_load((source / "Chart.yaml").read_text())
    about = {"apiVersion": "v2", "name": chart, "version": described["version"].removeprefix("v")}
    (into / "Chart.yaml").write_text(yaml.safe_dump(about))
    (into / "crds").mkdir()
    for path in kinds(chart):
        (into / "crds" / path.name).write_bytes(path.read_bytes())
    return into


def kinds(chart: str) -> list[Path]:
    """The files of a chart's kinds, which Helm leaves when it uninstalls."""
    source = folder(chart)
    return [*source.glob("crds/*.yaml"), *source.glob("charts/*/crds/*.yaml")]


def operands(namespace: str, owner: Raw, *names: str) -> list[Raw]:
    """Return what the operator makes for these parts of its ClusterPolicy, which owns it all."""
    results = []
    for name in names:
        for path in sorted((folder("assets") / OPERANDS[name]).glob("*.yaml")):
            if not any(word in path.name for word in (*_OF_OPENSHIFT, "monitor", "prometheus")):
                results += helm.objects(path.read_text())
    filled = [_filled(result, namespace, owner) for result in results]
    return [*played(filled)]


def _filled(entry: Raw, namespace: str, owner: Raw) -> Raw:
    """An object with what the operator fills in."""
    copied = copy.deepcopy(entry)
    meta = copied["metadata"]
    if "namespace" in meta:
        meta["namespace"] = namespace
    for subject in copied.get("subjects", ()):
        if "namespace" in subject:
            subject["namespace"] = namespace
    meta["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return copied


def script(namespace: str) -> Raw:
    """The ConfigMap that has the program of that namespace's pods."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "neighbour", "namespace": namespace},
        "data": {"program.py": Path(program.__file__).read_text()},
    }


def played(objects: list[Any]) -> Iterator[Raw]:
    """Objects whose pods run our program."""
    for obj in objects:
        copied = copy.deepcopy(obj)
        if copied["kind"] in {"DaemonSet", "Deployment", "Job"}:
            _play(copied["spec"]["template"]["spec"])
        if "helm.sh/hook" in copied["metadata"].get("annotations", {}) and copied["kind"] == "Job":
            # The release's own ConfigMap has gone before a hook that comes after it.
            yield from _hooks_script(copied)
        yield copied


def _hooks_script(job: Raw) -> Iterator[Raw]:
    document = script(job["metadata"]["namespace"])
    document["metadata"]["name"] = f"neighbour-{job['metadata']['name']}"
    document["metadata"]["annotations"] = {
        **job["metadata"]["annotations"],
        "helm.sh/hook-weight": "-5",
    }
    for volume in job["spec"]["template"]["spec"]["volumes"]:
        if volume["name"] == "neighbour":
            volume["configMap"]["name"] = document["metadata"]["name"]
    yield document


def _play(spec: Raw) -> None:
    spec.setdefault("volumes", [])
    for volume in spec["volumes"]:
        if "hostPath" in volume:
            volume["hostPath"] = _host(volume["hostPath"]["path"])
    spec["volumes"] += [
        {"name": "neighbour", "configMap": {"name": "neighbour"}},
        {"name": "neighbour-driver", "hostPath": {"path": _DRIVER}},
    ]
    for kind in ("initContainers", "containers"):
        spec[kind] = [entry for entry in spec.get(kind, ()) if entry["name"] not in _WITHOUT_CONFIG]
        for container in spec[kind]:
            _play_container(container)
    if not spec["initContainers"]:
        del spec["initContainers"]


def _host(path: str) -> Raw:
    """The folder of the node that stands for one of a real node."""
    if path.startswith(_OWN):
        return {"path": path}
    return {"path": f"{layout.HOST_ROOT}{path}".rstrip("/"), "type": "DirectoryOrCreate"}


def _play_container(container: Raw) -> None:
    shell = container.get("command", [""])[0] in {"sh", "/bin/sh"}
    container["command"] = ["python", f"{_AT}/program.py", container["name"]]
    if shell:
        del container["args"]
    container["image"], container["imagePullPolicy"] = configs.DRIVER_IMAGE, "Never"
    container.setdefault("env", []).append(
        {"name": "LD_LIBRARY_PATH", "value": f"/usr/local/lib:{_DRIVER}/{machine.LIBRARIES}"}
    )
    container.setdefault("volumeMounts", [])
    container["volumeMounts"] += [
        {"name": "neighbour", "mountPath": _AT, "readOnly": True},
        {"name": "neighbour-driver", "mountPath": _DRIVER, "readOnly": True},
    ]
    security = container.setdefault("securityContext", {})
    if container["name"] in _GIVEN_DEVICES:
        security["privileged"] = True
        security.pop("allowPrivilegeEscalation", None)
    if security.get("privileged"):
        security.setdefault("runAsUser", 0)  # as their images, and unlike ours
    probes = [container[kind] for kind in container if kind.endswith("Probe")]
    for probe in probes:
        probe.update(initialDelaySeconds=1, timeoutSeconds=10, failureThreshold=30)
    if probes:
        port = probes[0]["httpGet"]["port"]
        named = {entry.get("name"): entry["containerPort"] for entry in container.get("ports", ())}
        container["env"].append({"name": program.PROBED, "value": str(named.get(port, port))})
