"""The tool comes to its end on every simulated machine, at every level."""

from pathlib import Path

import pytest

from hack.hardware import __main__ as program
from hack.hardware import facts, page, runner
from simulator import layout, profile
from tests.contract import worlds

pytestmark = pytest.mark.timeout(400)


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
