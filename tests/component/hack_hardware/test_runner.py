"""Steps are processes with a limit: a hang costs a step its facts, never its undo."""

import json
import sys
import tarfile
from pathlib import Path

from hack.hardware import facts, machine, runner, steps

_PROGRAM = """
import json, pathlib, sys, time
name, undo = sys.argv[2], sys.argv[-1] == "--undo"
out = pathlib.Path(next(w for w in sys.argv if w.startswith("--out=")).partition("=")[2])
if undo:
    (out / f"undone-{name}").touch()
    sys.exit(3 if name == "stubborn" else 0)
print(json.dumps({"fact": f"{name}.first", "value": 1}), flush=True)
if name == "hangs":
    time.sleep(60)
if name == "fails":
    sys.exit("NVML: unknown error")
"""


def nothing(_: machine.Machine) -> None:
    """An undo; the program under test has its own."""


def a_step(name: str, limit_s: float = 20.0, *, undone: bool = False) -> steps.Step:
    def act(_: machine.Machine) -> list[facts.Fact]:
        """Read a fact."""
        return []

    return steps.Step(name, "own", limit_s, act, nothing if undone else None)


def run(tmp_path: Path, *chosen: steps.Step) -> tuple[int, dict[str, dict[str, object]]]:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    target = machine.Machine(tmp_path / "out", tmp_path / "driver", tmp_path / "host")
    messages: list[str] = []
    failed = runner.Runner(target, (sys.executable, str(program)), messages.append).run(chosen)
    seen = list(facts.read(target.out / facts.FILE))
    assert all({"step", "driver", "simulated", "at"} <= set(fact) for fact in seen)
    return failed, {fact["fact"]: fact for fact in seen}


def test_the_facts_before_a_hang_are_kept_and_its_change_is_undone(tmp_path: Path) -> None:
    failed, seen = run(tmp_path, a_step("hangs", 1.0, undone=True), a_step("after"))
    assert failed == 1
    assert set(seen) == {"hangs.first", "step.hangs", "after.first"}
    assert "killed after 1 s" in str(seen["step.hangs"]["problem"])
    assert (tmp_path / "out" / "undone-hangs").exists()


def test_a_step_that_fails_leaves_its_words(tmp_path: Path) -> None:
    failed, seen = run(tmp_path, a_step("fails"))
    assert failed == 1
    assert "NVML: unknown error" in str(seen["step.fails"]["problem"])


def test_a_change_that_cannot_be_undone_fails_the_run(tmp_path: Path) -> None:
    failed, seen = run(tmp_path, a_step("stubborn", undone=True))
    assert failed == 1
    assert "undo.stubborn" in seen


def test_all_of_it_is_in_the_archive(tmp_path: Path) -> None:
    run(tmp_path, a_step("fails"))
    with tarfile.open(tmp_path / "out" / runner.ARCHIVE) as archive:
        lines = archive.extractfile(facts.FILE)
        assert lines is not None
        assert json.loads(lines.readline())["fact"] == "fails.first"
        assert "raw/fails-stderr.txt" in archive.getnames()
