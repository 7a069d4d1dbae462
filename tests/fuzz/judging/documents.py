"""Documents that settings name by path, from their bytes to their model."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pydantic

from driver.api import managed_drivers, node_shapes, workload_mix
from driver.api import offerings as offered
from driver.runtime.files import yaml_files
from tests.fuzz.judging import refusing

_Read = Callable[[dict[str, object], str], pydantic.BaseModel]


def shapes(data: bytes) -> None:
    _check(data, node_shapes.read)


def workloads_of(data: bytes) -> None:
    _check(data, workload_mix.read)


def drivers(data: bytes) -> None:
    _check(data, managed_drivers.read)


def offerings(data: bytes) -> None:
    _check(data, offered.read)


def _check(data: bytes, read: _Read) -> None:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(data)
        with refusing.refusals():
            document = yaml_files.read_document(Path(file.name), "a document")
            base_model = read(dict(document), "at")
            shown = base_model.model_dump(mode="json", exclude_none=True)
            assert read(shown, "at") == base_model
