"""The supervisor's settings: flag, else environment (`RATION_` and the flag), else default."""

from pathlib import Path
from typing import ClassVar

import pydantic

from driver.runtime import settings
from driver.runtime.files import driver_search


class SupervisorConfig(settings.ProcessSettings):
    """Runs the MPS daemons of a node, as the desired-state files of the kubelet plugin specify."""

    PROGRAM: ClassVar[str] = "ration-mps-supervisor"

    state_dir: Path = pydantic.Field(
        default=Path("/var/lib/ration/mps"),
        description="Directory of desired and status files and of the daemons' directories.",
    )
    shm_dir: Path = pydantic.Field(
        default=Path("/var/lib/ration/mps/shm"),
        description="Mount point of the daemons' shared memory.",
    )
    driver_root: driver_search.Setting = pydantic.Field(
        default=driver_search.AUTO,
        description="Root of the NVIDIA driver installation, as seen by this process. auto: the "
        f"first of {', '.join(driver_search.PLACES)} below --host-root that has NVML.",
    )
    host_root: Path = pydantic.Field(
        default=Path("/"),
        description="Directory at which the host's /proc (boot ID) and /sys (cgroups) are mounted.",
    )
    desired_state_poll_seconds: float = pydantic.Field(
        default=0.05,
        gt=0,
        le=10,
        description="Interval in seconds between reads of the desired-state files.",
    )
    poll_seconds: float = pydantic.Field(
        default=2.0,
        gt=0,
        le=60,
        description="Interval in seconds between status queries of each daemon.",
    )

    @pydantic.field_validator("state_dir", "shm_dir", "driver_root", "host_root")
    @classmethod
    def _absolute(cls, value: Path | str) -> Path | str:
        if isinstance(value, Path) and not value.is_absolute():
            raise ValueError(f"{str(value)!r} is no absolute path")
        return value
