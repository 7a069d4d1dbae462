import pytest

from driver.cel import selector
from driver.resources import quantity

DEVICE = selector.Device(
    "gpu.ration.dev",
    {
        "type": "gpu",
        "productName": "NVIDIA H100 80GB HBM3",
        "nvlinkPeers": 254,
        "driverVersion": b"580.105.8",
        "resource.kubernetes.io/pcieRoot": "pci0000:50",
    },
    {"memory": quantity.parse("81559Mi")},
)


def answer(expression: str) -> bool | selector.Failed:
    compiled = selector.compile_selector(expression)
    assert isinstance(compiled, selector.Selector), compiled
    return compiled.matches(DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.ration.dev"',
        'device.attributes["gpu.ration.dev"].type == "gpu"',
        'device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:50"',
        'device.attributes["gpu.ration.dev"].productName.lowerAscii().contains("h100")',
        'device.attributes["gpu.ration.dev"].productName.matches("^NVIDIA")',
        'has(device.attributes["gpu.ration.dev"].type)',
        '!("uuid" in device.attributes["gpu.ration.dev"])',
        'device.attributes["gpu.ration.dev"].?uuid.orValue("none") == "none"',
        'cel.bind(a, device.attributes["gpu.ration.dev"], a.type == "gpu")',
        'device.attributes["gpu.ration.dev"].nvlinkPeers > 0',
        "!device.allowMultipleAllocations",
        'device.capacity["gpu.ration.dev"].memory.compareTo(quantity("40Gi")) >= 0',
    ],
)
def test_what_kubernetes_accepts_is_true_here_too(expression: str) -> None:
    assert answer(expression) is True


def test_a_domain_the_device_lacks_is_an_empty_map() -> None:
    assert answer('has(device.attributes["other.example.com"].x)') is False


def test_an_unknown_attribute_is_a_run_time_error() -> None:
    failed = answer('device.attributes["gpu.ration.dev"].uuid == "x"')
    assert isinstance(failed, selector.Failed)
    assert "uuid" in failed.why


def test_a_version_is_never_equal_to_a_string() -> None:
    """As in Kubernetes, where it is a semver; comparing it needs a function we do not have yet."""
    assert answer('device.attributes["gpu.ration.dev"].driverVersion == "580.105.8"') is False
    failed = answer('device.attributes["gpu.ration.dev"].driverVersion > "580"')
    assert isinstance(failed, selector.Failed)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("device.driver ==", "Syntax error"),
        ('semver("1.2.3").isLessThan(semver("2.0.0"))', "semver"),
        ("'a'", "gives"),
        ("unknown == 1", "unknown"),
        ("'" + "x" * 10_300 + "' == device.driver", "longer than"),
    ],
)
def test_what_cannot_be_compiled_is_said_with_its_reason(expression: str, words: str) -> None:
    unusable = selector.compile_selector(expression)
    assert isinstance(unusable, selector.Unusable)
    assert words in unusable.why
