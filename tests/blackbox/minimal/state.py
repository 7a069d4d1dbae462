"""State of the minimal driver: one file a claim, and the CDI spec that is made of it."""

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.blackbox.minimal import api

Devices = list[api.Given]


class State:
    """Thread safe."""

    def __init__(self, folder: Path, cdi: Path, driver: str) -> None:
        self._folder = folder
        self._cdi = cdi
        self._driver = driver
        self._lock = threading.Lock()

    def repair(self) -> None:
        """Write every claim's spec again: the CDI folder may have been emptied."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._cdi.mkdir(parents=True, exist_ok=True)
        for uid, devices in self._kept():
            self._write_spec(uid, devices)

    def prepare(self, uid: str, devices: Devices) -> None:
        """Give a claim its devices. Raises Refused where another still has one."""
        with self._lock:
            for other, had in self._kept():
                both = _held(had) & _held(devices)
                if other != uid and both:
                    raise api.Refused(f"{', '.join(sorted(both))} is still held by claim {other}")
            _write(self._folder / f"{uid}.json", json.dumps(devices))
            self._write_spec(uid, devices)

    def unprepare(self, uid: str) -> None:
        """Take a claim's devices back; none is held by one that is not known."""
        with self._lock:
            for path in (self._spec(uid), self._folder / f"{uid}.json"):
                path.unlink(missing_ok=True)

    def ids(self, uid: str, device: str) -> list[str]:
        """The CDI names of a device of a claim."""
        return [f"{self._driver}/thing={uid}-{device}"]

    def _kept(self) -> Iterator[tuple[str, Devices]]:
        for path in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(ValueError, TypeError):  # a damaged file says nothing
                document = json.loads(path.read_text())
                yield path.stem, [api.Given(*load) for load in document]

    def _spec(self, uid: str) -> Path:
        return self._cdi / f"{self._driver}-{uid}.json"

    def _write_spec(self, uid: str, devices: Devices) -> None:
        entries = [
            {
                "name": f"{uid}-{device}",
                "containerEdits": {"env": [f"THING_{device.upper().replace('-', '_')}={device}"]},
            }
            for device in (device.device for device in devices)
        ]
        document = {"cdiVersion": "0.5.0", "kind": f"{self._driver}/thing", "devices": entries}
        self._cdi.mkdir(parents=True, exist_ok=True)
        _write(self._spec(uid), json.dumps(document))


def _held(devices: Devices) -> set[str]:
    return {device.device for device in devices if not device.admin}


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}")
    with part.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
