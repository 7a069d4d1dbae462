"""Device numbers that open a MIG instance: minors of nvidia-caps, as listed in proc.

    /proc/devices                                                   237 nvidia-caps
    /proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0/access        DeviceFileMinor: 67
    /proc/driver/nvidia-caps/mig-minors                             gpu0/gi7/ci0/access 67

The second exists while the instance does. Numbers are read, never computed: their derivation from
instances is internal to the kernel module (nv-caps.c).
"""

from pathlib import Path

from driver import errors

_CAPS = "nvidia-caps"
_LISTED = f"driver/{_CAPS}/mig-minors"
_MINOR = "DeviceFileMinor:"
Numbers = tuple[int, int]
"""Major and minor."""


class Capabilities:
    """Reads proc under `host_root`. Raises NodeFault."""

    def __init__(self, host_root: Path) -> None:
        self._proc = host_root / "proc"

    def instance_minors(
        self, gpu: int, gpu_instance: int, compute_instance: int
    ) -> tuple[Numbers, ...]:
        """Return those of a GPU instance and a compute instance; `gpu` is the GPU's minor."""
        major = self._major()
        listed = _text(self._proc / _LISTED)
        directory = f"gpu{gpu}/mig/gi{gpu_instance}"
        return tuple(
            (major, self._minor(f"{directory}/{name}", listed))
            for name in ("access", f"ci{compute_instance}/access")
        )

    def _minor(self, name: str, listed: str) -> int:
        path = self._proc / "driver/nvidia/capabilities" / name
        for line in _lines(path):
            key, _, value = line.partition(" ")
            if key == _MINOR:
                minor = _number(path, value)
                break
        else:
            raise errors.NodeFault("read", str(path), f"has no line {_MINOR}")
        other = self._listed_minor(listed, name.replace("/mig/", "/"), minor)
        if other != minor:
            text = f"says minor {minor}, mig-minors beside it {other}"
            raise errors.NodeFault("read", str(path), text)
        return minor

    def _listed_minor(self, listed: str, name: str, fallback: int) -> int:
        """Return the minor in the text of mig-minors, which has thousands of lines."""
        _, key, rest = f"\n{listed}".partition(f"\n{name} ")
        return _number(self._proc / _LISTED, rest.partition("\n")[0]) if key else fallback

    def _major(self) -> int:
        path = self._proc / "devices"
        for line in _lines(path):
            number, _, name = line.strip().partition(" ")
            if name == _CAPS:
                return _number(path, number)
            if line.startswith("Block devices"):
                break
        raise errors.NodeFault("read", str(path), f"lists no {_CAPS}: the driver has none")


def _lines(path: Path) -> list[str]:
    return _text(path).splitlines()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as e:
        raise errors.NodeFault("read", str(path), str(e)) from e


def _number(path: Path, text: str) -> int:
    if not text.strip().isdecimal():
        raise errors.NodeFault("read", str(path), f"{text!r} is no number")
    return int(text)
