"""Files between the kubelet plugin and the MPS supervisor: desired and actual state.

    <state-dir>/desired/<key>.json   written by the plugin; without the file the daemon is removed
    <state-dir>/status/<key>.json    written by the supervisor; removed with the daemon
    <state-dir>/run/<key>/{pipe,log} the daemon's directories
    <state-dir>/supervisor.lock      locked (flock) as long as a supervisor runs

Both kinds of files are JSON objects with a `version`. Fields unknown to a reader are kept, and a
newer version is refused. Pure: paths are composed here, and opened elsewhere.
"""

import hashlib
import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

import pydantic

from driver import errors

VERSION = 1
"""Raised when a field's meaning changes; a new optional field does not."""
MIB = 1 << 20
SUFFIX = ".json"
_KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_DEVICE = re.compile(r"(?:GPU|MIG)-[A-Za-z0-9-]{1,60}")
_MEBIBYTES = "a whole number of MiB, 1 at least, in bytes"


def is_key(text: str) -> bool:
    """Return whether a text may name a daemon, and so become part of a path."""
    return _KEY.fullmatch(text) is not None


def _check_mib(value: int) -> int:
    """Check a limit: the daemon takes MiB, and a rounded share would not be the one promised."""
    if value < MIB or value % MIB:
        raise ValueError(f"is {value}; expected {_MEBIBYTES}")
    return value


Mebibytes = Annotated[int, pydantic.AfterValidator(_check_mib)]


class State(StrEnum):
    """State of a daemon.

    `starting`: not replying yet, or not as desired. `ready`: it takes clients, with the limits of
    `applied`. `failed`: it is absent, or not usable; `problem` says why and what is awaited.
    `stopping`: it was told to quit.
    """

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPING = "stopping"


class _File(pydantic.BaseModel):
    # Values are of one claim, and pydantic would keep the last 16,384 of them.
    model_config = pydantic.ConfigDict(
        strict=True, frozen=True, extra="allow", cache_strings="keys"
    )

    version: int = VERSION
    key: str

    @pydantic.field_validator("version")
    @classmethod
    def _check_version(cls, value: int) -> int:
        if not 1 <= value <= VERSION:
            raise ValueError(f"is {value}; expected 1 to {VERSION}: a newer program wrote this")
        return value

    @pydantic.field_validator("key")
    @classmethod
    def _check_key(cls, value: str) -> str:
        if not is_key(value):
            raise ValueError(f"is {value!r}; expected letters, digits and '-', at most 63")
        return value

    @classmethod
    def parse(cls, data: bytes, location: str) -> Self:
        """Parse a file's bytes; `location` is its name for people.

        Raises:
            BadInput: the file and the field, what is wrong there, what was expected.
        """
        try:
            return cls.model_validate_json(data)
        except pydantic.ValidationError as e:
            first = e.errors(include_url=False)[0]
            field = "".join(f".{part}" for part in first["loc"])
            problem = first["msg"].removeprefix("Value error, ")
            raise errors.BadInput(f"{location}{field}", problem) from e

    def render(self) -> bytes:
        """Return the file's bytes, unknown fields included; the same for the same content."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return f"{text}\n".encode()


class Desired(_File):
    """A desired daemon.

    `devices` are UUIDs of GPUs or MIG devices; a device's position is its index in the daemon.
    `pinned_memory` is in bytes, one per device: the ceiling of a client process without a limit of
    its own, so the largest live share. `active_thread_percentage` is the same for compute. With
    `multi_user` one server serves clients of every user; without it, users take turns. `shm_bytes`
    gives the daemon a /dev/shm of that size, which its clients must share; without it, the daemon
    has the supervisor's.
    """

    devices: tuple[str, ...]
    pinned_memory: tuple[Mebibytes, ...]
    active_thread_percentage: Annotated[int, pydantic.Field(ge=1, le=100)] = 100
    multi_user: bool = False
    shm_bytes: Mebibytes | None = None

    @pydantic.field_validator("devices")
    @classmethod
    def _check_devices(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [device for device in value if not _DEVICE.fullmatch(device)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no UUID; expected GPU-... or MIG-...")
        if not value or len(set(value)) != len(value):
            raise ValueError(f"is {list(value)}; expected one device at least, each once")
        return value

    @pydantic.model_validator(mode="after")
    def _check_limits(self) -> Self:
        if len(self.pinned_memory) != len(self.devices):
            raise ValueError(
                f"pinned_memory has {len(self.pinned_memory)} limits; "
                f"expected one for each of {len(self.devices)} devices"
            )
        return self


class Process(pydantic.BaseModel):
    """A process that cannot be mistaken for a later one with its pid.

    `started` is in clock ticks after boot (proc_pid_stat(5), field 22).
    """

    model_config = pydantic.ConfigDict(strict=True, frozen=True)

    pid: int
    started: int


class Holder(pydantic.BaseModel):
    """A control program that is connected to a daemon, which accepts no other commands meanwhile.

    `user` is the id that it runs as, "?" if it has just ended.
    """

    model_config = pydantic.ConfigDict(strict=True, frozen=True)

    pid: int
    user: str

    def describe(self) -> str:
        """Return its pid and user as text."""
        return f"process {self.pid} of user {self.user}"


class Status(_File):
    """A daemon's status, written by the supervisor.

    Valid only in the boot of `boot_id` and while a supervisor runs (its lock). `applied` is the
    digest of the desired file that the daemon serves, "" if none; `clients` is their number as the
    daemon reports, `processes` identify them. `since` is when `state` began (RFC 3339). `problem`
    is for people; `waiting`, a part of it, names clients that wait behind another user. While
    `occupied` the daemon takes no command of ours, as control programs are connected to it: the
    `holders`, as far as visible.
    """

    state: State
    boot_id: str
    since: str
    pipe_dir: str
    log_dir: str
    shm_dir: str | None = None
    pid: int | None = None
    applied: str = ""
    clients: int = 0
    processes: tuple[Process, ...] = ()
    problem: str = ""
    waiting: str = ""
    occupied: bool = False
    holders: tuple[Holder, ...] = ()

    def serves(self, desired_digest: str, boot_id: str) -> bool:
        """Return whether the daemon serves the desired file of that digest, in this boot."""
        return self.state is State.READY and (self.applied, self.boot_id) == (
            desired_digest,
            boot_id,
        )


def digest(data: bytes) -> str:
    """Return the SHA-256 of a desired file's bytes on disk, in hex."""
    return hashlib.sha256(data).hexdigest()


class Layout:
    """Paths of a state directory's files."""

    def __init__(self, state_dir: Path) -> None:
        self.desired_dir = state_dir / "desired"
        self.status_dir = state_dir / "status"
        self.run_dir = state_dir / "run"
        self.lock = state_dir / "supervisor.lock"

    def desired(self, key: str) -> Path:
        """Return the path of a daemon's desired file."""
        return self.desired_dir / f"{key}{SUFFIX}"

    def status(self, key: str) -> Path:
        """Return the path of a daemon's status file."""
        return self.status_dir / f"{key}{SUFFIX}"

    def run(self, key: str) -> Path:
        """Return the folder of a daemon's own directories."""
        return self.run_dir / key

    def pipe(self, key: str) -> Path:
        """Return CUDA_MPS_PIPE_DIRECTORY of the daemon; its clients must use the same."""
        return self.run(key) / "pipe"

    def log(self, key: str) -> Path:
        """Return CUDA_MPS_LOG_DIRECTORY of the daemon."""
        return self.run(key) / "log"
