import json
from pathlib import Path

from tests.chaos import logs


def test_errors_are_counted_by_component_and_event() -> None:
    reported = logs.Told()
    lines = [json.dumps({"level": level, "event": "no"}) for level in ("error", "info", "error")]
    logs.judge("plugin", [*lines, "not JSON"], reported)
    assert reported.errors == {"plugin: no": 2}
    assert reported.unheard == []


def test_a_traceback_is_never_to_be_said() -> None:
    reported = logs.Told()
    logs.judge("plugin", ["Traceback (most recent call last):"], reported)
    assert reported.unheard == ["plugin: Traceback (most recent call last):"]


def test_a_call_of_the_kubelets_fails_only_for_causes_that_are_faults() -> None:
    reported = logs.Told()
    causes = (
        "write x: [Errno 28] No space left on device",
        "set the time slice of GPU-1: exit 15: GPU is lost. Reboot the system",
        "run nvidia-smi: Invalid argument",
    )
    failed = [{"event": "claim failed", "call": "prepare", "error": cause} for cause in causes]
    logs.judge("plugin", [json.dumps(entry) for entry in failed], reported)
    assert reported.errors == {"plugin: claim failed": 3}
    assert reported.unheard == ["plugin: prepare failed: run nvidia-smi: Invalid argument"]


def test_a_log_is_read_on_from_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    reader = logs.Logs({"plugin.node-0": lambda: path})
    assert reader.read().errors == {}
    path.write_text('{"level": "error", "event": "a"}\n{"level": "error", ')
    assert reader.read().errors == {"plugin: a": 1}
    with path.open("a") as file:
        file.write('"event": "b"}\n')
    assert reader.read().errors == {"plugin: b": 1}
