"""A shape that is named by flags, as the manifests of a pod that asks for it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driver import errors, names
from driver.resources import quantities

Raw = dict[str, Any]
NAME = "shape"
_GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists"}


@dataclass(frozen=True, slots=True)
class Shape:
    """At most one of `gpus`, `profile` and `memory` is told; `product` narrows them down."""

    gpus: int = 0
    product: str = ""
    profile: str = ""
    memory: str = ""
    device_class: str = ""
    driver: str = names.DRIVER

    @property
    def is_set(self) -> bool:
        """Return whether any field is set."""
        return bool(self.gpus or self.product or self.profile or self.memory or self.device_class)


def documents(shape: Shape, namespace: str) -> list[Raw]:
    """A template of a claim, and a pod that uses it, without CPUs.

    Raises:
        BadInput: nothing is told, or too much.
    """
    message = [bool(shape.gpus), bool(shape.profile), bool(shape.memory)]
    if sum(message) != 1:
        raise errors.BadInput("shape", "is missing or told twice", _EXPECTED)
    if shape.memory:
        quantities.parse(shape.memory, "--memory")
    exactly: Raw = {"deviceClassName": shape.device_class or _class(shape)}
    if shape.gpus:
        exactly["count"] = shape.gpus
    if shape.memory:
        exactly["capacity"] = {"requests": {names.CAP_MEMORY: shape.memory}}
    selectors = [{"cel": {"expression": selector}} for selector in _selectors(shape)]
    if selectors:
        exactly["selectors"] = selectors
    devices = {"requests": [{"name": "gpu", "exactly": exactly}]}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {"spec": {"devices": devices}},
    }
    return [template, claim_pod({"resourceClaimTemplateName": NAME}, namespace)]


_EXPECTED = "one of --gpus, --profile, --memory and -f"


def claim_pod(claim: Mapping[str, str], namespace: str) -> Raw:
    """A pod that asks one claim and nothing else; it tolerates the usual taint of GPU nodes."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {
            "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", **claim}],
            "tolerations": [_GPU_TAINT],
        },
    }


def _class(shape: Shape) -> str:
    if shape.gpus:
        return names.CLASS_GPU
    return names.CLASS_MIG if shape.profile else names.CLASS_SLICE


def _selectors(shape: Shape) -> list[str]:
    owner = f'device.attributes["{shape.driver}"]'
    result = []
    if shape.profile:
        result.append(f"{owner}.{names.ATTR_PROFILE} == {_text(shape.profile)}")
    if shape.product:
        part = _text(shape.product.lower())
        result.append(f"{owner}.{names.ATTR_PRODUCT}.lowerAscii().contains({part})")
    return result


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
