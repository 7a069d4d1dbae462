"""Tests of what the minimal driver keeps of claims, and what it refuses."""

import json
from pathlib import Path

import pytest

from tests.blackbox.minimal import api, state

ONE = [api.Given("one", "node-0", "thing-0")]
LOOKED_AT = [api.Given("one", "node-0", "thing-0", admin=True)]
OTHER = [api.Given("one", "node-0", "thing-1")]


@pytest.fixture
def kept(tmp_path: Path) -> state.State:
    made = state.State(tmp_path / "state", tmp_path / "cdi", "a.example.com")
    made.repair()
    return made


def specs(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "cdi").iterdir()}


def test_a_device_of_another_claim_is_refused_until_that_is_let_go(kept: state.State) -> None:
    kept.prepare("a", ONE)
    with pytest.raises(api.Refused, match="thing-0 is still held by claim a"):
        kept.prepare("b", ONE)
    kept.prepare("c", OTHER)
    kept.unprepare("a")
    kept.prepare("b", ONE)


def test_a_device_that_is_looked_at_is_held_by_nobody(kept: state.State) -> None:
    kept.prepare("admin", LOOKED_AT)
    kept.prepare("a", ONE)
    kept.prepare("another-admin", LOOKED_AT)


def test_what_is_prepared_twice_is_the_same_and_let_go_twice_is_no_failure(
    kept: state.State, tmp_path: Path
) -> None:
    kept.prepare("a", ONE)
    before = (tmp_path / "cdi" / "a.example.com-a.json").read_bytes()
    kept.prepare("a", ONE)
    assert (tmp_path / "cdi" / "a.example.com-a.json").read_bytes() == before
    assert "THING_THING_0=thing-0" in json.dumps(json.loads(before))
    kept.unprepare("a")
    kept.unprepare("a")
    assert specs(tmp_path) == set()


def test_lost_specs_are_written_again_and_damaged_records_are_passed_over(
    kept: state.State, tmp_path: Path
) -> None:
    kept.prepare("a", ONE)
    (tmp_path / "cdi" / "a.example.com-a.json").unlink()
    (tmp_path / "state" / "b.json").write_text('{"half')
    kept.repair()
    assert specs(tmp_path) == {"a.example.com-a.json"}
