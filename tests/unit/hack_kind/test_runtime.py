"""The runtime for a machine that lacks a capability asks for what there is, and becomes runc."""

import json
from pathlib import Path

import pytest

from hack.kind import runtime

STATUS = "Name:\tx\nCapPrm:\t000001ffffffffff\nCapBnd:\t{}\n"


def test_capabilities_outside_the_bounding_set_are_missing() -> None:
    assert runtime.missing(STATUS.format("000001ffffffffff")) == frozenset()
    assert runtime.missing(STATUS.format("000001fffeffffff")) == {"CAP_SYS_RESOURCE"}


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["create", "--bundle", "/b", "id"], Path("/b/config.json")),
        (["--root", "/r", "create", "--bundle=/b", "id"], Path("/b/config.json")),
        (["exec", "--process", "/p", "id"], Path("/p")),
        (["exec", "-p", "/p", "id"], Path("/p")),
        (["delete", "id"], None),
    ],
)
def test_the_configuration_is_where_runc_looks_for_it(words: list[str], path: Path | None) -> None:
    assert runtime.configuration(words) == path


def test_a_container_and_a_process_in_one_ask_for_nothing_that_is_missing() -> None:
    process = {"capabilities": {"bounding": ["CAP_KILL", "CAP_BPF"], "ambient": ["CAP_BPF"]}}
    expected = {"bounding": ["CAP_KILL"], "ambient": []}
    for document in ({"process": process, "root": {}}, process):
        changed = runtime.without(json.loads(json.dumps(document)), {"CAP_BPF"})
        assert changed.get("process", changed)["capabilities"] == expected


def test_it_is_a_program_of_the_standard_library_alone() -> None:
    text = runtime.render("/usr/bin/python3")
    assert text.startswith("#!/usr/bin/python3 -IS\n")
    assert "from hack" not in text


def test_runc_gets_the_same_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "runc"
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    called: list[tuple[str, list[str]]] = []
    runtime.main(["delete", "id"], lambda path, words: called.append((path, words)))
    assert called == [(str(program), ["runc", "delete", "id"])]
