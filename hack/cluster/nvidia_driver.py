"""NVIDIA's own DRA driver (gpu.nvidia.com, 0.5) on the local cluster's nodes, for tests.

Nothing of it is in this repository: a folder holds its kubelet plugin, built from its public
sources as `gpu-kubelet-plugin`, and `deployments/helm` and `demo` of them. DeviceClasses, account
and rights are its chart's. Its DaemonSet is left out: on each node a process stands for the pod,
with a token that carries the node's name. Its part for ComputeDomains does not run. Control daemons
of its MPS (feature gate MPSSupport) are pods of our workload image, in place of its own.
"""

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from hack.cluster import (
    argv,
    configs,
    control,
    foreign_plugins,
    guests,
    images,
    layout,
    shell,
    store,
)

DRIVER = "gpu.nvidia.com"
"""The driver's name, and that of its component on each node."""
FOLDER_VARIABLE = "RATION_NVIDIA_DRIVER"
NAMESPACE = "dra-driver-nvidia-gpu"
PROGRAM = "gpu-kubelet-plugin"
MPS_GATE = "MPSSupport"
# Not `latest`, which a kubelet pulls: templates of some releases name no pull policy.
_MPS_IMAGE = "ration.local/workload:mps"
_RELEASE = "nvidia"
_TEMPLATES = Path("/templates")
"""Where its image has the templates; it takes no other place."""
_CHART = "deployments/helm/dra-driver-nvidia-gpu"
# A container's libraries are found without the loader's cache here, as its programs are static; so
# nothing is lost where the hooks that NVIDIA's specifications name do nothing.
_HOOK = "/usr/bin/true"
# Paths that the plugin does not take by a flag. A pod's are the node's; here each node has a
# machine of its own, so the process has a mount namespace with the machine's in their place:
# - /proc/driver: the device node of a MIG instance, by its capability's minor number.
# - /proc/devices: their major number. ALT_PROC_DEVICES_PATH says it too, and that NVML is a mock.
# - boot_id: after a reboot the checkpoint is void; the machine's changes with `reboot`.
# - /sys: PCI address, PCIe root and NUMA node, without which no GPU is published.
_VIEWS = ("proc/driver", "proc/devices", "proc/sys/kernel/random/boot_id", "sys")
# As the pod's init container does, it waits for nvidia-smi: a machine that boots has no driver yet,
# and the plugin ends without one.
_SCRIPT = """\
set -eu
host=$1 smi=$2 templates=$3; shift 3
if [ -d /templates ]; then mount --bind "$templates" /templates; fi
while [ "$1" != -- ]; do mount --bind "$host/$1" "/$1"; shift; done
shift
until "$smi" -L >/dev/null 2>&1; do sleep 0.5; done
exec "$@"
"""


def install(where: layout.Layout, folder: Path, nodes: Sequence[str], *gates: str) -> None:
    """Apply the driver's objects, and run its plugin on nodes with feature gates on.

    A node that has it gets it anew. Returns when each kubelet has registered it and its devices
    are published; devices of an earlier start count. Raises ClusterError.
    """
    ports = store.running(where).ports
    if MPS_GATE in gates:
        _prepare_mps(where, nodes)
    objects = _rendered(where, folder)
    guests.apply(where, objects)
    account = (NAMESPACE, foreign_plugins.service_account(objects, "-kubeletplugin"))
    for node in nodes:
        foreign_plugins.stop(where, DRIVER, node)
        kubeconfig = foreign_plugins.access(where, DRIVER, node, account, ports)
        words = command(folder, where.node(node), node, kubeconfig)
        control.launch(where, DRIVER, node, words, environment(gates))
    for node in nodes:
        foreign_plugins.wait_served(where, node, DRIVER)


def uninstall(where: layout.Layout, folder: Path) -> None:
    """Stop the plugin on every node, and delete the objects. Raises ClusterError.

    The namespace, checkpoints, and for half a minute the slices stay, as of a real uninstallation.
    """
    foreign_plugins.stop(where, DRIVER)
    with contextlib.suppress(OSError):  # it is not there, or somebody else's
        _TEMPLATES.rmdir()
    guests.delete(where, guests.without(_rendered(where, folder), "Namespace"))


def _prepare_mps(where: layout.Layout, nodes: Sequence[str]) -> None:
    """Make the folder that its templates are mounted on, and give each driver root a shell.

    Its control daemons run below the driver root of their node, in an image that each node has.
    """
    _TEMPLATES.mkdir(exist_ok=True)
    for folders in map(where.node, nodes):
        shutil.copy(images.BUSYBOX, folders.gpu / "driver-root/usr/bin/sh")
        names = (configs.WORKLOAD_IMAGE, _MPS_IMAGE)
        shell.run(configs.ctr_tag(where.program("ctr"), folders.socket, *names))


def command(folder: Path, folders: layout.NodeLayout, node: str, kubeconfig: Path) -> argv.Argv:
    """Return the command line of the plugin of one node, in a mount namespace of its own."""
    driver_root = folders.gpu / "driver-root"
    flags = {
        "--node-name": node,
        "--namespace": NAMESPACE,
        "--kubeconfig": kubeconfig,
        # The same path inside and outside of a container. It loads libnvidia-ml.so.1 and runs
        # nvidia-smi by their paths below it; neither LD_LIBRARY_PATH nor PATH matters.
        "--nvidia-driver-root": driver_root,
        "--container-driver-root": driver_root,
        "--cdi-root": folders.cdi,
        "--nvidia-cdi-hook-path": _HOOK,
        # Of MPS control daemons.
        "--image-name": _MPS_IMAGE,
        "--kubelet-registrar-directory-path": folders.kubelet / "plugins_registry",
        "--kubelet-plugins-directory-path": folders.kubelet / "plugins",
    }
    words = (f"{flag}={value}" for flag, value in flags.items())
    unshare = ("unshare", "--mount", "--propagation=private", "--")
    machine = (str(folders.gpu / "host-root"), str(driver_root / "usr/bin/nvidia-smi"))
    script = ("sh", "-c", _SCRIPT, "views", *machine, str(folder / "templates"), *_VIEWS, "--")
    return (*unshare, *script, str(folder / PROGRAM), "-v=4", *words)


def environment(gates: Sequence[str]) -> dict[str, str]:
    """Return the variables of a plugin with feature gates on."""
    if not gates:
        return {}
    joined = ",".join(f"{gate}=true" for gate in gates)
    return {"FEATURE_GATES": joined, "IMAGE_PULL_POLICY": "Never"}


def installed(chart: Sequence[guests.Object]) -> list[guests.Object]:
    """Return the chart's objects that are applied, with the namespace they lie in."""
    return [guests.a_namespace(NAMESPACE), *guests.without(chart, "DaemonSet")]


def _rendered(where: layout.Layout, folder: Path) -> list[guests.Object]:
    flags = (
        f"--namespace={NAMESPACE}",
        # The chart's own word that no device plugin serves the same GPUs.
        "--set=gpuResourcesEnabledOverride=true",
        "--set=resources.computeDomains.enabled=false",
        # The right to make control daemons.
        f"--set=featureGates.{MPS_GATE}=true",
        # Helm renders without a cluster, whose version it would go by.
        "--set=resourceApiVersion=resource.k8s.io/v1",
    )
    return installed(guests.rendered(where, _RELEASE, folder / _CHART, *flags))
