"""The tool comes to its end on every simulated machine, at every level."""

import os
from pathlib import Path

import pytest

from driver.runtime.files import driver_programs, driver_search
from hack.hardware import __main__ as program
from hack.hardware import facts, page, runner
from simulator import layout, layouts, profile
from tests.contract import worlds

pytestmark = pytest.mark.timeout(400)
STEPS_WITH_PROGRAMS = ("programs", "inventory", "files", "mps-words", "time-slice", "reset")


@pytest.mark.parametrize("machine", profile.names())
def test_every_step_ends_on_each_simulated_machine(machine: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with worlds.running(tmp_path / "world", machine):
        world = layout.Layout(tmp_path / "world")
        places = [f"--driver-root={world.driver_root}", f"--host-root={world.host_root}"]
        status = program.main(["--level", "own", "--out", str(out), *places])
    seen = list(facts.read(out / facts.FILE))
    failed = [fact for fact in seen if fact["fact"].partition(".")[0] in {"step", "undo"}]
    assert (status, failed) == (0, [])
    assert all(fact["simulated"] for fact in seen)
    assert (out / runner.ARCHIVE).is_file()
    assert "(simulated: nothing here is seen on hardware)" in page.render(seen)


@pytest.mark.skipif(os.geteuid() != 0, reason="programs of the driver are run by root")
@pytest.mark.parametrize("location", layouts.PLACES)
def test_the_drivers_programs_run_where_the_driver_is_a_folder_of_its_hosts(
    location: str, tmp_path: Path
) -> None:
    out, host = tmp_path / "out", layout.Layout(tmp_path / "world").host_root
    with worlds.running(tmp_path / "world", "hgx-h100", location):
        smi = driver_programs.find_program(driver_search.build_search("auto", host), "nvidia-smi")
        chosen = [f"--step={step}" for step in STEPS_WITH_PROGRAMS]
        words = ["--level", "own", "--out", str(out), f"--host-root={host}", *chosen]
        status = program.main(words)
    assert (smi.root, smi.path) == (
        host,
        f"/{layouts.PLACES[location].folder}/{layouts.PLACES[location].programs}/nvidia-smi",
    )
    seen = {fact["fact"]: fact for fact in facts.read(out / facts.FILE)}
    failed = [name for name in seen if name.partition(".")[0] in {"step", "undo"}]
    assert (status, failed) == (0, [])
    assert seen["nvml.inventory"]["value"] == 8
    assert seen["smi.list"]["value"] == 0
    assert seen["mps.starts"]["value"] is True, seen["mps.starts"]
    assert seen["mps.exit-status-after-quit"]["value"] == 0
    assert "problem" not in seen["slice.Long"], seen["slice.Long"]
    assert "problem" not in seen["reset.done"], seen["reset.done"]
    assert seen["slice.Long-listed"]["value"] == 0
