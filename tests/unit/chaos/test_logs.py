import json
from pathlib import Path

from tests.chaos import logs


def test_errors_are_counted_by_component_and_event() -> None:
    told = logs.Told()
    lines = [json.dumps({"level": level, "event": "no"}) for level in ("error", "info", "error")]
    logs.judge("plugin", [*lines, "not JSON"], told)
    assert told.errors == {"plugin: no": 2}
    assert told.unheard == []


def test_a_traceback_is_never_to_be_said() -> None:
    told = logs.Told()
    logs.judge("plugin", ["Traceback (most recent call last):"], told)
    assert told.unheard == ["plugin: Traceback (most recent call last):"]


def test_a_call_of_the_kubelets_fails_only_for_causes_that_are_faults() -> None:
    told = logs.Told()
    causes = (
        "write x: [Errno 28] No space left on device",
        "set the time slice of GPU-1: exit 15: GPU is lost. Reboot the system",
        "run nvidia-smi: Invalid argument",
    )
    failed = [{"event": "claim failed", "call": "prepare", "error": one} for one in causes]
    logs.judge("plugin", [json.dumps(one) for one in failed], told)
    assert told.errors == {"plugin: claim failed": 3}
    assert told.unheard == ["plugin: prepare failed: run nvidia-smi: Invalid argument"]


def test_a_log_is_read_on_from_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    reader = logs.Logs({"plugin.node-0": lambda: path})
    assert reader.read().errors == {}
    path.write_text('{"level": "error", "event": "a"}\n{"level": "error", ')
    assert reader.read().errors == {"plugin: a": 1}
    with path.open("a") as file:
        file.write('"event": "b"}\n')
    assert reader.read().errors == {"plugin: b": 1}
