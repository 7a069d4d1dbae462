"""Commands that hand over a node, and back, one node at a time; to be read before they are run.

A GPU has one owner: a device plugin and Ration on one node would allocate it twice. The node's
label alone decides: Ration's DaemonSets select it, and the device plugin's keeps away.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from driver import names
from driver.cli.migrate import nodes

TAKEN = "ration.dev/taken-over"
"""A label of the plan's own: Ration's DaemonSets are told by values to be only where it is."""
LEFT = "ration.dev/device-plugin-left"
"""The label that NVIDIA's chart is told by `affinity` to keep away from."""
KEEP_AWAY: Mapping[str, str] = {"key": TAKEN, "operator": "DoesNotExist"}
"""Match expression of another DRA driver's DaemonSet: two drivers would publish the same GPUs."""
_ON_TAKEN: Mapping[str, object] = {"nodeSelector": {TAKEN: "true"}}
_DRAIN = "--ignore-daemonsets --delete-emptydir-data"


@dataclass(frozen=True, slots=True)
class Steps:
    """Commands, in order."""

    takeover: tuple[str, ...]
    rollback: tuple[str, ...]


def node_steps(node: str, *, operator: bool) -> Steps:
    """Return the takeover of a node and the rollback.

    The label that the device plugin's DaemonSet keeps away from moves its MPS daemon's too.
    """
    if operator:
        label = f"kubectl label node {node} {nodes.OPERATOR_LABEL}"
        away, home = f"{label}=false --overwrite", f"{label}=true --overwrite"
    else:
        label = f"kubectl label node {node} {LEFT}"
        away, home = f"{label}=true", f"{label}-"
    slices = f"kubectl get resourceslices --field-selector spec.nodeName={node}"
    pods = f"kubectl get pods -A --field-selector spec.nodeName={node}"
    return Steps(
        takeover=(
            f"kubectl cordon {node}",
            f"kubectl drain {node} {_DRAIN}",
            away,
            f"{pods}  # until no nvidia-device-plugin is listed",
            f"kubectl label node {node} {TAKEN}=true",
            f"{slices}  # until {names.DRIVER} is listed",
            f"kubectl uncordon {node}",
        ),
        rollback=(
            f"kubectl cordon {node}",
            f"kubectl drain {node} {_DRAIN}",
            f"kubectl label node {node} {TAKEN}-",
            f"{slices}  # until {names.DRIVER} is not listed",
            home,
            f"kubectl uncordon {node}  # once nvidia.com/gpu is allocatable there again",
        ),
    )


def affinity() -> Mapping[str, object]:
    """Values for NVIDIA's chart: its own affinity (v0.20), and away from nodes that were left."""
    away = {"key": LEFT, "operator": "DoesNotExist"}
    existing = (
        ("feature.node.kubernetes.io/pci-10de.present", "true"),
        ("feature.node.kubernetes.io/cpu-model.vendor_id", "NVIDIA"),
        ("nvidia.com/gpu.present", "true"),
    )
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}, away]}
        for key, value in existing
    ]
    required = {"nodeSelectorTerms": terms}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


def steps_before(*, operator: bool, scheduler: bool) -> tuple[str, ...]:
    """Return the steps before the first node."""
    steps = []
    if not scheduler:
        label = f"kubectl label namespace <each with GPU pods> {names.CONVERT_LABEL}=false"
        steps.append(f"{label}  # its pods stay with the device plugin")
    if not operator:
        chart = "helm upgrade nvdp nvdp/nvidia-device-plugin -n <its namespace>"
        steps.append(f"{chart} --reuse-values -f device-plugin-values.yaml")
    steps.append("helm install ration deploy/helm/ration -n ration-system -f values.yaml")
    return tuple(steps)


def steps_after(*, scheduler: bool) -> tuple[str, ...]:
    """Return the steps beside and after the nodes."""
    if scheduler:
        return ()
    forth = f"kubectl label namespace <one that moves> {names.CONVERT_LABEL}-"
    back = f"kubectl label namespace <one that goes back> {names.CONVERT_LABEL}=false"
    return (
        f"{forth}  # its new pods go to nodes that were taken over",
        f"{back}  # and to the others again",
    )


@dataclass(frozen=True, slots=True)
class DraPlan:
    """Move of some nodes from the driver; no nodes: the commands of any node."""

    driver: str
    nodes: tuple[str, ...] = ()

    @property
    def values(self) -> Mapping[str, object]:
        """Values of Ration's chart: the controller allocates the devices of both drivers."""
        return {
            "kubeletPlugin": {"enabled": True, **_ON_TAKEN},
            "mps": _ON_TAKEN,
            "admission": {"convert": "off"},
            "controller": {"managedDrivers": [{"name": self.driver}]},
        }

    def node_steps(self, node: str) -> Steps:
        """Return the commands that move a node, and those that move it back."""
        slices = f"kubectl get resourceslices --field-selector spec.nodeName={node}"
        drain = f"kubectl drain {node} {_DRAIN}"
        label = f"kubectl label node {node} {TAKEN}"
        return Steps(
            takeover=(
                drain,
                f"{label}=true",
                f"{slices}  # until {names.DRIVER} is listed, and {self.driver} is not",
                f"ration doctor --node {node}",
                f"kubectl uncordon {node}",
            ),
            rollback=(
                drain,
                f"{label}-",
                f"{slices}  # until {self.driver} is listed, and {names.DRIVER} is not",
                f"kubectl uncordon {node}",
            ),
        )
