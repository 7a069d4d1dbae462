"""Devices of other drivers that the controller allocates: their rules, and some to publish."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver import errors
from driver.kube import client, gvr
from hack.cluster import api
from tests.support.builders import objects

Raw = dict[str, Any]
NOWHERE = "--set=controller.managedDrivers[0].nodeSelector=ration.dev/no-node"
"""Hands the first managed driver back: no node has the label."""


def managed(driver: str) -> str:
    """Return helm's flag that makes a driver the first managed one."""
    return f"--set=controller.managedDrivers[0].name={driver}"


def write_document(path: Path, *entries: Raw) -> None:
    """Write the controller's ManagedDrivers document."""
    kind = {"apiVersion": "resource.ration.dev/v1alpha1", "kind": "ManagedDrivers"}
    path.write_text(yaml.safe_dump({**kind, "drivers": list(entries)}))


def require_rules(cluster: api.Cluster) -> None:
    """Skip a test where kube-scheduler takes no notice of DeviceTaintRules."""
    if cluster.kubernetes == "1.36":
        pytest.skip("kube-scheduler of 1.36 ignores DeviceTaintRules unless a gate is on")


def rule_taint(kube: client.KubeClient, driver: str) -> str | None:
    """Return the key of the taint of a driver's rule; None without a rule."""
    try:
        rule = kube.get(gvr.DEVICE_TAINT_RULES, f"ration-driver-{driver}")
    except errors.NotFound:
        return None
    return str(rule["spec"]["taint"]["key"])


@contextlib.contextmanager
def unprepared(
    kube: client.KubeClient, node: str, driver: str, kind: str, count: int
) -> Iterator[None]:
    """Publish devices of a driver on a node, with a class of its name; nothing prepares them."""
    devices = [{"name": f"{kind}-{index}", "attributes": {}} for index in range(count)]
    published = f"e2e-{kind}s"
    spec = objects.a_slice(node, devices, driver)["spec"]
    kube.create(gvr.RESOURCE_SLICES, {"metadata": {"name": published}, "spec": spec})
    expression = {"cel": {"expression": f'device.driver == "{driver}"'}}
    device_class = {"metadata": {"name": driver}, "spec": {"selectors": [expression]}}
    kube.create(gvr.DEVICE_CLASSES, device_class)
    try:
        yield
    finally:
        kube.delete(gvr.DEVICE_CLASSES, driver)
        kube.delete(gvr.RESOURCE_SLICES, published)
