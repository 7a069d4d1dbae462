"""Where things lie in a machine's directory; read by the builder, the node and the tests."""

from dataclasses import dataclass
from pathlib import Path

LIBRARIES = "usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one machine under `base`."""

    base: Path

    @property
    def profile(self) -> Path:
        """The machine's own copy of its profile."""
        return self.base / "profile.yaml"

    @property
    def identity(self) -> Path:
        """The machine's name and seed, written once."""
        return self.base / "machine.json"

    @property
    def state(self) -> Path:
        """What outlives the node process."""
        return self.base / "state.json"

    @property
    def lock(self) -> Path:
        """Held by whoever changes the state."""
        return self.base / "lock"

    @property
    def control_socket(self) -> Path:
        """For the command line only: never mounted into a container."""
        return self.base / "control.sock"

    @property
    def driver_root(self) -> Path:
        """What a plugin is given as --driver-root."""
        return self.base / "driver-root"

    @property
    def host_root(self) -> Path:
        """What a plugin is given as --host-root."""
        return self.base / "host-root"

    @property
    def nvml_socket(self) -> Path:
        """Mounted into containers with the real driver's files."""
        return self.driver_root / "run/nvidia-persistenced/socket"

    @property
    def capabilities(self) -> Path:
        """What MIG instances can be opened, and by which minors."""
        return self.host_root / "proc/driver/nvidia/capabilities"

    @property
    def capability_nodes(self) -> Path:
        """The device nodes of `capabilities`."""
        return self.driver_root / "dev/nvidia-caps"

    @property
    def libraries(self) -> Path:
        """The driver's shared libraries."""
        return self.driver_root / LIBRARIES
