"""Drawing capacities of devices, their request policies, and what requests ask of them."""

import random  # noqa: TID251 - the same scenario for the same seed
from typing import Any

Raw = dict[str, Any]
OTHER = "example.org/bandwidth"


def of_device(chance: random.Random, *, shared: bool) -> Raw:
    """Memory, cores and bandwidth, or some of them; policies only where a device is shared."""
    result: Raw = {}
    if chance.random() < 0.9:
        result["memory"] = {"value": chance.choice(("80Gi", "80Gi", "40Gi"))}
    if chance.random() < 0.4:
        result["cores"] = {"value": chance.choice(("8", "4", "1"))}
    if chance.random() < 0.2:
        result[OTHER] = {"value": chance.choice(("100G", "10G"))}
    if shared:
        for name, capacity in result.items():
            policy = _policy(chance, name, capacity["value"])
            if policy is not None:
                capacity["requestPolicy"] = policy
    return result


def _policy(chance: random.Random, name: str, value: str) -> Raw | None:
    if name == "memory":
        return chance.choice((None, *_memory_policies(value)))
    if name == "cores" and value != "1":
        return chance.choice(
            (
                None,
                {"default": "1", "validValues": ["1", "2", "4"]},
                {"default": "1", "validRange": {"min": "1", "step": "1"}},
                {"default": "500m", "validRange": {"min": "500m", "max": "3", "step": "500m"}},
                {"default": "100m", "validValues": ["100m", "1500m", "4"]},
            )
        )
    if name == "cores":
        return chance.choice(
            (None, {"default": "250m", "validRange": {"min": "250m", "step": "250m"}})
        )
    return chance.choice((None, {"default": "1G"}, {"default": "0"}))


def _memory_policies(value: str) -> tuple[Raw, ...]:
    return (
        {"default": "10Gi"},
        {"default": "20Gi", "validValues": ["10Gi", "20Gi", "40Gi"]},
        {"default": "10Gi", "validRange": {"min": "5Gi"}},
        {"default": "10Gi", "validRange": {"min": "10Gi", "max": "30Gi", "step": "10Gi"}},
        {"default": "11Gi", "validRange": {"min": "5Gi", "max": value, "step": "1Gi"}},
        {"default": "8Gi", "validRange": {"min": "2Gi", "step": "3Gi"}},
        {"default": "0", "validValues": ["0", "16Gi", "32Gi"]},
    )


def draw_amounts(chance: random.Random, driver: str) -> Raw:
    """`capacity.requests` of a request: mostly what devices have, by the name they call it."""
    result: Raw = {}
    if chance.random() < 0.85:
        result["memory"] = chance.choice(
            (
                "10Gi",
                "10Gi",
                "10Gi",
                "20Gi",
                "20Gi",
                "25Gi",
                "40Gi",
                "1Gi",
                "4Gi",
                "6Gi",
                "80Gi",
                "0",
            )
        )
    if chance.random() < 0.15:
        result["cores"] = chance.choice(("1", "2", "3", "600m", "1500m", "4"))
    if chance.random() < 0.05:
        result[OTHER] = chance.choice(("1G", "10G", "50G"))
    if chance.random() < 0.04:
        result[f"{driver}/memory"] = "10Gi"
    if chance.random() < 0.02:
        result["wings"] = "2"
    return {"requests": result or {"memory": "10Gi"}}
