"""Labels of nodes that say that they have NVIDIA GPUs, by who sets them. Pure."""

from collections.abc import Mapping, Sequence

LABELS: Sequence[str] = (
    "nvidia.com/gpu.present=true",  # GPU feature discovery, the GPU operator, or by hand
    "feature.node.kubernetes.io/pci-10de.present=true",  # Node Feature Discovery, by vendor
    "feature.node.kubernetes.io/pci-0300_10de.present=true",  # by class and vendor, its default
    "feature.node.kubernetes.io/pci-0302_10de.present=true",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-manufacturer=nvidia",
    "kubernetes.azure.com/accelerator=nvidia",
)
"""`key=value`, or `key` alone where any value says so."""


def has_gpu_label(labels: Mapping[str, str]) -> bool:
    """Return whether one of LABELS is among a node's labels."""
    return any(_matches(label, labels) for label in LABELS)


def _matches(label: str, labels: Mapping[str, str]) -> bool:
    key, equals, value = label.partition("=")
    return key in labels and (not equals or labels[key] == value)
