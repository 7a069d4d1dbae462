import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from driver.runtime import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_our_records_and_those_of_libraries_are_json_alike(stream: io.StringIO) -> None:
    logs.configure("info", stream)
    structlog.get_logger("driver.kube").info("claim prepared", claim="ns/c", devices=2)
    logging.getLogger("grpc").warning("library says %s", "so")
    ours, theirs = lines(stream)
    assert (ours["event"], ours["claim"], ours["devices"]) == ("claim prepared", "ns/c", 2)
    assert (theirs["event"], theirs["logger"]) == ("library says so", "grpc")
    assert set(theirs) == {"event", "level", "logger", "timestamp"}


def test_records_below_the_level_are_not_written(stream: io.StringIO) -> None:
    logs.configure("warning", stream)
    structlog.get_logger("driver").info("a step")
    logging.getLogger("grpc").info("a step")
    assert stream.getvalue() == ""


def test_an_exception_is_one_record_with_its_traceback(stream: io.StringIO) -> None:
    logs.configure("info", stream)
    try:
        int("out of luck")
    except ValueError:
        structlog.get_logger("driver").exception("thread died", thread="worker")
    (record,) = lines(stream)
    assert "out of luck" in str(record["exception"])


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of debug"):
        logs.configure("loud")
