"""The page shows every row: what was seen of it, or why nothing was."""

from pathlib import Path
from typing import Any

from hack.hardware import page, rows

EVIDENCE = """| Fact | Standing |
|---|---|
| Time-slice by `nvidia-smi` works | assumed |
| Idle power of a board | assumed |
| A killed server takes its clients | assumed |
"""


def fact(name: str, value: object = None, **more: object) -> dict[str, Any]:
    location = {"driver": "580.95", "simulated": False, "at": "2026-11-24T10:00:00+00:00"}
    return {"fact": name, "value": value, **location, **more}


def rendered(tmp_path: Path, *seen: dict[str, Any]) -> list[str]:
    evidence = tmp_path / "evidence.md"
    evidence.write_text(EVIDENCE)
    return page.render(seen, evidence).splitlines()


def test_a_row_is_beside_the_facts_that_decide_it(tmp_path: Path) -> None:
    lines = rendered(tmp_path, fact("slice.set-long", 0), fact("mps.words", "elsewhere"))
    assert "| Time-slice by `nvidia-smi` works | slice.set-long: `0` |" in lines


def test_a_fact_that_could_not_be_had_says_why(tmp_path: Path) -> None:
    lines = rendered(tmp_path, fact("slice.set-long", problem="no | nvidia-smi"))
    assert "slice.set-long: *no \\| nvidia-smi*" in "\n".join(lines)


def test_rows_without_facts_say_why(tmp_path: Path) -> None:
    lines = rendered(tmp_path)
    assert "## Not seen (3 of 3)" in lines
    assert f"| Idle power of a board | {rows.OPEN['Idle power']} |" in lines
    assert "| A killed server takes its clients | its step was not run |" in lines


def test_a_simulated_machine_is_called_that(tmp_path: Path) -> None:
    gpu = fact("nvml.gpu", "NVIDIA H100 80GB HBM3")
    real = rendered(tmp_path, gpu)
    fake = rendered(tmp_path, {**gpu, "simulated": True})
    assert "- NVIDIA H100 80GB HBM3, driver 580.95, 2026-11-24" in real
    assert any(line.endswith("(simulated: nothing here is seen on hardware)") for line in fake)
