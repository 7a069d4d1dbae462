"""Tests of what nvidia-smi says of the ways between GPUs."""

import pytest

from simulator import machine, profile
from simulator.smi import command, selection

NOW = "Sat Nov 21 15:00:00 2026"


def said(name: str, line: str) -> str:
    nvml = selection.Nvml(machine.build(name, seed="node-1"))
    nvml.init()
    answer = command.run(nvml, line.split(), NOW)
    assert answer.status == 0
    return answer.text


def matrix(name: str) -> list[list[str]]:
    lines = said(name, "topo -m").splitlines()
    return [line.split("\t") for line in lines if line.startswith("GPU")]


def test_switched_gpus_reach_each_other_by_all_their_links() -> None:
    rows = matrix("hgx-h100")
    assert rows[0][1:9] == [" X ", *["NV18"] * 7]
    assert (rows[0][9:11], rows[4][9:11]) == (["0-31", "0"], ["32-63", "1"])


def test_bridged_gpus_reach_their_pair_by_links_and_the_others_over_the_bus() -> None:
    rows = matrix("a30-bridged")
    assert [row[1:5].count("NV4") for row in rows] == [1, 1, 1, 1]
    assert {way for row in rows for way in row[1:5]} <= {" X ", "NV4", "NODE", "SYS", "PHB"}


@pytest.mark.parametrize("name", profile.names())
def test_the_matrix_is_symmetric_on_every_machine(name: str) -> None:
    rows = matrix(name)
    ways = [row[1 : len(rows) + 1] for row in rows]
    assert ways == [list(column) for column in zip(*ways, strict=True)]


def test_each_link_has_its_speed_and_its_abilities() -> None:
    status = said("hgx-h100", "nvlink -i 0 -s").splitlines()
    assert len(status) == 1 + 18
    assert status[1] == "\t Link 0: 26.562 GB/s"
    abilities = said("hgx-h100", "nvlink -i 0 -c").splitlines()
    assert abilities[1] == "\t Link 0, P2P is supported: true"
    assert len(abilities) == 1 + 18 * 6


def test_gpus_without_links_are_left_out() -> None:
    assert said("l4", "nvlink -s") == ""
