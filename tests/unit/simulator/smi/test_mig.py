"""nvidia-smi mig: tables as captured, and instances made and destroyed."""

import pytest

from simulator import codes, machine
from simulator.smi import command, selection


@pytest.fixture
def nvml() -> selection.Nvml:
    """GPU 0 of eight with MIG on."""
    created = selection.Nvml(machine.build("hgx-h100", seed="node-1"))
    created.init()
    assert run(created, "-mig 1 -i 0")[0] == 0
    return created


def run(nvml: selection.Nvml, line: str) -> tuple[int, str]:
    answer = command.run(nvml, line.split(), "")
    return answer.status, answer.text


def said(nvml: selection.Nvml, line: str) -> list[str]:
    status, text = run(nvml, line)
    assert status == 0, text
    return text.splitlines()


def test_profiles_are_listed_small_ones_first_in_the_columns_captured(nvml: selection.Nvml) -> None:
    lines = said(nvml, "mig -lgip")
    assert {len(line) for line in lines} == {81}
    names = [line.split()[3] for line in lines if "MIG" in line]
    assert names == ["1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"]
    assert lines[5] == (
        "|   0  MIG 1g.10gb         19     7/7         9.75      No     16     1     0   |"
    )
    assert lines[6] == (
        "|                                                               1     1     0   |"
    )


def test_placements_are_listed(nvml: selection.Nvml) -> None:
    lines = said(nvml, "mig -i 0 -lgipp")
    assert "GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1" in lines
    assert "GPU  0 Profile ID  5 Placement : {0}:4" in lines


def test_instances_are_made_by_id_name_and_place_and_listed(nvml: selection.Nvml) -> None:
    gpu_instance = "Successfully created GPU instance ID {} on GPU  0 using profile MIG {}"
    compute = "Successfully created compute instance ID  0 on GPU  0 GPU instance ID {}"
    assert said(nvml, "mig -cgi 9,1g.10gb:5 -C") == [
        gpu_instance.format(" 1", "3g.40gb (ID  9)"),
        compute.format(" 1") + " using profile MIG 3g.40gb (ID  2)",
        gpu_instance.format("12", "1g.10gb (ID 19)"),
        compute.format("12") + " using profile MIG 1g.10gb (ID  0)",
    ]
    listed = said(nvml, "mig -lgi")
    assert {len(line) for line in listed} == {59}
    assert "|   0  MIG 1g.10gb           19       12          5:1     |" in listed
    assert "|   0  MIG 3g.40gb            9        1          0:4     |" in listed
    parts = said(nvml, "mig -lci -gi 1")
    assert parts[6] == "|   0      1       MIG 3g.40gb          2         0          0:3     |"
    assert [line for line in parts if "1g.10gb" in line] == []


def test_a_part_of_a_gpu_instance_is_made_and_told(nvml: selection.Nvml) -> None:
    said(nvml, "mig -cgi 3g.40gb")
    said(nvml, "mig -cci 1c.3g.40gb,0 -gi 1")
    lines = said(nvml, "mig -lcip -gi 1")
    assert {len(line) for line in lines} == {88}
    assert lines[6] == (
        "|   0      1       MIG 1c.3g.40gb       0      1/3           20        3     0     0   |"
    )
    assert any("MIG 3g.40gb          2*     0/1" in line for line in lines)


def test_buildings_go_before_the_land(nvml: selection.Nvml) -> None:
    said(nvml, "mig -cgi 19,19 -C")
    status, text = run(nvml, "mig -dgi")
    assert status == codes.Return.IN_USE
    assert text == (
        "Unable to destroy GPU instance ID  7 from GPU  0: In use by another client\n"
        "Failed to destroy GPU instances: In use by another client\n"
    )
    assert said(nvml, "mig -dci -gi 7") == [
        "Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  7"
    ]
    assert said(nvml, "mig -dgi -gi 7") == ["Successfully destroyed GPU instance ID  7 from GPU  0"]
    said(nvml, "mig -dci")
    said(nvml, "mig -dgi")
    assert run(nvml, "mig -lgi") == (6, "No GPU instances found: Not Found\n")
    assert run(nvml, "mig -dci") == (6, "No compute instances found: Not Found\n")


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("mig -cgi 0,19", 23, "on GPU  0 using profile 19: Insufficient Resources"),
        ("mig -cgi 19:7", 2, "Failed to create GPU instances: Invalid Argument"),
        ("mig -cgi 19:x", 2, "Failed to create GPU instances: Invalid Argument"),
        ("mig -cgi 9g.90gb", 2, "Unable to find profile 9g.90gb on GPU  0: Invalid Argument"),
        ("mig -lgip -i 1", 6, "No MIG-enabled devices found."),
        ("mig", 2, "mig takes a command."),
        ("mig -cgi", 2, 'Option "-cgi" is missing its value.'),
    ],
)
def test_refusals_have_words(nvml: selection.Nvml, line: str, code: int, words: str) -> None:
    status, text = run(nvml, line)
    assert status == code
    assert words in text
