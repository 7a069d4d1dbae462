import pytest

from driver.devices import attributes
from driver.resources import quantities
from driver.resources.cel import selector

DEVICE = selector.Device(
    "gpu.ration.dev",
    {
        "type": "gpu",
        "productName": "NVIDIA H100 80GB HBM3",
        "nvlinkPeers": 254,
        "driverVersion": attributes.Version("580.105.8"),
        "ports": ("a", "b"),
        "resource.kubernetes.io/pcieRoot": "pci0000:50",
    },
    {"memory": quantities.parse("81559Mi")},
)


def answer(expression: str) -> bool | selector.EvaluationFailure:
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
def test_expressions_accepted_by_kubernetes_match_here_too(expression: str) -> None:
    assert answer(expression) is True


def test_a_domain_the_device_lacks_is_an_empty_map() -> None:
    assert answer('has(device.attributes["other.example.com"].x)') is False


def test_an_unknown_attribute_is_a_run_time_error() -> None:
    failed = answer('device.attributes["gpu.ration.dev"].uuid == "x"')
    assert isinstance(failed, selector.EvaluationFailure)
    assert "uuid" in failed.why


def test_a_version_is_never_equal_to_a_string() -> None:
    """Compare as in Kubernetes, where it is a semver."""
    assert answer('device.attributes["gpu.ration.dev"].driverVersion == "580.105.8"') is False
    failed = answer('device.attributes["gpu.ration.dev"].driverVersion > "580"')
    assert isinstance(failed, selector.EvaluationFailure)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("device.driver ==", "Syntax error"),
        ("device.memory == 1", "undefined field"),
        ("[1, 'a'].size() == 2", "several types"),
        ("'a'.matches('(')", "regular expression"),
        ("device == device", "device"),
        ("'a'", "gives"),
        ("unknown == 1", "unknown"),
        ("[1, 2].all(a, [1, 2].all(b, 'x'.matches(string(a))))", "may cost"),
        ("lists.range(1001).map(x, x).size() == 0", "makes a list"),
        ("'" + "x" * 10_300 + "' == device.driver", "longer than"),
    ],
)
def test_an_uncompilable_expression_reports_its_reason(expression: str, words: str) -> None:
    unusable = selector.compile_selector(expression)
    assert isinstance(unusable, selector.UnusableSelector)
    assert words in unusable.why


OWN = 'device.attributes["gpu.ration.dev"]'


@pytest.mark.parametrize(
    "expression",
    [
        f'{OWN}.driverVersion.isGreaterThan(semver("570.0.0"))',
        f"{OWN}.driverVersion.major() == 580",
        f'{OWN}.ports.includes("b") && {OWN}.type.includes("gpu")',
        f'{OWN}.ports.exists(port, port == "a")',
        f'{OWN}.productName.find("H[0-9]+") == "H100"',
        'cidr("10.0.0.0/8").containsIP("10.1.2.3")',
        'url("https://a.example.com/b").getHost() == "a.example.com"',
        'format.dns1123Label().validate("A").hasValue()',
        '[duration("1m"), duration("1s")].sum() == duration("61s")',
        "1 < 2.5",
    ],
)
def test_functions_of_kubernetes_are_there(expression: str) -> None:
    assert answer(expression) is True


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        ("true", set()),
        ('device.driver == "x"', {"driver"}),
        ("device.allowMultipleAllocations", {"allowMultipleAllocations"}),
        (f'{OWN}.type == "gpu"', {"gpu.ration.dev/type"}),
        (f'"uuid" in {OWN} || has({OWN}.type)', {"gpu.ration.dev/uuid", "gpu.ration.dev/type"}),
        (f'{OWN}[?"a"].hasValue()', {"gpu.ration.dev/a"}),
        ("device.attributes.?other.?b.hasValue()", {"other/b"}),
        (f"cel.bind(d, {OWN}, d.a == d.b)", {"gpu.ration.dev/a", "gpu.ration.dev/b"}),
        ('device.capacity["x.dev"].memory.isInteger()', {"x.dev/memory"}),
        ("[1].all(device, device == 1)", set()),
    ],
)
def test_the_attributes_read_by_an_expression_are_known(expression: str, reads: set[str]) -> None:
    compiled = selector.compile_selector(expression)
    assert isinstance(compiled, selector.Selector), compiled
    assert compiled.reads == frozenset(reads)


@pytest.mark.parametrize(
    "expression",
    [
        f"{OWN}.size() == 2",
        f'{OWN}.exists(k, k == "a")',
        f"{OWN}[device.driver] == 1",
        "device.attributes[device.driver].a == 1",
        "device.attributes.size() == 1",
        '"a" in device.attributes',
    ],
)
def test_an_expression_that_may_read_anything_says_so(expression: str) -> None:
    compiled = selector.compile_selector(expression)
    assert isinstance(compiled, selector.Selector), compiled
    assert compiled.reads is None


def test_half_a_surrogate_pair_is_no_selector() -> None:
    """JSON can write it, and the engine takes UTF-8."""
    compile_selector = selector.compile_selector('"\ud800" == ""')
    assert isinstance(compile_selector, selector.UnusableSelector)
    assert compile_selector.why == "is no Unicode text"
