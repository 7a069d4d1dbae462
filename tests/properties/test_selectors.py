"""An answer depends on nothing outside what its selector says it reads."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from driver.devices import attributes
from driver.resources import quantities
from driver.resources.cel import selector

DOMAINS = ("own.dev", "other.dev")
NAMES = ("a", "b", "c")
_values = st.one_of(
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from(["", "x"]),
    st.sampled_from(["1.0.0", "2.0.0"]).map(attributes.Version),
    st.tuples(st.sampled_from(["x", "y"])),
)
_keys = st.sampled_from([*NAMES, *(f"{domain}/{name}" for domain in DOMAINS for name in NAMES)])
_amounts = st.sampled_from(["1", "2Gi"]).map(quantities.parse)
_devices = st.builds(
    selector.Device,
    st.sampled_from(DOMAINS),
    st.dictionaries(_keys, _values, max_size=5),
    st.dictionaries(_keys, _amounts, max_size=3),
    st.booleans(),
)
_maps = st.sampled_from(
    [f'device.{which}["{domain}"]' for which in ("attributes", "capacity") for domain in DOMAINS]
)
_reads = st.tuples(_maps, st.sampled_from(NAMES)).flatmap(
    lambda values: st.sampled_from(
        [
            f"has({values[0]}.{values[1]})",
            f'"{values[1]}" in {values[0]}',
            f'{values[0]}[?"{values[1]}"].hasValue()',
            f"dyn({values[0]}.{values[1]}) == dyn(1)",
            f"cel.bind(d, {values[0]}, has(d.{values[1]}) && dyn(d.{values[1]}) != dyn(true))",
            f'{values[0]}.?{values[1]}.optMap(v, dyn(v) == dyn("x")).orValue(false)',
            f'[1].exists(i, "{values[1]}" in {values[0]})',
            f"{values[0]}.size() > 1",
            f'{values[0]}.exists(k, k == "{values[1]}")',
        ]
    )
)
_plain = st.sampled_from(
    [
        "true",
        'device.driver == "own.dev"',
        "device.allowMultipleAllocations",
        'device.attributes[device.driver].?a.orValue("") == "x"',
        '"own.dev" in device.attributes',
    ]
)
_expressions = st.recursive(
    _reads | _plain,
    lambda below: st.tuples(below, st.sampled_from(["&&", "||"]), below).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=4,
)


def read_of(reads: frozenset[str], device: selector.Device) -> dict[str, object]:
    """Return what a device has of it, under full names."""
    result: dict[str, object] = {
        "driver": device.driver,
        "allowMultipleAllocations": device.allow_multiple,
    }
    for which, values in (("attributes", device.attributes), ("capacity", device.capacity)):
        for key, value in values.items():
            full = key if "/" in key else f"{device.driver}/{key}"
            result.setdefault(f"{which} {full}", value)
            if "/" in key:
                result[f"{which} {full}"] = value
    return {key: repr(entry) for key, entry in result.items() if key.rpartition(" ")[2] in reads}


def without_the_rest(reads: frozenset[str], device: selector.Device) -> selector.Device:
    """The device with all that is not read taken away or changed."""

    def kept(key: str) -> bool:
        return (key if "/" in key else f"{device.driver}/{key}") in reads

    return selector.Device(
        device.driver,
        {key: value for key, value in device.attributes.items() if kept(key)},
        {key: value for key, value in device.capacity.items() if kept(key)},
        device.allow_multiple if "allowMultipleAllocations" in reads else not device.allow_multiple,
    )


@settings(max_examples=200)
@given(expression=_expressions, device=_devices)
def test_attributes_that_are_not_read_change_no_verdict(
    expression: str, device: selector.Device
) -> None:
    compiled = selector.compile_selector(expression)
    assert isinstance(compiled, selector.Selector), compiled
    assume(compiled.reads is not None)
    assert compiled.reads is not None
    other = without_the_rest(compiled.reads, device)
    assert compiled.matches(device) == compiled.matches(other)


@settings(max_examples=200)
@given(expression=_expressions, devices=st.tuples(_devices, _devices))
def test_devices_that_read_the_same_get_the_same_answer(
    expression: str, devices: tuple[selector.Device, selector.Device]
) -> None:
    compiled = selector.compile_selector(expression)
    assert isinstance(compiled, selector.Selector), compiled
    assume(compiled.reads is not None)
    assert compiled.reads is not None
    device, other = devices
    assume(read_of(compiled.reads, device) == read_of(compiled.reads, other))
    assert compiled.matches(device) == compiled.matches(other)
