import re

import pytest

from simulator import profile


def changed(pattern: str, replacement: str) -> str:
    """The text of hgx-h100 with one thing changed."""
    text = profile.text_of("hgx-h100")
    new = re.sub(pattern, replacement, text, count=1)
    assert new != text
    return new


@pytest.mark.parametrize("name", profile.names())
def test_every_machine_of_the_house_is_possible(name: str) -> None:
    assert profile.load(name).gpus


@pytest.mark.parametrize(
    ("pattern", "replacement", "words"),
    [
        ("0000:64:00.0", "0000:53:00.0", "PCI address 0000:53:00.0 is taken twice"),
        ("0000:07:00.0", "0000:53:00.0", "PCI address 0000:53:00.0 is taken twice"),
        ("minor: 1", "minor: 0", "minor 0 is taken twice"),
        ("module: 5", "module: 7", "module 7 is taken twice"),
        ("minor: 7", "minor: 254", "gpus.7.minor: Input should be less than or equal to 253"),
        ("0000:61", "0000:9f", "GPU 0000:64:00.0 cannot lie behind host bridge 0000:9f"),
        ("0000:94", "0000:50", "host bridge 0000:50 belongs to two NUMA nodes"),
        ("product: h100-sxm", "product: h1000", "no product 'h1000' is described"),
        (
            r"nvswitches:\n.*\n.*\n",
            "",
            "NVLinks end at switches or a bridge, and the machine has none",
        ),
        ('"9.0"', '"8.0"', "compute capability 8.0 is not one of HOPPER"),
        ("reserved: 480", "reserved: 81559", "reserved memory leaves nothing"),
        ("min: 200", "min: 701", "power limits do not nest"),
        ("HOPPER", "PASCAL", "expected one of TURING, AMPERE, ADA, HOPPER, BLACKWELL"),
        ("ecc: true", "ecc: 1", "products.h100-sxm.ecc: Input should be a valid boolean"),
        ("ecc: true", "ecc: true\n    wings: 2", "products.h100-sxm.wings: Extra inputs"),
        ("links: 18", "links: 19", "nvlink.links: Input should be less than or equal to 18"),
        (
            "version: 580.105.08",
            "version: 470.57.02",
            "driver 470.57.02 does not know its GPUs: it takes 515",
        ),
        ("remap_banks: 2560", "remap_banks: 0", "0 banks to remap rows in"),
        ("bar1_mib: 131072", "bar1_mib: 131073", "a BAR1 of 131073 MiB is not a power of two"),
        ("generation: 4", "generation: 5", "HOPPER does not have NVLink 5"),
        ("memory_slices: 8", "memory_slices: 4", "MIG profile 1_SLICE_REV2: expected one of"),
        ("memory_slices: 8", "memory_slices: 5", "mig.memory_slices: Input should be 4, 8 or 12"),
        ("1_SLICE:", "8_SLICE:", "MIG without the profile 1_SLICE"),
        ("3_SLICE:", "5_SLICE:", "MIG profile 5_SLICE: expected one of 1_SLICE"),
        ("name: 2g.20gb", "name: 3g.20gb", "MIG profile 2_SLICE: 3g.20gb does not have 2 slices"),
        ("name: 1g.20gb", "name: 1g.10gb", "MIG name 1g.10gb is taken twice"),
        ("memory_mib: 40448", "memory_mib: 41000", "41000 MiB do not fit into its memory slices"),
        ("fabric:", "virtualization: VGPU\nfabric:", "a vGPU guest has no NVSwitches"),
        ("module: 7, numa: 0", "module: 7, numa: 0, bridge: b", "bridge, and the machine has both"),
        (
            "module: 7, numa: 0",
            "module: 7, numa: 0, bridge: b",
            "bridge b joins 1 GPUs: it joins 2",
        ),
        (r"    nvlink: .*\n", "", "a fabric takes NVLink and Hopper or newer"),
        ("description", "[", "not YAML"),
    ],
)
def test_an_impossible_machine_is_refused_with_the_reason(
    pattern: str, replacement: str, words: str
) -> None:
    with pytest.raises(profile.ImpossibleMachineError, match=re.escape(words)) as refused:
        profile.parse("broken", changed(pattern, replacement))
    assert refused.value.machine == "broken"


def test_a_bridge_between_gpus_without_nvlink_is_refused() -> None:
    text = re.sub(r"    nvlink: .*\n", "", profile.text_of("a30-bridged"))
    with pytest.raises(profile.ImpossibleMachineError, match="a bridge, and no NVLink"):
        profile.parse("broken", text)


@pytest.mark.parametrize("name", ["dgx-1000", "../machine", "missing.yaml", ""])
def test_an_unknown_machine_is_refused_with_the_known_names(name: str) -> None:
    with pytest.raises(profile.UnknownMachineError, match="hgx-h100"):
        profile.load(name)
