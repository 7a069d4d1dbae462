"""Claims that share GPUs, for tests of the allocator: shares, their holders, their settings."""

from typing import Any

from driver import names
from driver.resources.dra import claims
from tests.support import snapshots
from tests.support.builders import objects

MPS, TURNS = names.SHARING_MPS, names.SHARING_TIME_SLICING
OPEN = objects.a_config(crossNamespace=True)
"""Configuration of a class that lets namespaces meet."""


def turns(interval: str) -> objects.Raw:
    """Time-slicing with this interval."""
    sharing = {"strategy": "TimeSlicing", "timeSlicing": {"interval": interval}}
    return objects.a_config(sharing=sharing)


def mps(*requests: str, kind: str = "GpuConfig", **settings: Any) -> objects.Raw:
    """MPS with these settings."""
    return objects.a_config(kind, *requests, sharing={"strategy": "MPS", "mps": settings})


def part(name: str = "part", count: int = 1, device_class: str = snapshots.ANY) -> objects.Raw:
    """A request for parts of shared GPUs."""
    text = f'device.attributes["{snapshots.DRIVER}"].type == "gpu-share"'
    return objects.a_request(name, count, text, deviceClassName=device_class)


def holder(
    name: str,
    device: str,
    *configs: objects.Raw,
    namespace: str = "default",
    from_class: bool = False,
    node: str = "node-a",
) -> claims.Claim:
    """A claim that has 8Gi of a shared GPU of a node."""
    number = int(objects.uid_of(f"{namespace}/{name}")[:8], 16)
    source = "FromClass" if from_class else "FromClaim"
    results = [{"source": source, **config} for config in configs]
    status = objects.allocated(node, objects.a_share(device, number, memory="8Gi"))
    status["allocation"]["devices"]["config"] = results
    return objects.claim(name, status=status, namespace=namespace)


def containers(*used: tuple[str, ...]) -> list[objects.Raw]:
    """A container for each group of claims, each `claim` or `claim/request`."""
    return [
        {"name": f"c{index}", "resources": {"claims": [_entry(name) for name in group]}}
        for index, group in enumerate(used)
    ]


def _entry(name: str) -> objects.Raw:
    claim, _, request = name.partition("/")
    return {"name": claim, "request": request} if request else {"name": claim}
