"""Tests of what the minimal driver keeps of claims, and what it refuses."""

import json
from pathlib import Path

import pytest

from tests.blackbox.minimal import api, state

ONE = [api.Given("one", "node-0", "thing-0")]
LOOKED_AT = [api.Given("one", "node-0", "thing-0", admin=True)]
OTHER = [api.Given("one", "node-0", "thing-1")]


@pytest.fixture
def driver_state(tmp_path: Path) -> state.State:
    created = state.State(tmp_path / "state", tmp_path / "cdi", "a.example.com")
    created.repair()
    return created


def specs(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "cdi").iterdir()}


def test_a_device_of_another_claim_is_refused_until_that_is_let_go(
    driver_state: state.State,
) -> None:
    driver_state.prepare("a", ONE)
    with pytest.raises(api.Refused, match="thing-0 is still held by claim a"):
        driver_state.prepare("b", ONE)
    driver_state.prepare("c", OTHER)
    driver_state.unprepare("a")
    driver_state.prepare("b", ONE)


def test_a_device_that_is_looked_at_is_held_by_nobody(driver_state: state.State) -> None:
    driver_state.prepare("admin", LOOKED_AT)
    driver_state.prepare("a", ONE)
    driver_state.prepare("another-admin", LOOKED_AT)


def test_prepare_and_unprepare_are_idempotent(driver_state: state.State, tmp_path: Path) -> None:
    driver_state.prepare("a", ONE)
    previous = (tmp_path / "cdi" / "a.example.com-a.json").read_bytes()
    driver_state.prepare("a", ONE)
    assert (tmp_path / "cdi" / "a.example.com-a.json").read_bytes() == previous
    assert "THING_THING_0=thing-0" in json.dumps(json.loads(previous))
    driver_state.unprepare("a")
    driver_state.unprepare("a")
    assert specs(tmp_path) == set()


def test_lost_specs_are_written_again_and_damaged_records_are_passed_over(
    driver_state: state.State, tmp_path: Path
) -> None:
    driver_state.prepare("a", ONE)
    (tmp_path / "cdi" / "a.example.com-a.json").unlink()
    (tmp_path / "state" / "b.json").write_text('{"half')
    driver_state.repair()
    assert specs(tmp_path) == {"a.example.com-a.json"}
