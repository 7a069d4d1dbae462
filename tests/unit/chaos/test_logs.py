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


def test_a_log_is_read_on_from_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    reader = logs.Logs({"plugin.node-0": lambda: path})
    assert reader.read().errors == {}
    path.write_text('{"level": "error", "event": "a"}\n{"level": "error", ')
    assert reader.read().errors == {"plugin: a": 1}
    with path.open("a") as file:
        file.write('"event": "b"}\n')
    assert reader.read().errors == {"plugin: b": 1}
