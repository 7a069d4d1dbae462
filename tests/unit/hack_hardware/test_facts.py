"""Facts are kept a JSON object a line, and a bad line is named."""

import json
from pathlib import Path

import pytest

from driver import errors
from hack.hardware import facts


def test_a_fact_leaves_out_what_it_does_not_have() -> None:
    line = facts.Fact("nvml.gpu", "NVIDIA H200", gpu="GPU-1").line()
    assert json.loads(line) == {"fact": "nvml.gpu", "value": "NVIDIA H200", "gpu": "GPU-1"}


def test_a_fact_without_a_value_says_why() -> None:
    line = facts.Fact("mps.words", problem="no nvidia-cuda-mps-control").line()
    assert json.loads(line)["problem"] == "no nvidia-cuda-mps-control"


def test_facts_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / facts.FILE
    path.write_text("".join(f"{facts.Fact(name).line()}\n" for name in ("a.b", "c.d")))
    assert [fact["fact"] for fact in facts.read(path)] == ["a.b", "c.d"]


@pytest.mark.parametrize("line", ["{", "[]", '{"value": 1}', '{"fact": 7}'])
def test_a_line_that_is_no_fact_is_named_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / facts.FILE
    path.write_text(f"{facts.Fact('a.b').line()}\n{line}\n")
    with pytest.raises(errors.BadInput, match=r"facts\.jsonl:2"):
        list(facts.read(path))
