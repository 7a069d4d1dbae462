"""The supervisor's settings: flag, else environment (`RATION_` and the flag), else default."""

from pathlib import Path
from typing import ClassVar

import pydantic

from driver.runtime import settings
from driver.runtime.files import driver_search


class SupervisorConfig(settings.ProcessSettings):
    """Runs the MPS daemons of a node, as the kubelet plugin's files ask for them."""

    PROGRAM: ClassVar[str] = "ration-mps-supervisor"

    state_dir: Path = pydantic.Field(
        default=Path("/var/lib/ration/mps"),
        description="Where desired and status files and the daemons' directories are.",
    )
    shm_dir: Path = pydantic.Field(
        default=Path("/var/lib/ration/mps/shm"),
        description="Where the daemons' own shared memory is mounted.",
    )
    driver_root: driver_search.Setting = pydantic.Field(
        default=driver_search.AUTO,
        description="Root of the NVIDIA driver's files, as this process sees it; auto: the first "
        f"of {', '.join(driver_search.PLACES)} below --host-root that has NVML.",
    )
    host_root: Path = pydantic.Field(
        default=Path("/"),
        description="Root of the host's /proc, for the boot's id, and /sys, for its cgroups.",
    )
    desired_state_poll_seconds: float = pydantic.Field(
        default=0.05, gt=0, le=10, description="How often the desired files are looked at."
    )
    poll_seconds: float = pydantic.Field(
        default=2.0, gt=0, le=60, description="How often each daemon is asked how it is."
    )

    @pydantic.field_validator("state_dir", "shm_dir", "driver_root", "host_root")
    @classmethod
    def _absolute(cls, value: Path | str) -> Path | str:
        if isinstance(value, Path) and not value.is_absolute():
            raise ValueError(f"{str(value)!r} is no absolute path")
        return value
